"""The structure of the package, in figures: files, imports, and uses of private names.

    python -m bench.structure [FOLDER]

FOLDER is any checkout, by default this one.  The source is read, never imported, so that two
commits can be compared.  One line is printed for each figure, with what it counts beneath it
where that helps: each circle, each private use, the longest chain of imports.

The functions serve the tests of the structure as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import CHECKOUT, parser

PACKAGE = "annealvi"
#: Methods of named tuples, which are public in spite of their underscore.
NAMEDTUPLE = {"_asdict", "_fields", "_field_defaults", "_make", "_replace"}
#: Names by which a method calls its own object or class.
OWN = {"self", "cls"}

#: The modules that each module imports.
Graph = dict[str, set[str]]


class PrivateUse(NamedTuple):
    """A private name of another object or module.

    Attributes
    ----------
    path : Path
        The file, relative to the checkout.
    line : int
    text : str
        The expression or the import.
    """

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.as_posix()}:{self.line}: {self.text}"


# ----------------------------------------------------------------------------- files


def sources(folder: Path) -> list[Path]:
    """The Python files of the package in a checkout."""
    return sorted((folder / PACKAGE).rglob("*.py"))


def root_files(folder: Path) -> list[str]:
    """Names of the Python files in the root of the package, in order."""
    return [path.name for path in sources(folder) if path.parent == folder / PACKAGE]


def is_underscored(name: str) -> bool:
    """Whether a name is private: one underscore in front, not two."""
    return name.startswith("_") and not name.startswith("__")


def n_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


# --------------------------------------------------------------------------- imports


def modules(folder: Path) -> dict[str, Path]:
    """The file of each module of the package, by the module's dotted name.

    A package's name stands for its ``__init__.py``.
    """
    found = {}
    for path in sources(folder):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, name: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and name of all that a module of the package imports from the package.

    The name is None where a module is imported whole, as by ``import annealvi.model``.
    Imports within functions, and those for type checkers alone, are included.
    """
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE:
                    yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            source = node.module.split(".") if node.module else []
            if node.level:
                source = package[: len(package) - node.level + 1] + source
            if source[:1] == [PACKAGE]:
                for alias in node.names:
                    yield node.lineno, ".".join(source), alias.name


def imports(folder: Path) -> Graph:
    """The modules of the package that each of its modules imports.

    ``from annealvi.lda import fit`` imports annealvi.lda.fit where that is a module, and
    otherwise annealvi.lda.  That Python runs the ``__init__.py`` of each parent as well is not
    counted: it would join almost all modules to a circle.  Compiled modules count as the
    package that holds them.
    """
    known = modules(folder)
    graph: Graph = {}
    for name, path in known.items():
        targets = set()
        for _, source, part in imported(path, name):
            target = source if part is None else f"{source}.{part}"
            while target not in known and "." in target:
                target = target.rpartition(".")[0]
            targets.add(target)
        graph[name] = targets - {name}
    return graph


def _components(graph: Graph) -> list[list[str]]:
    """Strongly connected components, each after those that it imports (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            start = stack.index(node)
            components.append(sorted(stack[start:]))
            del stack[start:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return components


def circles(graph: Graph) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""
    return [component for component in _components(graph) if len(component) > 1]


def longest_chain(graph: Graph) -> list[str]:
    """The longest chain in which each module imports the next.

    A circle counts as one module, which is named by the first of its members.
    """
    components = _components(graph)
    home = {name: group[0] for group in components for name in group}
    best: dict[str, list[str]] = {}
    for group in components:
        targets = {home[target] for name in group for target in graph[name]} - {group[0]}
        chains = [best[target] for target in sorted(targets)]
        best[group[0]] = [group[0], *max(chains, key=len, default=[])]
    return max(best.values(), key=len, default=[])


# --------------------------------------------------------------------- private names


def _defined(tree: ast.Module) -> set[str]:
    """Names that a file defines: functions, classes, variables, attributes of self and cls."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if _is_own(node.value) else set()
    return names


def _is_own(value: ast.expr) -> bool:
    """Whether an expression is self, cls or super()."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in OWN


def _is_estimator(value: ast.expr) -> bool:
    """Whether an expression begins with `estimator` or `self.estimator`."""
    while isinstance(value, ast.Attribute | ast.Call | ast.Subscript):
        if isinstance(value, ast.Attribute) and value.attr == "estimator" and _is_own(value.value):
            return True
        value = value.func if isinstance(value, ast.Call) else value.value
    return isinstance(value, ast.Name) and value.id == "estimator"


def private_uses(folder: Path) -> list[PrivateUse]:
    """Uses of another object's private attributes, and imports of private names.

    Counted are

    - ``x._name`` where x is neither self, cls nor super(), and the same file does not define
      `_name`;
    - ``estimator._name`` and ``self.estimator._name``, whatever the file defines;
    - ``from annealvi.x import _name`` where `_name` is not a module.

    The source does not tell the type of x, so that a name which two classes of two files share
    may be missed.  The public methods of named tuples are left out.
    """
    known = modules(folder)
    uses: list[PrivateUse] = []
    for name, path in known.items():
        relative = path.relative_to(folder)
        for line, source, part in imported(path, name):
            if part and is_underscored(part) and not _is_module(folder, source, part):
                uses.append(PrivateUse(relative, line, f"from {source} import {part}"))
        tree = parse(path)
        defined = _defined(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not is_underscored(node.attr):
                continue
            if node.attr in NAMEDTUPLE or _is_own(node.value):
                continue
            text = ast.unparse(node)
            if text in known:  # a module, as in annealvi._kernels
                continue
            if node.attr not in defined or _is_estimator(node.value):
                uses.append(PrivateUse(relative, node.lineno, text))
    return sorted(uses)


def _is_module(folder: Path, source: str, part: str) -> bool:
    """Whether a part of a package is a module, in Python or compiled."""
    place = folder.joinpath(*source.split("."), part)
    return place.is_dir() or any(place.with_suffix(s).is_file() for s in (".py", ".pyx"))


# --------------------------------------------------------------------------- figures


def report(folder: Path) -> Iterator[str]:
    """The figures of a checkout, line by line."""
    root = root_files(folder)
    yield f"files in the root of the package    {len(root)}"
    yield f"  of them underscored               {sum(map(is_underscored, root))}"
    graph = imports(folder)
    found = circles(graph)
    yield f"circles of imports                  {len(found)}"
    yield from (f"  {', '.join(circle)}" for circle in found)
    uses = private_uses(folder)
    yield f"private uses across files           {len(uses)}"
    yield from (f"  {use}" for use in uses)
    largest = max(sources(folder), key=n_lines)
    yield f"lines of the largest Python file    {n_lines(largest)}"
    yield f"  {largest.relative_to(folder).as_posix()}"
    chain = longest_chain(graph)
    yield f"files in the longest import chain   {len(chain)}"
    yield f"  {' > '.join(chain)}"
    words = (folder / "README.md").read_text(encoding="utf-8").split()
    yield f"words of the README                 {len(words)}"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=CHECKOUT)
    folder = options.parse_args().folder
    if not (folder / PACKAGE / "__init__.py").is_file():
        options.error(f"there is no package {PACKAGE} in {folder}")
    print(*report(folder), sep="\n")


if __name__ == "__main__":
    main()
