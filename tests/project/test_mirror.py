"""Each test file outside tests/project is named after the module that it tests."""

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
TESTS = CHECKOUT / "tests"
ENDINGS = (".py", ".pyx", ".h", "/__init__.py")


def files_of_tests():
    found = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return sorted(str(path) for path in found if path.parts[0] != "project")


def modules_of(path, package):
    """The modules that a test file may be named after: of test_a_b.py these are a_b and a."""
    folder = Path(path).parent
    words = Path(path).stem.removeprefix("test_").split("_")
    names = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
    candidates = [folder / f"{name}{ending}" for name in names for ending in ENDINGS]
    return [str(module) for module in candidates if (package / module).exists()]


@pytest.mark.parametrize("path", files_of_tests())
def test_each_test_file_has_the_module_it_is_named_after(path):
    assert modules_of(path, CHECKOUT / "annealvi"), (
        f"tests/{path} is named after no module. The tests of annealvi/a/b.py are in "
        "tests/a/test_b.py or tests/a/test_b_*.py; tests of no single module are in tests/project."
    )


def test_modules_are_found_by_their_names(tmp_path):
    (tmp_path / "a" / "part").mkdir(parents=True)
    (tmp_path / "a" / "empty").mkdir()
    for name in ("model.py", "model_map.py", "kernel.pyx", "rows.h", "part/__init__.py", "no.txt"):
        (tmp_path / "a" / name).touch()
    for name, modules in {
        "model": ["a/model.py"],
        "model_map": ["a/model_map.py", "a/model.py"],
        "kernel_of_old": ["a/kernel.pyx"],
        "rows": ["a/rows.h"],
        "part_of_it": ["a/part/__init__.py"],
    }.items():
        assert modules_of(f"a/test_{name}.py", tmp_path) == modules
    for name in ("a/test_models", "a/test_no", "a/test_empty", "a/test_other", "test_model"):
        assert modules_of(f"{name}.py", tmp_path) == []
