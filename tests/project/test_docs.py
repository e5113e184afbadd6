"""The snippets of the pages run, the docstrings' examples too, and the reference is complete."""

import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import annealvi
from tests.marks import quick_values
from tests.reference import reference, thing

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
TEXTS = [*CHECKOUT.glob("*.md"), *DOCS.glob("*.md")]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
#: What PyTorch is needed for.
NEEDS_TORCH = "annealvi.deep"
QUICK_PAGES = ["mixtures", "proximity", "runs"]
SLOW_MODULES = ["topics.choice", "topics.summary", "topics.effects", "topics.refits"]
SLOW_MODULES += ["proximity.ascent", "temperature.variational"]


def snippets(path, *, deep):
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    if find_spec("sklearn.callback") is None:  # before scikit-learn 1.9
        found = [snippet for snippet in found if "sklearn.callback" not in snippet]
    return [snippet for snippet in found if (NEEDS_TORCH in snippet) == deep]


def pages(*, deep):
    """The pages with snippets; some have tests of their own."""
    names = [path.stem for path in sorted(DOCS.glob("*.md")) if snippets(path, deep=deep)]
    return [name for name in names if name not in ("cells", "coming_from")]


def run(path, folder, monkeypatch, *, deep=False):
    monkeypatch.chdir(folder)  # some write files
    text = path.read_text(encoding="utf-8")
    namespace = {"__name__": "__main__" if "__main__" in text else "a page"}
    for snippet in snippets(path, deep=deep):
        exec(compile(snippet, path.name, "exec"), namespace)


def test_readme_snippets(capsys, tmp_path, monkeypatch):
    run(CHECKOUT / "README.md", tmp_path, monkeypatch)
    assert capsys.readouterr().out.count("\n") >= 2


@pytest.mark.parametrize("page", quick_values(pages(deep=False), *QUICK_PAGES))
def test_snippets_of_the_docs(page, tmp_path, monkeypatch):
    run(DOCS / f"{page}.md", tmp_path, monkeypatch)


@pytest.mark.deep
@pytest.mark.parametrize("page", pages(deep=True))
def test_snippets_of_the_deep_pages(page, tmp_path, monkeypatch):
    run(DOCS / f"{page}.md", tmp_path, monkeypatch, deep=True)


def test_links_in_the_texts_lead_somewhere():
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        for link, anchor in re.findall(r"\]\(([^):#]+)(?:#([^)]*))?\)", text):
            assert (path.parent / link).exists(), (path.name, link)
            if anchor:
                lines = (path.parent / link).read_text(encoding="utf-8").splitlines()
                headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
                anchors = [re.sub(r"[^\w\- ]", "", h).replace(" ", "-") for h in headings]
                assert anchor in anchors, (path.name, link, anchor)


def test_the_tests_of_the_papers_are_there():
    """Each test that stands beside a part of a paper."""
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(*found, marks=[pytest.mark.deep] if found[0].startswith(NEEDS_TORCH) else [])
        for found in reference()
    ],
)
def test_everything_in_the_reference_is_documented(module, name):
    """Each parameter is listed, and none is hidden behind ``**options``."""
    value = thing(module, name)
    assert inspect.getdoc(value)
    function = vars(value).get("__init__") if inspect.isclass(value) else value
    if inspect.isfunction(function):
        parameters = inspect.signature(function).parameters
        names = {n for n, p in parameters.items() if n != "self" and p.kind != p.VAR_POSITIONAL}
        assert not names - documented(value.__doc__) - {"kwargs"}, name


#: No page of their own: a version, and dicts of names that the functions' docstrings list.
WITHOUT = {"__version__", "KINDS", "DISTANCES", "STATISTICS"}


MODULES = sorted({module for module, _ in reference()})


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=[pytest.mark.deep] * name.startswith(NEEDS_TORCH))
        for name in MODULES
    ],
)
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
