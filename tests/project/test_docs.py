"""The README's snippets run, the docstrings' examples too, and no parameter is left out."""

import doctest
import importlib
import inspect
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import annealvi
from tests.marks import slow_values

CHECKOUT = Path(__file__).resolve().parents[2]


def modules(*, deep):
    """All modules that a reader may open, those that need PyTorch or the others."""
    unwanted = ("_", "cli", "data.") if deep else ("_", "cli", "data.", "deep")
    package = importlib.import_module("annealvi.deep" if deep else "annealvi")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        name = found.name.removeprefix("annealvi.")
        if not name.startswith(unwanted):
            yield name


MODULES = sorted(modules(deep=False))


def deep_modules():
    """Those that need PyTorch, where it is; their tests are marked."""
    return sorted(modules(deep=True)) if find_spec("torch") else []


def with_deep(names):
    return [*names, *(pytest.param(name, marks=pytest.mark.deep) for name in deep_modules())]


def run_snippets(name, deep=False):
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    chosen = [snippet for snippet in snippets if ("annealvi.deep" in snippet) == deep]
    if find_spec("sklearn.callback") is None:  # before scikit-learn 1.9
        chosen = [snippet for snippet in chosen if "sklearn.callback" not in snippet]
    assert chosen
    namespace = {"__name__": "__main__" if "__main__" in text else "a page"}
    for snippet in chosen:
        exec(compile(snippet, name, "exec"), namespace)


