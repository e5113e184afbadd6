"""Build commits in separate folders, and start processes that import one of the builds."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from bench import CHECKOUT

#: The first lines that a process runs.  The finder of an editable install may come before sys.path,
#: so it is removed.  `bench` is always the one of this checkout.
BEGIN = """
import sys
sys.path[:0] = [{site!r}, {checkout!r}]
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in str(f).lower()]
"""
#: Stops a process that has imported another package than the build.
CHECK = """
import annealvi
if not annealvi.__file__.startswith({site!r}):
    sys.exit("The build in {site} was not imported, but " + annealvi.__file__)
"""
#: The modules of `bench` use the present public names, which an older build may lack.
RUN_MODULE = """
import runpy
from bench.speed.renames import adapt
adapt()
runpy.run_module({module!r}, run_name="__main__")
"""
TIME_IMPORT = """
import time
began = time.process_time()
import annealvi
print(time.process_time() - began)
"""


def install(revision: str, folder: Path) -> Path:
    """Build a commit, or the checkout in a folder; return the folder of the installation."""
    site = folder / "site"
    tree = folder / "tree"
    if (Path(revision) / "pyproject.toml").is_file():
        _copy(Path(revision), tree)
    else:
        archive = subprocess.run(
            _git(CHECKOUT, "archive", revision), check=True, capture_output=True
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(tree)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--no-deps", "--no-build-isolation", "--target", str(site), str(tree)]
    subprocess.run(pip, check=True)
    return site


def _git(folder: Path, *arguments: str) -> list[str]:
    return ["git", "-C", str(folder), *arguments]


def _copy(checkout: Path, tree: Path) -> None:
    """Copy the files of a checkout that git does not ignore."""
    listed = _git(checkout, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (checkout / name).is_file():  # false for deleted files if the deletion is not committed
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((checkout / name).read_bytes())


def _start(site: Path, *code: str, arguments: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    names = {"site": str(site), "checkout": str(CHECKOUT)}
    text = "".join(lines.format(**names) for lines in (BEGIN, *code))
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        cwd=site,
    )


def run_module(site: Path, module: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a module of `bench` with pipes, in a process that fails unless it imports the build."""
    run = RUN_MODULE.format(module=module)
    return _start(site, CHECK, run, arguments=arguments)


def output(process: subprocess.Popen[str]) -> str:
    """Return everything that a process prints; raise RuntimeError if it ends with an error."""
    printed, _ = process.communicate()
    if process.returncode:
        raise RuntimeError("The process of a build failed; its error is printed above.")
    return printed


def import_seconds(site: Path) -> float:
    """CPU seconds of ``import annealvi`` and its dependencies in a new process."""
    return float(output(_start(site, TIME_IMPORT, CHECK)))
