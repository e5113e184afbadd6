"""The build says what it leaves out, and stops if the compiler cannot run; wheels are checked."""

import platform
import runpy
import shutil
from unittest.mock import patch

import pytest

from bench import CHECKOUT

pytestmark = [
    pytest.mark.skipif(not (CHECKOUT / "setup.py").exists(), reason="there is no source tree"),
    pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="flags for x86-64 are tested"),
]
#: What a compiler does that has no OpenMP, or that does not know some flags; "cc" does the rest.
REFUSES = 'case " $* " in *{flag}*) echo "no {flag} here" >&2; exit 1;; esac\nexec cc "$@"\n'
COMPILERS = {
    "missing": None,
    "cannot run": "exit 126\n",
    "whole": 'exec cc "$@"\n',
    "lacks OpenMP": REFUSES.format(flag="-fopenmp"),
    "lacks AVX-512": REFUSES.format(flag="-mavx512"),
    "lacks AVX2": REFUSES.format(flag="-mavx2"),
    "another processor": 'exec cc -U__x86_64__ "$@"\n',
}


@pytest.fixture
def build(request, tmp_path, monkeypatch):
    """The build command with one of the compilers."""
    pytest.importorskip("Cython")
    setuptools = pytest.importorskip("setuptools")
    from distutils.ccompiler import new_compiler  # setuptools brings it
    from distutils.sysconfig import customize_compiler

    monkeypatch.chdir(CHECKOUT)
    compiler = tmp_path / "compiler"
    if COMPILERS[request.param] is not None:
        compiler.write_text(f"#!/bin/sh\n{COMPILERS[request.param]}")
        compiler.chmod(0o755)
    monkeypatch.delenv("ANNEALVI_NO_OPENMP", raising=False)
    for name in ("CC", "LDSHARED"):
        monkeypatch.setenv(name, str(compiler))
    with patch("setuptools.setup"):
        command = runpy.run_path("setup.py")["BuildKernels"](setuptools.Distribution())
    command.compiler = new_compiler()
    customize_compiler(command.compiler)
    return command


def with_compiler(*names):
    return pytest.mark.parametrize("build", names, indirect=True)


@with_compiler("missing", "cannot run")
@pytest.mark.parametrize("probe", ["openmp_flags", "x86_builds"])
def test_a_compiler_that_cannot_run_stops_the_build(build, probe):
    from setuptools.errors import PlatformError

    words = r"the C compiler cannot build a program of one line \(.*compiler.*\)\. Install a C comp"
    with pytest.raises(PlatformError, match=words):
        getattr(build, probe)()


@with_compiler("whole")
def test_a_compiler_with_everything(build, capfd, caplog):
    assert build.openmp_flags() == ["-fopenmp"]
    assert capfd.readouterr().out == "annealvi: building with OpenMP\n"
    assert [*build.x86_builds()] == ["avx2", "avx512"]
    assert not caplog.text


@with_compiler("lacks OpenMP")
def test_without_openmp(build, caplog):
    assert build.openmp_flags() == []
    assert "annealvi: no OpenMP (GCC 9's or later); building for one thread" in caplog.text


@with_compiler("lacks AVX-512", "lacks AVX2")
def test_without_an_instruction_set(build, caplog, request):
    assert build.x86_builds() == {}
    name = request.node.callspec.params["build"].removeprefix("lacks ").lower().replace("-", "")
    assert f"the C compiler does not know the flags for {name}; building without" in caplog.text


@with_compiler("another processor")
def test_another_processor(build, caplog):
    assert build.x86_builds() == {}
    assert not caplog.text


X86 = {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}
LACKING = [
    ("Linux", "x86_64", X86, True, ["avx512", "avx2", "baseline"], []),
    ("Linux", "x86_64", X86, True, ["avx2", "baseline"], ["avx512"]),
    ("Linux", "x86_64", X86, False, ["baseline"], ["OpenMP", "avx2", "avx512"]),
    ("Linux", "x86_64", {"avx2", "fma"}, True, ["avx2", "baseline"], []),
    ("Linux", "aarch64", set(), True, ["baseline"], []),
    ("Linux", "aarch64", set(), False, ["baseline"], ["OpenMP"]),
    ("Darwin", "arm64", set(), False, ["baseline"], []),
    ("Darwin", "x86_64", set(), False, ["avx2", "baseline"], []),
    ("Windows", "AMD64", set(), False, ["avx2", "baseline"], []),
    ("Windows", "AMD64", set(), False, ["baseline"], ["avx2"]),
]


@pytest.mark.parametrize("system, machine, processor, openmp, sets, missing", LACKING)
def test_what_a_wheel_lacks(system, machine, processor, openmp, sets, missing):
    lacking = runpy.run_path(str(CHECKOUT / "release" / "check_wheel.py"))["lacking"]
    assert lacking(system, machine, processor, openmp, sets) == missing
