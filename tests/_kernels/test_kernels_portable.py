"""The C kernels compile, and compute, where this machine's own build does not show it.

With a cross compiler and an emulator for aarch64, and with clang, where they are found.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = CHECKOUT / "annealvi" / "_kernels"
CHECK = Path(__file__).with_name("portable_check.c")
# as setup.py has them, and warnings
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wno-psabi"]
FLAGS += ["-Wall", "-Werror"]


def found(*names):
    """The first of some programs that is here, or skip the test."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    pytest.skip(f"none of {', '.join(names)} is installed")


def run(*command):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compile_kernels(compiler, folder, build="baseline", flags=()):
    """The object of one build."""
    out = folder / f"{build}.o"
    name = f"-DKERNELS_NAME={build}"
    run(compiler, *FLAGS, *flags, name, "-I", SOURCES, "-c", SOURCES / "kernels.c", "-o", out)
    return out


def link_check(compiler, folder, objects, flags=()):
    """The program that checks special functions."""
    out = folder / "check"
    sources = [CHECK, SOURCES / "dispatch.c"]
    run(compiler, *FLAGS, *flags, "-I", SOURCES, *sources, *objects, "-lm", "-o", out)
    return out


@pytest.fixture(scope="module")
def arm_kernels(tmp_path_factory):
    """The kernels for aarch64, and what compiled them."""
    compiler = found("aarch64-linux-gnu-gcc")
    return compiler, compile_kernels(compiler, tmp_path_factory.mktemp("arm"))


def test_arm_build_uses_neon(arm_kernels):
    listing = run(found("aarch64-linux-gnu-objdump"), "-d", arm_kernels[1])
    for lanes in ("2d", "4s"):
        assert len(re.findall(rf"\bfmla\s+v\d+\.{lanes}", listing)) > 100


def test_arm_build_computes(arm_kernels, tmp_path):
    emulator = found("qemu-aarch64-static", "qemu-aarch64")
    compiler, kernels = arm_kernels
    program = link_check(compiler, tmp_path, [kernels], ["-static"])
    assert len(run(emulator, program).splitlines()) == 10


@pytest.mark.parametrize("name", ["clang", "gcc"])
def test_without_x86_builds(name, tmp_path):
    """As setup.py builds where the processor is another: one table, dispatched to alone."""
    compiler = found(name)
    program = link_check(compiler, tmp_path, [compile_kernels(compiler, tmp_path)])
    assert len(run(program, "baseline").splitlines()) == 10
