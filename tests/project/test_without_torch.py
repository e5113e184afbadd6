"""PyTorch is imported by annealvi.deep alone, which names the extra where it is missing."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
"""


def run(code):
    code = WITHOUT + code
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.slow
def test_nothing_else_imports_pytorch():
    code = (
        "import pkgutil, importlib, annealvi\n"
        "for found in pkgutil.walk_packages(annealvi.__path__, 'annealvi.'):\n"
        "    if not found.name.startswith(('annealvi.deep', 'annealvi.__main__')):\n"
        "        importlib.import_module(found.name)"
    )
    finished = run(code)
    assert finished.returncode == 0, finished.stderr


def test_the_error_names_the_extra():
    finished = run("import annealvi.deep")
    assert finished.returncode == 1
    last = finished.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: annealvi.deep needs torch. Install it with the extra 'deep': "
        "pip install 'annealvi[deep]'."
    )
