"""Measure the size and the structure of the package.

    python -m bench.structure [FOLDER]        the figures of a checkout, by default of this one
    python -m bench.structure BEFORE AFTER    the figures of two checkouts and their ratio
    python -m bench.structure --pages         the words of the pages and habits of writing

The source is read, but not imported, so it may be that of any commit.  If the kernels of a checkout
are built, a small fit in a separate process gives four more rows.  Import circles, upward imports
and private uses are listed after the figures.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from bench import CHECKOUT, pages, parser
from bench.markdown import table

PACKAGE = "annealvi"
#: The layers of the package, the lowest first.  A package or module ("room") imports only from
#: itself and from lower layers ("floors").
FLOORS: list[set[str]] = [
    {"_kernels"},
    {"_optional", "_version", "exceptions", "progress"},
    {"threads", "checks"},
    {"model", "schedules", "versions"},
    {"matrices", "files"},
    {"corpus", "data", "partition", "proximity"},
    {"datasets"},
    {"scale"},
    {"models", "temperature"},
    {"inference"},
    {"metrics"},
    {"callbacks"},
    {"mixtures"},
    {"lda", "deep"},
    {"dask", "plot", "storage"},
    {"topics"},
    {""},  # the package's own __init__
    {"app"},
    {"cli"},
    {"__main__"},
]
#: Methods of named tuples, which are public although their names begin with an underscore.
NAMEDTUPLE = {"_asdict", "_fields", "_field_defaults", "_make", "_replace"}
Graph = dict[str, set[str]]  # the modules that each module imports
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
NO_CODE |= {tokenize.ENDMARKER}
MODULES = (".py", ".pyx")
PRIVATE = re.compile(r"_(?!_)")
OF_ESTIMATOR = re.compile(r"(self\.)?estimator\b")
#: Attributes that only some topic models have.
OF_MODELS = {"lda_", "with_lda", "mixture_", "seed_topics_", "topic_labels_", "topic_similarity_"}
OF_MODELS |= {"counts", "named_steps", "feature_names_", "feature_names_in_", "vocabulary_"}
OF_MODELS |= {"document_temperatures", "settings_", "bound_", "history_", "topic_support_"}
#: Files and functions that only read or write fitted state.
STATE_FILES = {"files", "storage", "checkpoints", "saved", "schema", "versions"}
STATE_FUNCTIONS = re.compile(
    r"^_*(load|save|restore|resume)|(^|_)(tree|dump)($|_)|_(state|dict)s?$|etstate|fingerprint"
)
#: A program that fits under a profiler.  It prints the number of classes in use, the number of
#: frames above the kernel, and the number of our functions that the tenth step of a fit calls.
FIT = """
import json, sys, numpy, annealvi
from annealvi._kernels import lda
X, classes, done = numpy.random.RandomState(0).poisson(0.2, (200, 100)), set(), []
def profile(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_argcount and not done:
        first = frame.f_locals.get(code.co_varnames[0])
        one = first if code.co_varnames[0] == "_cls" else type(first)  # _cls: a named tuple
        if str(getattr(one, "__module__", "")).startswith("annealvi."):
            classes.add(one.__module__ + "." + one.__qualname__)
def kernel(*arguments, _compiled=lda.fit_documents, **options):
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and not done:
        frames.append(frame.f_code.co_filename)
        frame = frame.f_back
    done.append(True)
    return _compiled(*arguments, **options)
frames, lda.fit_documents = [], kernel
model = annealvi.TemperedLDA(10, max_iter=2, random_state=0)
sys.setprofile(profile)
model.fit(X)
sys.setprofile(None)
steps, inside = [], None
def count(frame, event, _):
    global inside
    code = frame.f_code
    if code.co_name in ("local_step", "global_step") and code.co_filename.endswith("lda/model.py"):
        inside = event == "call"
        if inside and code.co_name == "local_step":
            steps.append(0)
    if event == "call" and inside:
        steps[-1] += "annealvi" in code.co_filename
X = numpy.random.RandomState(0).poisson(0.2, (4000, 100))
model = annealvi.TemperedLDA(10, max_iter=1, n_init=1, batch_size=256, random_state=0)
sys.setprofile(count)
model.fit(X)
sys.setprofile(None)
print(json.dumps([len(classes), len(frames), len(set(frames)), steps[9]]))
"""


@cache
def tree(path: Path) -> tuple[ast.AST, ...]:
    """The syntax tree of a file, as a tuple of all its nodes."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))))


def nodes(paths: Iterable[Path], *kinds: type[ast.AST]) -> Iterator[Any]:
    """Yield the nodes of given kinds in given files."""
    return (node for path in paths for node in tree(path) if isinstance(node, kinds))


def sources(folder: Path, *rooms: str) -> list[Path]:
    """The Python files of the package in a checkout, or only those of some folders."""
    return [p for r in rooms or ("",) for p in sorted((folder / PACKAGE / r).rglob("*.py"))]


def modules(folder: Path) -> dict[str, Path]:
    """The file of each module; the name of a package refers to its ``__init__.py``."""
    names = {path: path.relative_to(folder).with_suffix("").parts for path in sources(folder)}
    return {".".join(p[:-1] if p[-1] == "__init__" else p): path for path, p in names.items()}


# ------------------------------------------------------------------------------ lines


@cache
def lines_of(path: Path) -> tuple[set[int], set[int]]:
    """The numbers of the lines with code, and of the lines of docstrings."""
    documentation: set[int] = set()
    for node in nodes([path], ast.Module, ast.ClassDef, *FUNCTIONS):
        if ast.get_docstring(node, clean=False):
            documentation |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    code: set[int] = set()
    with path.open(encoding="utf-8") as stream:
        for token in tokenize.generate_tokens(stream.readline):
            if token.type not in NO_CODE:
                code |= set(range(token.start[0], token.end[0] + 1))
    return code - documentation, documentation


def n_code(paths: list[Path]) -> int:
    return sum(len(lines_of(path)[0]) for path in paths)


def n_lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def persistence(folder: Path) -> int:
    """Count the code lines of files and functions that only read or write fitted state."""
    total = 0
    for path in sources(folder):
        names = path.relative_to(folder / PACKAGE).with_suffix("").parts
        if names[0] in {"corpus", "datasets", "data"}:  # these contain no fitted state
            continue
        code = lines_of(path)[0]
        chosen = code
        if not STATE_FILES & {names[0], names[-1], "/".join(names)}:
            chosen = set()
            for node in nodes([path], *FUNCTIONS):
                if STATE_FUNCTIONS.search(node.name):
                    chosen |= set(range(node.lineno, node.end_lineno + 1))
        total += len(code & chosen)
    return total


# --------------------------------------------------------------------- names and classes


def functions_with(folder: Path, parameter: str) -> int:
    """Count the functions that have a parameter with a given name."""
    signatures = (node.args for node in nodes(sources(folder), *FUNCTIONS))
    return sum(
        parameter in {a.arg for a in (*s.posonlyargs, *s.args, *s.kwonlyargs)} for s in signatures
    )


def questions_of_temperatures(folder: Path) -> int:
    """Count calls of isinstance outside temperature/ with a class defined in temperature/."""
    home = sources(folder, "temperature")
    kinds = {node.name for node in nodes(home, ast.ClassDef)}
    calls = nodes(set(sources(folder)) - set(home), ast.Call)
    return sum(
        getattr(call.func, "id", None) == "isinstance"
        and bool(kinds & set(re.findall(r"\w+", ast.unparse(call.args[1]))))
        for call in calls
    )


def questions_of_models(folder: Path) -> int:
    """Count the tests of a model's kind above the estimators, outside topics/source.py.

    They are `isinstance` with TopicModel or TemperedLDA, and `hasattr` and `getattr` of attributes
    that only some models have.  Tests that an object makes of itself are not counted.
    """
    home = folder / PACKAGE / "topics" / "source.py"
    total = 0
    for call in nodes(set(sources(folder, "topics", "cli", "plot")) - {home}, ast.Call):
        name = getattr(call.func, "id", None)
        asked = [ast.unparse(argument) for argument in call.args]
        if name == "isinstance":
            total += bool(re.search("TopicModel|TemperedLDA", asked[1]))
        elif name in ("hasattr", "getattr") and asked[0] != "self":
            total += asked[1].strip("'") in OF_MODELS
    return total


def functions_of_others(folder: Path) -> int:
    """Count functions outside of classes whose first parameter is self: hidden methods."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sources(folder))
    functions = (node for tree in trees for node in tree.body if isinstance(node, FUNCTIONS))
    return sum(bool(f.args.args) and f.args.args[0].arg == "self" for f in functions)


def defined(path: Path) -> set[str]:
    """The names that a file defines: functions, classes, variables, attributes of self and cls."""
    names = {node.name for node in nodes([path], ast.ClassDef, *FUNCTIONS)}
    for node in nodes([path], ast.Name, ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else is_own(node.value) and node.attr)
    return names


def is_own(value: ast.expr) -> bool:
    """Whether an expression is self, cls or super()."""
    return ast.unparse(value) in {"self", "cls"} or ast.unparse(value).startswith("super(")


@cache
def private_uses(folder: Path) -> list[str]:
    """List imports of private names, and ``x._name`` if x is not self, cls or super()."""
    # The type of x is not known from the source.  If the file itself defines the name, only the
    # estimator's use is counted, and a name that classes of two files share may be missed.
    known = modules(folder)
    uses = []
    for name, path in known.items():
        place = path.relative_to(folder).as_posix()
        for line, source, imported_name in imported(path, name):
            file = folder.joinpath(*source.split("."), imported_name or "")
            is_module = file.is_dir() or any(file.with_suffix(s).is_file() for s in MODULES)
            if imported_name and PRIVATE.match(imported_name) and not is_module:
                uses.append(f"{place}:{line}: from {source} import {imported_name}")
        defined_names = defined(path)
        for node in nodes([path], ast.Attribute):
            if not PRIVATE.match(node.attr) or node.attr in NAMEDTUPLE or is_own(node.value):
                continue
            text = ast.unparse(node)
            if text not in known and (node.attr not in defined_names or OF_ESTIMATOR.match(text)):
                uses.append(f"{place}:{node.lineno}: {text}")
    return sorted(uses)


# ---------------------------------------------------------------------------- imports


def imported(path: Path, name: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield the line, the module and the name (None: the module) of a module's own imports."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in nodes([path], ast.Import, ast.ImportFrom):
        source = (getattr(node, "module", None) or "").split(".")
        if getattr(node, "level", 0):
            source = package[: len(package) - node.level + 1] + list(filter(None, source))
        for alias in node.names:
            if isinstance(node, ast.Import) and alias.name.split(".")[0] == PACKAGE:
                yield node.lineno, alias.name, None
            elif source[0] == PACKAGE:
                yield node.lineno, ".".join(source), alias.name


def imports(folder: Path) -> Graph:
    """The modules that each module imports, also within functions and for type checkers."""
    # Python also runs the __init__.py of each parent.  This is not counted, because almost all
    # modules would then form a circle.  Compiled modules count as the package that contains them.
    known = modules(folder)
    graph: Graph = {}
    for name, path in known.items():
        targets = set()
        for _, source, imported_name in imported(path, name):
            target = source if imported_name is None else f"{source}.{imported_name}"
            while target not in known and "." in target:
                target = target.rpartition(".")[0]
            targets.add(target)
        graph[name] = targets - {name}
    return graph


def reached(graph: Graph, start: str) -> set[str]:
    """The modules that a module imports, directly or through others."""
    visited = set[str]()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in visited:
            visited.add(name)
            waiting += graph.get(name, ())
    return visited


def circles(graph: Graph) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""
    reach = {name: reached(graph, name) for name in graph}
    groups = {
        tuple(sorted(target for target in reach[name] if name in reach.get(target, ())))
        for name in graph
        if name in reach[name]
    }
    return [list(group) for group in sorted(groups)]


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def floor(module: str) -> int:
    """The number of a module's layer, or -1 if it is in no layer of FLOORS."""
    return next((n for n, rooms in enumerate(FLOORS) if room(module) in rooms), -1)


def upward_imports(graph: Graph) -> list[str]:
    """List imports from the same or a higher layer, and modules without a layer."""
    lost = [f"{name} has no floor: add its room to FLOORS" for name in graph if floor(name) < 0]
    return lost + [
        f"{name} (floor {floor(name)}) imports {target} (floor {floor(target)})"
        for name, targets in graph.items()
        for target in sorted(targets)
        if room(target) != room(name) and floor(target) >= floor(name) >= 0
    ]


# ---------------------------------------------------------------------------- figures


def fit_figures(folder: Path) -> list[int | str]:
    """The figures that the program FIT prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT],
        env=os.environ | {"PYTHONPATH": str(folder.resolve())},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else ["not built"] * 4


# ------------------------------------------------------------------- the face and the kernels


def parameters_of(folder: Path, name: str = "TemperedLDA") -> int:
    """The number of parameters of an estimator's constructor."""
    (cls,) = (
        c for c in nodes([folder / PACKAGE / "lda/estimator.py"], ast.ClassDef) if c.name == name
    )
    for init in (f for f in cls.body if isinstance(f, FUNCTIONS) and f.name == "__init__"):
        return len(init.args.args) - 1 + len(init.args.kwonlyargs)
    fields = [f for f in cls.body if isinstance(f, ast.AnnAssign)]  # for a dataclass
    kinds = [ast.unparse(f.annotation) for f in fields]
    return sum(kind != "KW_ONLY" and not kind.startswith("ClassVar") for kind in kinds)


def kernel_files(folder: Path) -> list[Path]:
    """The sources of the kernels, without files that the build makes."""
    listed = subprocess.run(
        ["git", "ls-files", f"{PACKAGE}/_kernels"], cwd=folder, capture_output=True, text=True
    )
    return [folder / name for name in listed.stdout.split()]


def longest_signature(folder: Path) -> int:
    """The largest number of arguments of a function in a .pyx, with one argument on each line."""
    longest = 0
    for path in kernel_files(folder):
        if path.suffix == ".pyx":
            text = re.sub(r"#.*", "", path.read_text("utf-8"))
            for arguments in re.findall(
                r"^(?:cp?)?def [^(\n]*\((.*?)\)[^)\n]*:$", text, re.M | re.S
            ):
                outside = re.sub(r"\[[^\]]*\]", "", arguments)
                longest = max(
                    longest, len([argument for argument in outside.split(",") if argument.strip()])
                )
    return longest


def places_of(folder: Path, kernel: str = "add_statistics") -> int:
    """How often the name of a kernel occurs in the sources of the kernels, outside comments."""
    total = 0
    for path in kernel_files(folder):
        is_c = path.suffix in {".c", ".h"}
        comments = r"/\*.*?\*/" if is_c else r"#.*?$|\"\"\".*?\"\"\""
        text = re.sub(comments, "", path.read_text("utf-8"), flags=re.S | re.M)
        total += len(re.findall(rf"(?<!\w){kernel}(?!_?[a-z])", text))
    return total


def figures(folder: Path) -> dict[str, object]:
    """All rows of the table."""
    files = sources(folder)
    graph = imports(folder)
    heart = sources(folder, "lda", "models/lda", "inference")
    classes, frames, frame_files, calls = fit_figures(folder)
    docs = (folder / "docs").rglob("*.md")
    return {
        "lines of code of the package": n_code(files),
        "lines of docstrings": sum(len(lines_of(path)[1]) for path in files),
        "files": len(files),
        "lda + models/lda + inference: code": n_code(heart),
        "lda + models/lda + inference: files": len(heart),
        "code of persistence": persistence(folder),
        "classes at work in a fit before its kernel": classes,
        "frames from fit to the kernel": frames,
        "files from fit to the kernel": frame_files,
        "functions of ours that a step calls": calls,
        "isinstance of temperatures outside temperature/": questions_of_temperatures(folder),
        "questions for the kind of a model": questions_of_models(folder),
        "functions with self outside their class": functions_of_others(folder),
        "functions that take owner": functions_with(folder, "owner"),
        "functions that take tempering": functions_with(folder, "tempering"),
        "circles of imports": len(circles(graph)),
        "upward imports": len(upward_imports(graph)),
        "private uses across files": len(private_uses(folder)),
        "parameters of TemperedLDA": parameters_of(folder),
        "lines of _kernels, all files": n_lines(kernel_files(folder)),
        "arguments of the longest function in a .pyx": longest_signature(folder),
        "places that name the kernel add_statistics": places_of(folder),
        "lines of tests": n_lines((folder / "tests").rglob("*.py")),
        "lines of bench": n_lines((folder / "bench").rglob("*.py")),
        "words of docs/": sum(len(path.read_text("utf-8").split()) for path in docs),
    }


def ratio(before: object, after: object) -> str:
    is_number = isinstance(before, int) and isinstance(after, int)
    return f"{after / before:.2f}" if is_number and before else "–"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folders", nargs="*", type=Path, default=[CHECKOUT], metavar="FOLDER")
    options.add_argument("--pages", action="store_true", help="count the words of pages instead")
    options.add_argument(
        "--places", action="store_true", help="with --pages, list each place of a habit"
    )
    chosen = options.parse_args()
    folders = chosen.folders
    for folder in folders:
        if not (folder / PACKAGE / "__init__.py").is_file():
            options.error(f"there is no package {PACKAGE} in {folder}")
    if chosen.pages:
        print(*(pages.report(folder, places=chosen.places) for folder in folders), sep="\n\n")
        return
    columns = [figures(folder) for folder in folders]
    rows = [(name, *(one[name] for one in columns)) for name in columns[0]]
    if len(columns) == 2:
        rows = [(*row, ratio(*row[1:])) for row in rows]
        print(table(["", "before", "after", "ratio"], rows))
    else:
        print(*(f"{row[0]:50}{row[1]}" for row in rows), sep="\n")
    graph = imports(folders[-1])
    faults = [*circles(graph), *upward_imports(graph), *private_uses(folders[-1])]
    print(*("  " + str(fault) for fault in faults), sep="\n")


if __name__ == "__main__":
    main()
