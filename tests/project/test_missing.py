"""What is not there is named: compiled kernels, a module of SciPy, PyTorch."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import annealvi

PACKAGE = Path(annealvi.__file__).parent
WITHOUT_TORCH = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
"""


def error_of(code, folder=PACKAGE.parent):
    """The last line that Python prints if it starts beside a package and fails."""
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


@pytest.fixture
def unbuilt(tmp_path):
    """A folder with a copy of the package without compiled files."""
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.npz")
    shutil.copytree(PACKAGE, tmp_path / "annealvi", ignore=compiled)
    return tmp_path


def test_nothing_is_built(unbuilt):
    error = error_of("import annealvi", unbuilt)
    kernels = unbuilt / "annealvi" / "_kernels"
    assert error.startswith(
        f"ImportError: The compiled kernels of annealvi are missing in {kernels}: "
        f"no annealvi._kernels._dispatch for Python {sys.version.split()[0]}."
    )
    assert "`pip install -e .`" in error and "circular" not in error


def test_another_module_is_missing(unbuilt):
    """The kernels are there, so the error is not about them."""
    (unbuilt / "annealvi" / "__init__.py").write_text("")  # without scikit-learn: faster
    for file in (PACKAGE / "_kernels").glob("*.so"):
        shutil.copy(file, unbuilt / "annealvi" / "_kernels")
    missing = "numpy.linalg"
    error = error_of(f"sys.modules[{missing!r}] = None; import annealvi._kernels", unbuilt)
    assert error.startswith("ModuleNotFoundError") and missing in error


@pytest.mark.slow
def test_nothing_but_the_deep_models_imports_pytorch():
    code = (
        "import pkgutil, importlib, annealvi\n"
        "for found in pkgutil.walk_packages(annealvi.__path__, 'annealvi.'):\n"
        "    if not found.name.startswith(('annealvi.deep', 'annealvi.__main__')):\n"
        "        importlib.import_module(found.name)"
    )
    assert error_of(WITHOUT_TORCH + code) == ""


def test_the_error_of_the_deep_models_names_the_extra():
    assert error_of(WITHOUT_TORCH + "import annealvi.deep") == (
        "ImportError: annealvi.deep needs torch. Install it with the extra 'deep': "
        "pip install 'annealvi[deep]'."
    )
