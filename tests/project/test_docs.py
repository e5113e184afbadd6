"""The snippets of the pages run, the docstrings' examples too, and the reference is complete."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec

import pytest

import annealvi
from annealvi.lda.settings import RECIPE, SKLEARN
from bench import CHECKOUT
from tests.marks import cases, quick_values
from tests.printed import BLOCK, blocks
from tests.reference import reference, thing

DOCS = CHECKOUT / "docs"
TEXTS = [*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md")]
#: No page of their own: a version, and dicts of names that the functions' docstrings list.
WITHOUT = {"__version__", "KINDS", "DISTANCES", "STATISTICS"}
#: What PyTorch is needed for.
NEEDS_TORCH = "annealvi.deep"
QUICK_PAGES = ["do/mixtures", "record/proximity", "understand/runs"]
SLOW_MODULES = ["topics.choice", "topics.summary", "topics.effects", "topics.refits"]
SLOW_MODULES += ["proximity.ascent", "temperature.variational"]


def pages(*, deep):
    """The pages with blocks of Python, but for two that have tests of their own."""
    found = []
    for path in sorted(DOCS.rglob("*.md")):
        codes = [match["code"] for match in BLOCK.finditer(path.read_text(encoding="utf-8"))]
        if any((NEEDS_TORCH in code) == deep for code in codes):
            found.append(path.relative_to(DOCS).with_suffix("").as_posix())
    return [name for name in found if name not in ("do/cells", "do/coming_from")]


def check(path, folder, monkeypatch, **selection):
    """Run a page; where it shows output, or prints and is for users, it prints just that."""
    monkeypatch.chdir(folder)  # some write files
    is_shown = path.parent.name in ("learn", "do", CHECKOUT.name)
    for block in blocks(path, **selection):
        if block.mark is None and (block.expected or is_shown):
            assert block.printed == block.expected, block.code


def test_what_readme_prints(tmp_path, monkeypatch):
    check(CHECKOUT / "README.md", tmp_path, monkeypatch)


@pytest.mark.parametrize("page", quick_values(pages(deep=False), *QUICK_PAGES))
def test_what_the_pages_print(page, tmp_path, monkeypatch):
    check(DOCS / f"{page}.md", tmp_path, monkeypatch, without=NEEDS_TORCH)


@pytest.mark.deep
@pytest.mark.parametrize("page", pages(deep=True))
def test_what_the_deep_pages_print(page, tmp_path, monkeypatch):
    check(DOCS / f"{page}.md", tmp_path, monkeypatch)


def test_each_page_has_a_way_back_and_each_picture_says_what_it_shows():
    below = {DOCS / "index.md"}
    for path in DOCS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        for tree in re.findall(r"```{toctree}\n(.*?)```", text, flags=re.DOTALL):
            names = re.findall(r"^(?:.*<)?([\w./]+)>?$", tree.strip(), flags=re.MULTILINE)
            below |= {(path.parent / f"{name}.md").resolve() for name in names}
    assert {path.resolve() for path in DOCS.rglob("*.md")} <= {one.resolve() for one in below}
    for path in TEXTS:
        for alt, picture in re.findall(r"!\[(.*?)\]\((.*?)\)", path.read_text(encoding="utf-8")):
            assert len(alt.split()) >= 5, (path.name, picture)


def test_links_in_the_texts_lead_somewhere():
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        for link, anchor in re.findall(r"\]\(([^):#\s]*)(?:#([^)]*))?\)", text):
            target = path.parent / link if link else path
            assert target.exists(), (path.name, link)
            if anchor:
                lines = target.read_text(encoding="utf-8").splitlines()
                headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
                anchors = [re.sub(r"[^\w\- ]", "", h).replace(" ", "-") for h in headings]
                assert anchor in anchors, (path.name, link, anchor)


@pytest.mark.parametrize("page", sorted((DOCS / "record").glob("*.md")), ids=lambda page: page.stem)
def test_each_page_of_the_record_begins_with_when_and_how_it_was_measured(page):
    if page.stem != "index":
        _, _, names, _, head, *_ = page.read_text(encoding="utf-8").splitlines()
        assert names == "| measured | commit | machine | command |"
        assert re.match(
            r"\| \d\d?( (to|and) \d\d)? November 2026 \| `[0-9a-f]{8}` \| [^|]+ \| .+ \|", head
        )


def test_the_page_of_warnings_quotes_the_code():
    """Numbers and names of a message stand as "..." on the page."""
    found = []
    for path in (CHECKOUT / "annealvi").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [getattr(part, "value", "") for part in parts]
            found.append("...".join(text for text in texts if isinstance(text, str)))
    page, _ = (DOCS / "look_up" / "errors.md").read_text(encoding="utf-8").split("## Frequent")
    quoted = re.findall(r"^\| `([^`]+)`", page, flags=re.MULTILINE)
    assert len(quoted) > 15
    for text in quoted:
        parts = [re.escape(part.strip()) for part in text.split("...") if part]
        message = re.compile(".*".join(parts), flags=re.DOTALL)
        assert text == "InconsistentVersionWarning" or any(map(message.search, found)), text


def test_the_tests_of_the_papers_are_there():
    text = (DOCS / "record" / "papers.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 30
    for path, name in named:
        assert f"def {name}(" in (CHECKOUT / path).read_text(encoding="utf-8"), (path, name)


def modules():
    """All modules but private ones; those that need PyTorch are marked, and left out without it."""
    for found in pkgutil.walk_packages(annealvi.__path__, "annealvi."):
        name = found.name.removeprefix("annealvi.")
        if not name.startswith(("_", "cli", "data.", "deep")):
            yield pytest.param(found.name, marks=[pytest.mark.slow] * (name in SLOW_MODULES))
    if find_spec("torch"):
        deep = importlib.import_module(NEEDS_TORCH)
        for found in pkgutil.walk_packages(deep.__path__, f"{NEEDS_TORCH}."):
            yield pytest.param(found.name, marks=pytest.mark.deep)


@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def public_names(module):
    """The public names of a module: its ``__all__``, or what it defines without underscore."""
    loaded = importlib.import_module(module)
    ours = (n for n, v in vars(loaded).items() if getattr(v, "__module__", None) == module)
    defined = [name for name in ours if name[0] != "_" and callable(vars(loaded)[name])]
    return getattr(loaded, "__all__", defined)


def documented(doc):
    """Names in the sections that NumPy-style docstrings list names in."""
    names = set()
    for line in inspect.cleandoc(doc or "").splitlines():
        match = re.match(r"^([\w*, ]+) : \S", line) or re.match(r"^(\w+(?:, \w+)+)$", line)
        if match:
            names |= {name.strip(" *") for name in match[1].split(",")}
    return names


def marked(module, *name):
    """A case that may need PyTorch."""
    marks = [pytest.mark.deep] if module.startswith(NEEDS_TORCH) else []
    return pytest.param(module, *name, marks=marks)


@cases("module, name", *(marked(*found) for found in reference()))
def test_everything_in_the_reference_is_documented(module, name):
    """Each parameter is listed, and none is hidden behind ``**options``."""
    value = thing(module, name)
    assert inspect.getdoc(value)
    function = vars(value).get("__init__") if inspect.isclass(value) else value
    if inspect.isfunction(function):
        parameters = inspect.signature(function).parameters
        names = {n for n, p in parameters.items() if n != "self" and p.kind != p.VAR_POSITIONAL}
        assert not names - documented(value.__doc__) - {"kwargs"}, name


@cases("module", *(marked(module) for module in sorted({module for module, _ in reference()})))
def test_every_public_name_is_in_the_reference(module):
    assert not set(public_names(module)) - {name for _, name in reference()} - WITHOUT


def fits():
    """Fitted estimators, with all the attributes that a temperature may give."""
    X = annealvi.datasets.load_arxiv_abstracts().data[:50]
    for temperature in ("annealed", "variational", "local"):
        yield annealvi.TemperedLDA(2, temperature=temperature).fit(X)
        options = dict(temperature=temperature, max_iter=10, tol=0)
        if temperature != "local":
            yield annealvi.TemperedMultinomialMixture(2, **options).fit(X)
    yield annealvi.TopicModel(2).fit(["stars and planets", "bread and butter"] * 10)
    X = annealvi.datasets.make_shape_mixture(50, random_state=0).data
    for temperature in (1, "annealed", "variational"):
        options = dict(temperature=temperature, max_iter=10, tol=0)
        yield annealvi.TemperedFMM(3, noise_variance=0.1, **options).fit(X)
        covariances = None if temperature == 1 else 0.1
        yield annealvi.TemperedGaussianMixture(3, covariances=covariances, **options).fit(X)


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")  # in 10 steps
def test_every_fitted_attribute_is_documented():
    for estimator in fits():
        fitted = {name for name in dir(estimator) if name.endswith("_") and name[0] != "_"}
        assert fitted <= documented(type(estimator).__doc__), type(estimator)


def test_the_page_of_defaults_has_the_values_of_both_presets():
    page = (DOCS / "look_up" / "defaults.md").read_text(encoding="utf-8")
    compared = 0
    for name, *cells in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", page, flags=re.MULTILINE):
        for cell, values in zip(cells, (RECIPE, SKLEARN), strict=True):
            if re.fullmatch(r'`"[^"`]+"`|\d+', cell) and name != "temperature":
                assert values[name] == ast.literal_eval(cell.strip("`"))
                compared += 1
    assert compared == 7
