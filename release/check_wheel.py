"""Install a wheel into empty environments, where there is no compiler, and run it there.

    python release/check_wheel.py [--python python3.11 python3.12 ...] FOLDER

FOLDER has one or several wheels, and the source distribution, whose tests are run.  Each Python
takes the best wheel for it, from the folder alone; its dependencies are installed from wheels too.
Everything happens in a temporary folder, so that nothing of this checkout is imported, and the only
folder on PATH is the environment's own.

In each environment: what the wheel contains is looked at, ``annealvi demo`` writes
its report, build/wheel_demo.html in this checkout, and tests run.  The first Python runs the tests
of kernels, models and estimators; the others, for which the wheel has the same machine code, some
of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
REPORT = CHECKOUT / "build" / "wheel_demo.html"
COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "make", "ld")
TESTS = [
    *("_kernels", "models", "inference", "temperature", "lda", "mixtures", "metrics"),
    *("files", "test_storage.py", "test_checkpoint.py", "cli"),
    *("project/test_estimator_checks.py", "project/test_fork.py"),
]
SOME_TESTS = [
    *("_kernels", "lda/test_estimator.py", "lda/test_fitted.py", "mixtures/test_base.py"),
    *("mixtures/test_fmm.py", "mixtures/test_gmm.py", "test_storage.py", "cli"),
    "project/test_fork.py",
]
#: What the installed package must show; run by the Python of the environment.
LOOK = """
import json, sys
from importlib.metadata import files
from pathlib import Path
import annealvi
from annealvi import _kernels
assert Path(annealvi.__file__).is_relative_to(sys.prefix), annealvi.__file__
found = {str(file): file.locate() for file in files("annealvi")}
def one(*parts):
    (path,) = [path for name, path in found.items() if all(part in name for part in parts)]
    return path
bill = json.loads(one("sboms/annealvi.cdx.json").read_text())
parts = {part["name"] for part in bill["components"]}
assert "Cython" in parts, parts
one("dist-info/licenses/LICENSE")
if any(".libs/libgomp" in name for name in found):
    assert "libgomp" in parts
    assert "RUNTIME LIBRARY EXCEPTION" in one("dist-info/licenses", "libgomp.txt").read_text()
assert not [name for name in found if name.endswith((".pyx", ".pxd", ".c", ".h"))]
annealvi.show_versions()
print()
print(json.dumps([_kernels.openmp_enabled(), _kernels.available_instruction_sets()]))
"""
#: The instruction sets of a wheel for x86-64, with the names that Linux gives to what they need.
INSTRUCTION_SETS = {
    "avx2": {"avx2", "fma"},
    "avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"},
}


def lacking(
    system: str, machine: str, processor: set[str], openmp: bool, sets: Collection[str]
) -> list[str]:
    """What the kernels of a wheel lack that this system's wheel should have.

    `processor` are the abilities of this machine's processor, as Linux names them, and `sets` the
    instruction sets that the wheel can use here.
    """
    missing = []
    if system == "Linux":  # other wheels have one thread, see docs/maintainers/release.md
        missing += [] if openmp else ["OpenMP"]
    else:
        processor = INSTRUCTION_SETS["avx2"]  # what the machines of the workflow have at least
    if machine in ("x86_64", "AMD64"):
        needed = [name for name, abilities in INSTRUCTION_SETS.items() if abilities <= processor]
        missing += [name for name in needed if name not in sets]
    return missing


def runs(python: str) -> bool:
    """Whether this is a Python that can make an environment."""
    found = shutil.which(python)
    return (
        found is not None
        and not subprocess.run(
            [found, "-c", "import ensurepip, venv"], capture_output=True, check=False
        ).returncode
    )


def unpack_tests(folder: Path, outside: Path) -> None:
    """Take the tests, and what they import, out of the source distribution."""
    (source,) = folder.glob("annealvi-*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(outside / "source", filter="data")
    (root,) = (outside / "source").iterdir()
    for name in ("tests", "bench", "pyproject.toml"):
        (root / name).rename(outside / name)


def check(python: str, folder: Path, thorough: bool) -> None:
    """Install the wheel for one Python, and run it."""
    with tempfile.TemporaryDirectory(prefix="annealvi-") as temporary:
        outside = Path(temporary)
        subprocess.run([python, "-m", "venv", outside / "venv"], check=True)
        binaries = outside / "venv" / ("Scripts" if os.name == "nt" else "bin")
        kept = {"HOME", "LANG", "LD_LIBRARY_PATH", "PIP_CONFIG_FILE", "SYSTEMROOT", "TMPDIR"}
        environment = {name: os.environ[name] for name in kept & os.environ.keys()}
        environment |= {"PATH": str(binaries), "OMP_NUM_THREADS": "1"}
        assert not any(shutil.which(name, path=str(binaries)) for name in COMPILERS)

        def run(*command: object, **options: Any) -> Any:
            words = [str(binaries / str(command[0])), *(str(word) for word in command[1:])]
            print("+", *(str(word).strip().split("\n")[0] for word in command), flush=True)
            done = subprocess.run(words, env=environment, cwd=outside, check=False, **options)
            if done.returncode:
                raise SystemExit(f"The wheel in {folder} failed with {python}; see above.")
            return done.stdout

        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        install += ["--only-binary", ":all:"]
        run("python", *install, "--no-index", "--no-deps", "--find-links", folder, "annealvi")
        run("python", *install, "annealvi[demo,test]")
        shown = run("python", "-c", LOOK, stdout=subprocess.PIPE, text=True)
        print(shown)
        openmp, sets = json.loads(shown.splitlines()[-1])
        cpuinfo = Path("/proc/cpuinfo")
        processor = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
        missing = lacking(platform.system(), platform.machine(), processor, openmp, sets)
        if missing:
            raise SystemExit(
                f"The wheel in {folder} lacks {' and '.join(missing)}, which a wheel for this "
                "system must have. Read the messages of its build."
            )
        run("annealvi", "--version")
        run("annealvi", "demo", "--output", REPORT)
        unpack_tests(folder, outside)
        tests = [f"tests/{name}" for name in (TESTS if thorough else SOME_TESTS)]
        options = ["-q", "-n", "auto", "-p", "no:cacheprovider", "-m", "not (slow or deep)"]
        run("python", "-m", "pytest", *options, *tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    arguments = parser.parse_args()
    pythons = [python for python in arguments.python if runs(python)]
    if not pythons:
        parser.error(f"none of {', '.join(arguments.python)} runs here")
    for number, python in enumerate(pythons):
        check(python, arguments.folder.resolve(), thorough=number == 0)
    left_out = sorted(set(arguments.python) - set(pythons))
    print("checked with", *pythons, *(["not here:", *left_out] if left_out else []))


if __name__ == "__main__":
    main()
