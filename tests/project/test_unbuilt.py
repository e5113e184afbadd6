"""A source tree whose kernels are not built says so, and what to do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import annealvi
from annealvi import _kernels

PACKAGE = Path(annealvi.__file__).parent


@pytest.fixture
def unbuilt(tmp_path):
    """A copy of the package without compiled files."""
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.npz")
    shutil.copytree(PACKAGE, tmp_path / "annealvi", ignore=compiled)
    return tmp_path / "annealvi"


def error_of(folder, code):
    """The last line that Python prints if it starts beside a copy of the package."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(folder.parent)},
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


def test_nothing_is_built(unbuilt):
    error = error_of(unbuilt, "import annealvi")
    assert error.startswith(
        f"ImportError: The compiled kernels of annealvi are missing in {unbuilt / '_kernels'}: "
        f"no annealvi._kernels._dispatch for Python {sys.version.split()[0]}."
    )
    assert "`pip install -e .`" in error
    assert "circular" not in error


def test_a_module_of_scipy_is_missing(unbuilt):
    """The kernels are there, so the error is not about them."""
    (unbuilt / "__init__.py").write_text("")  # without scikit-learn: faster
    for name in _kernels.COMPILED:
        shutil.copy(sys.modules[f"annealvi._kernels.{name}"].__file__, unbuilt / "_kernels")
    missing = "scipy.linalg.cython_blas"
    code = f"import sys; sys.modules[{missing!r}] = None; import annealvi._kernels"
    error = error_of(unbuilt, code)
    assert error.startswith("ModuleNotFoundError") and missing in error
