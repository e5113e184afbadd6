"""What CONTRIBUTING says of the house, as far as it can be tested from the source."""

import ast
import importlib
import inspect
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.structure import circles, imports, modules, n_lines, private_uses

CHECKOUT = Path(__file__).resolve().parents[2]
#: From the ground; a room imports from itself and from the floors below it.
FLOORS = [
    {"_kernels"},
    {"_optional", "_version", "exceptions", "checkpoint"},
    {"threads", "checks", "_archive", "progress"},
    {"model", "schedules", "versions"},
    {"matrices", "files"},
    {"corpus", "datasets", "data", "partition", "proximity"},
    {"scale"},
    {"models", "temperature"},
    {"inference"},
    {"mixtures", "metrics"},
    {"lda", "deep"},
    {"dask", "plot", "storage"},
    {"topics"},
    {""},  # the package's own __init__
    {"cli"},
    {"__main__"},
]
GRAPH = imports(CHECKOUT)
#: What others are to fill in: a temperature of a user's own, a context's distribution.
PROTOCOLS = {"annealvi.temperature.base", "annealvi.deep.gaussians"}


def room(module):
    return module.split(".")[1] if "." in module else ""


def floor(module):
    found = [number for number, rooms in enumerate(FLOORS) if room(module) in rooms]
    assert len(found) == 1, f"{module} has no floor: add its room to FLOORS"
    return found[0]


def test_nothing_imports_upwards():
    upwards = [
        f"{module} (floor {floor(module)}) imports {target} (floor {floor(target)})"
        for module, targets in GRAPH.items()
        for target in targets
        if room(target) != room(module) and floor(target) >= floor(module)
    ]
    assert not upwards


def test_no_circle_of_imports_not_for_types_either():
    assert not circles(GRAPH)


def test_nothing_uses_the_private_attributes_of_another_object():
    ours = [str(use) for use in private_uses(CHECKOUT) if not use.text.startswith("torch.")]
    assert not ours


def test_no_file_is_long():
    files = [
        path
        for folder in ("annealvi", "bench", "examples", "tests")
        for path in (CHECKOUT / folder).rglob("*")
        if path.suffix in {".py", ".pyx", ".pxd", ".h", ".c"}
    ]
    assert len(files) > 200
    assert not [(path.name, n_lines(path)) for path in files if n_lines(path) >= 500]


def test_only_protocols_leave_methods_to_others():
    raising = {
        name
        for name, path in modules(CHECKOUT).items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    }
    assert raising <= PROTOCOLS


def own_calls(cls):
    """Names of what the methods of a class call on self."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "self":
                yield node.func.attr


def assigned(cls):
    """Attributes that a class assigns to self."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def classes():
    for name in sorted(modules(CHECKOUT)):
        if name.startswith("annealvi.deep") and find_spec("torch") is None:
            continue
        if name == "annealvi.__main__":  # runs when it is imported
            continue
        module = importlib.import_module(name)
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == name:
                yield cls


def test_no_class_calls_what_only_its_children_define():
    missing = []
    for cls in classes():
        ours = [c for c in cls.__mro__ if c.__module__.startswith("annealvi")]
        known = {name for c in ours for name in assigned(c)}
        known |= {name for c in ours for name in getattr(c, "__dataclass_fields__", {})}
        # parameters of the estimator, which its base declares
        known |= {n for c in ours for n in vars(c).get("__annotations__", {}) if n[0] != "_"}
        missing += [
            f"{cls.__module__}.{cls.__name__} calls self.{name}"
            for name in own_calls(cls)
            if not hasattr(cls, name) and name not in known
        ]
    assert not missing


def test_a_class_has_at_most_one_base_of_ours():
    several = [
        cls.__name__
        for cls in classes()
        if sum(
            base.__module__.startswith("annealvi") and not getattr(base, "_is_protocol", False)
            for base in cls.__bases__
        )
        > 1
    ]
    assert not several


@pytest.mark.parametrize("name", [m for m in sorted(modules(CHECKOUT)) if "_kernels" in m])
def test_kernels_know_nothing_of_the_house(name):
    assert all(target.startswith("annealvi._kernels") for target in GRAPH[name])