def test_readme_snippets(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one writes a file
    run_snippets("README.md")
    assert capsys.readouterr().out.count("\n") >= 2


PAGES = ["guide", "inference", "papers", "proximity", "seeds", "summary"]
PAGES += ["temperatures", "tempering"]
PAGES_THAT_TAKE_TIME = ["n_topics"]


@pytest.mark.parametrize("page", [*PAGES, *slow_values(*PAGES_THAT_TAKE_TIME)])
def test_snippets_of_the_docs(page):
    run_snippets(f"docs/{page}.md")


PAGES_WITH_FILES = ["files", "mixtures", "pictures", "serving", "start", "streams"]
PAGES_WITH_FILES_THAT_TAKE_TIME = ["index", "scale"]


@pytest.mark.parametrize(
    "page", [*PAGES_WITH_FILES, *slow_values(*PAGES_WITH_FILES_THAT_TAKE_TIME)]
)
def test_snippets_that_write_files(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_snippets(f"docs/{page}.md")
    assert list(tmp_path.iterdir())


def test_snippets_of_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_snippets("docs/texts.md")
    words = capsys.readouterr().out.split()
    assert {"sparse", "hypothesis", "cdf"} <= set(words)


DEEP_PAGES = ["deep_models", "papers"]


@pytest.mark.deep
@pytest.mark.parametrize("name", DEEP_PAGES)
def test_snippets_of_the_deep_pages(name):
    run_snippets(f"docs/{name}.md", deep=True)


def test_every_block_of_python_runs():
    """On one of the pages above, or in tests/project/test_coming_from.py."""
    run = {*PAGES, *PAGES_THAT_TAKE_TIME, *PAGES_WITH_FILES, *PAGES_WITH_FILES_THAT_TAKE_TIME}
    run |= {*DEEP_PAGES, "README", "texts", "coming_from"}
    for path in [CHECKOUT / "README.md", *CHECKOUT.glob("docs/*.md")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        fences = [line.strip("`") for line in lines if line.startswith("```")][::2]
        assert set(fences) <= {"", "python", "sh", "text", "{toctree}"} or path.stem in (
            *("changelog", "contributing"),  # these include others
        )
        assert ("python" in fences) == (path.stem in run), path.name
        # a block that is indented, or has no language, would not run
        code = re.compile(r">>> |import |from \S+ import |annealvi (fit|label|show|compare) ")
        inside = None
        for line in lines:
            if line.startswith("```"):
                inside = line.strip("`") if inside is None else None
            elif inside not in ("python", "sh", "text"):
                loose = line.startswith("    ") or inside is not None
                assert not (loose and code.match(line.strip())), (path.name, line)


def test_links_in_the_texts_lead_somewhere():
    pages = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "SECURITY.md"]
    pages += [*CHECKOUT.glob("docs/*.md")]
    for path in pages:
        text = path.read_text(encoding="utf-8")
        for link, anchor in re.findall(r"\]\(([^)#]+)(?:#([^)]*))?\)", text):
            assert (path.parent / link).exists(), (path.name, link)
            if anchor:
                lines = (path.parent / link).read_text(encoding="utf-8").splitlines()
                headings = [line.lstrip("# ").lower() for line in lines if line.startswith("#")]
                anchors = [re.sub(r"[^\w\- ]", "", h).replace(" ", "-") for h in headings]
                assert anchor in anchors, (path.name, link, anchor)


@pytest.mark.parametrize("name", ["benchmarks", "quality", "summary"])
def test_the_texts_have_room_for_what_is_measured(name):
    text = (CHECKOUT / f"docs/{name}.md").read_text(encoding="utf-8")
    begin, end = (f"<!-- measured: {word} -->" for word in ("begin", "end"))
    assert text.count(begin) == text.count(end) == 1 and text.index(begin) < text.index(end)


@pytest.mark.parametrize("name", with_deep(MODULES))
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"annealvi.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def documented(doc):
    """Names in the sections that NumPy-style docstrings list names in."""
    names = set()
    for line in inspect.cleandoc(doc or "").splitlines():
        match = re.match(r"^([\w*, ]+) : \S", line) or re.match(r"^(\w+(?:, \w+)+)$", line)
        if match:
            names |= {name.strip(" *") for name in match[1].split(",")}
    return names


def public(modules):
    for name in modules:
        module = importlib.import_module(f"annealvi.{name}")
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{name}.{attribute}", value


def reference():
    """Names of the reference with the module of each, as docs/api.rst lists them."""
    module = ""
    for line in (CHECKOUT / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.match(r"   \w[\w.]*$", line):
            yield f"{module}.{line.strip()}"


def things():
    """All that the reference lists; what is not listed needs no more than a line."""
    for name in reference():
        if not name.startswith("annealvi.deep"):
            yield name
        elif find_spec("torch"):
            yield pytest.param(name, marks=pytest.mark.deep)


@pytest.mark.parametrize("name", list(things()))
def test_everything_public_is_documented(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if not callable(thing):
        return
    assert inspect.getdoc(thing), name
    function = thing.__init__ if inspect.isclass(thing) else thing
    if inspect.isclass(thing) and "__init__" not in vars(thing):
        return
    parameters = [p for p in inspect.signature(function).parameters if p not in ("self",)]
    missing = set(parameters) - documented(thing.__doc__) - {"args", "kwargs"}
    assert not missing, (name, missing)


#: Names that a user chooses: of values that are recorded, of parameters of any estimator.
ANY_NAMES = {"Monitor.record", "load", "FittedTopics.load", "TopicModel.load"}
ANY_NAMES |= {"TopicModel.set_params", "Schema", "Schema.load", "Schema.restore", "check_csr"}


@pytest.mark.parametrize("name", with_deep(MODULES))
def test_no_parameter_is_hidden(name):
    functions = {}
    for path, thing in public([name]):
        own = path.removeprefix(f"{name}.")
        functions |= {own: thing} if inspect.isfunction(thing) else methods_of(own, thing)
    hiding = {
        path
        for path, function in functions.items()
        if inspect.Parameter.VAR_KEYWORD
        in [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    }
    assert hiding <= ANY_NAMES


def methods_of(owner, cls):
    """The public methods of a class, and its own __init__."""
    found = {
        f"{owner}.{name}": method
        for name, method in inspect.getmembers(cls, inspect.isroutine)
        if not name.startswith("_")
        and (getattr(method, "__module__", None) or "").startswith("annealvi.")
    }
    made_by = vars(cls).get("__init__")
    is_protocol = getattr(cls, "_is_protocol", False)
    return found if made_by is None or is_protocol else found | {owner: made_by}


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")  # in 10 steps
@pytest.mark.parametrize("temperature", ["annealed", "variational", "local"])
def test_every_fitted_attribute_is_documented(temperature):
    X = annealvi.datasets.load_arxiv_abstracts().data[:50]
    lda = annealvi.TemperedLDA(2, temperature=temperature).fit(X)
    fitted = {name for name in dir(lda) if name.endswith("_") and not name.startswith("_")}
    assert fitted <= documented(annealvi.TemperedLDA.__doc__)


def test_every_fitted_attribute_of_topic_models_is_documented():
    for estimator in (annealvi.TopicModel(2), annealvi.topics.TopicVectorizer()):
        estimator.fit(["stars and planets", "bread and butter"] * 10)
        fitted = {name for name in dir(estimator) if name.endswith("_") and name[0] != "_"}
        assert fitted <= documented(type(estimator).__doc__), type(estimator)


@pytest.mark.filterwarnings("ignore:The learned temperature did not cool")  # in 10 iterations
@pytest.mark.parametrize("temperature", ["annealed", "variational"])
def test_every_fitted_attribute_of_the_mixtures_is_documented(temperature):
    X = annealvi.datasets.make_shape_mixture(50, random_state=0).data
    options = dict(temperature=temperature, max_iter=10, tol=0)
    for estimator in (
        annealvi.TemperedFMM(3, noise_variance=0.1, **options),
        annealvi.TemperedGaussianMixture(3, covariances=0.1, **options),
        annealvi.TemperedGaussianMixture(3, **(options | dict(temperature=1))),
    ):
        estimator.fit(X)
        fitted = {name for name in dir(estimator) if name.endswith("_") and name[0] != "_"}
        assert fitted <= documented(type(estimator).__doc__), type(estimator)
