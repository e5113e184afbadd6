"""The targets: all that docs/api.rst lists, called with what constraints and annotations allow."""

from __future__ import annotations

import copy
import functools
import gzip
import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

import annealvi
from annealvi import (
    TemperedFMM,
    TemperedGaussianMixture,
    TemperedLDA,
    TemperedMultinomialMixture,
    TopicModel,
    partition,
)
from annealvi import corpus as corpora
from annealvi import proximity as prox
from annealvi.callbacks import Checkpoint, HeldOut, ProgressBar
from annealvi.exceptions import DivergenceError
from annealvi.files import read, write
from annealvi.models.lda_prior import LDAPrior
from annealvi.scale.engines import SerialEngine
from annealvi.schedules import Exponential, Linear
from annealvi.topics import TopicVectorizer, choose_n_topics, describe
from tests.files.mutations import mutated_bytes, mutated_tree
from tests.fuzz import strategies as s
from tests.fuzz.judge import Trial, UserError, anything, check_finite, check_not_infinite
from tests.fuzz.strategies import each, odd_for, one_of
from tests.reference import reference, thing

WORDS, TOPICS = s.WIDTH, s.TOPICS
TEXTS = ["moon orbit moon", "goal team goal", "orbit comet", "the team"] * 5
COUNTS = np.random.RandomState(0).poisson(1.0, (20, WORDS)).astype(float)
POINTS = np.random.RandomState(0).standard_normal((12, WORDS))
COVARIATES = {"x": np.arange(20.0), "g": ["a", "b"] * 10}
POINT_MODELS = (TemperedFMM, TemperedGaussianMixture, prox.BernoulliFactorModel)
DASK, DEEP = "annealvi.dask", "annealvi.deep"
#: What the library makes or calls itself, with what it has checked; and a base class.
EXEMPT = {"Ascent", "Bernoulli", "Choice", "Temperature", "TopicSummary"}
EXEMPT |= {"Effects", "Refits", "Scores", "Sheet", "TopicDocument"}
NOT_FUZZED = {"annealvi.model", "annealvi.inference", "annealvi.deep.energies"}
INNER = {
    *("attach", "copy", "learned", "observe", "tempered_energy", "tempering", "path", "perturbs"),
    *("observes", "plan", "inverse", "settled", "during_fit", "begin", "of"),
    *("state_dict", "load_state_dict", "log_partition", "draw_log_partition"),
    *("jensen_log_partition", "map_log_partition", "elbo", "gradients", "best_means"),
}
#: How often a target is called, if not once a round.
OFTEN = {"TemperedLDA": 12, "TemperedFMM": 5, "TemperedGaussianMixture": 5, "TopicModel": 4}
OFTEN |= {"metrics.document_completion": 3, "partition.log_partition": 3, "topics.describe": 2}
OFTEN |= {"topics.choose_n_topics": 2, "files.load": 4, "files.resume": 4}


def all_targets(deep: bool = False) -> dict[str, Callable[[Trial], None]]:
    """All targets by name; with `deep` those of the models that need PyTorch instead."""
    targets: dict[str, Callable[[Trial], None]] = {}
    for module, name in reference():
        needs_plotly = module == "annealvi.plot.interactive"
        if module in NOT_FUZZED or name in EXEMPT or module.startswith(DEEP) != deep:
            continue
        if needs_plotly and find_spec("plotly") is None:
            continue
        value = thing(module, name)
        error = inspect.isclass(value) and issubclass(value, Exception)
        if not error and not getattr(value, "_is_protocol", False):
            run = run_class if inspect.isclass(value) else run_function
            short = f"{module}.{name}".partition(".")[2]
            targets[short] = functools.partial(run, module=module, name=name)
    if not deep:
        targets["files.load"] = functools.partial(damaged_estimators, kind="estimator")
        targets["files.resume"] = functools.partial(damaged_estimators, kind="checkpoint")
    return targets


def members(cls: type) -> list[str]:
    """Methods and properties of a class that are ours, settable ones with ``=`` too."""
    found = set()
    for base in cls.__mro__:
        if base.__module__.startswith("annealvi"):
            for name, value in vars(base).items():
                if isinstance(value, property):
                    found |= {name, *[f"{name}="] * (value.fset is not None)}
                elif isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
                    found.add(name)
    return sorted(name for name in found if not name.startswith("_") and name not in INNER)


@functools.cache
def fitted(kind: type, **parameters: Any) -> Any:
    """A small estimator, for cases that do not change it."""
    if kind is TopicModel:
        return TopicModel(2, random_state=0, lda=TemperedLDA(max_iter=2)).fit(TEXTS)
    few = {"max_iter": 2, "random_state": 0} | parameters
    return kind(TOPICS, **few).fit(POINTS if kind in POINT_MODELS else COUNTS)


@functools.cache
def summary() -> Any:
    """A summary of topics whose words are hard to print."""
    names = ["$x_$", "<b>&", "", "\\frac{", "a" * 200, *map(str, range(WORDS - 5))]
    texts = [f"<p>{name}\ud800" for name in names * 4][: len(COUNTS)]
    return describe(fitted(TemperedLDA), COUNTS, names, texts=texts)


@functools.cache
def four_topics() -> Any:
    """A summary with as many topics as a question about them needs."""
    lda = TemperedLDA(4, max_iter=2, random_state=0).fit(COUNTS)
    return describe(lda, COUNTS, texts=["moon orbit"] * len(COUNTS))


@functools.cache
def choice() -> Any:
    """A choice of the number of topics."""
    return choose_n_topics(COUNTS, (1, 2), n_runs=1, model=TemperedLDA(max_iter=1), random_state=0)


FEW = dict(n_components=2, max_iter=2, random_state=0)
SHORT = dict(lda=TemperedLDA(max_iter=2), random_state=0)
VARIATIONAL = annealvi.Variational(t_max=5.0, grid=5)
#: Estimators whose files are damaged, with their data; the last have no checkpoints of their own.
SAVED: tuple[tuple[Any, Any], ...] = (
    (TemperedLDA(**FEW), COUNTS),
    (TemperedLDA(**FEW, preset="sklearn"), COUNTS),
    (TemperedLDA(**FEW, temperature=VARIATIONAL), COUNTS),
    (TemperedLDA(**FEW, temperature="local", doc_topic_prior="learn"), COUNTS),
    (TemperedLDA(**FEW, n_init=2, validation_fraction=0.3, evaluate_every=1), COUNTS),
    (TemperedFMM(**FEW, tol=0), POINTS),
    (TemperedFMM(**FEW, tol=0, covariance="full", temperature="proximity"), POINTS),
    (TemperedFMM(**FEW, tol=0, noise_variance=1.0, temperature=VARIATIONAL, n_init=2), POINTS),
    (TemperedGaussianMixture(**FEW, tol=0), POINTS),
    (TemperedGaussianMixture(**FEW, tol=0, covariances=1.0, temperature="variational"), POINTS),
    (TemperedMultinomialMixture(**FEW, tol=0), COUNTS),
    (TemperedMultinomialMixture(**FEW, tol=0, init="kmeans++", temperature=VARIATIONAL), COUNTS),
    (TopicModel(2, seed_words={"sky": ["moon"]}, **SHORT), TEXTS),
    (TopicModel("auto", **SHORT), TEXTS),
)


@functools.cache
def saved(number: int, kind: str) -> tuple[Any, bytes, Any]:
    """The tree and the file of an estimator, or of a checkpoint of its fit; and it, unfitted."""
    estimator, X = SAVED[number]
    model = clone(estimator)
    if kind == "checkpoint":
        model.set_params(callback=[Checkpoint("run", seconds=0), Callback(2, "stop", 0)])
    model.fit(X)
    if kind == "estimator":
        annealvi.save(model, "run")
    tree = copy.deepcopy(read("run", kind)["tree"])  # its arrays are parts of the file
    return tree, Path("run").read_bytes(), clone(estimator)


class Callback:
    """A user's callback, which at a step stops, fails, records or assigns."""

    def __init__(self, step: int, deed: str, value: Any) -> None:
        self.step, self.deed, self.value = step, deed, value

    def __call__(self, estimator: Any, monitor: Any) -> None:
        if self.deed == "record":
            monitor.record(mine=self.value)
        elif monitor.step >= self.step:
            if self.deed == "stop":
                raise StopIteration
            if self.deed == "raise":
                raise UserError("the callback's own")
            try:
                setattr(estimator, self.deed, self.value)
            except AttributeError as error:
                if "has no setter" in str(error):  # not every estimator lets a user assign it
                    raise UserError(str(error)) from error
                raise


class Foreign(SimpleNamespace):
    """A topic model of someone else's, with arrays that nobody has checked."""

    def transform(self, X: Any, temperature: Any = None) -> Any:
        return self.theta


def _npz(**arrays: Any) -> bytes:
    np.savez(file := io.BytesIO(), **arrays)
    return file.getvalue()


@functools.cache
def _log_partition() -> bytes:
    made_for = {"n_words": 3, "form": "explicit", "alpha": np.ones(2)}
    partition.LogPartition(partition.even_grid(4, 3), np.arange(3.0), made_for=made_for).save("c")
    return Path("c").read_bytes()


UCI, LDA_C = b"3\n4\n4\n1 1 4\n1 3 1\n2 2 5\n3 4 1\n", b"2 0:4 2:1\n1 1:5\n0\n1 3:1\n"
STATE = (
    "#doc source pos typeindex type topic\n#alpha : 0.5 1.5 \n#beta : 0.01\n"
    "0 NA 0 0 star 1\n0 NA 1 1 proof# 0\n2 my file.txt 0 2 gène 0\n"
).encode()
PAIRS = b"#doc name topic proportion ...\n0\ta\t1\t0.75\t0\t0.25\t\n1\tb\t0\t0.6\t1\t0.4\t\n"
ARRAYS = dict(data=np.ones(3), indices=np.arange(3), indptr=np.arange(4), shape=[3, 3])
MARKET = b"%%MatrixMarket matrix coordinate real general\n%\n3 4 4\n1 1 4\n1 3 1\n2 2 5\n3 4 1\n"
#: A sound file for each function that reads one.
CONTENT: dict[str, Callable[[], bytes]] = {
    **dict.fromkeys(["read_uci", "stream_uci"], lambda: UCI),
    **dict.fromkeys(["read_lda_c", "stream_lda_c"], lambda: LDA_C),
    **dict.fromkeys(["read_cells", "stream_matrix_market"], lambda: MARKET),
    "read_mallet_state": lambda: STATE,
    "read_mallet_weights": lambda: "0\tstar\t0.01\n0\tgène\t1.01\n1\tstar\t2.01\n".encode(),
    "read_mallet_doc_topics": lambda: PAIRS,
    "read_mallet_topic_keys": lambda: "0\t0.5\tstar gène \n1\t1.5\tproof \n".encode(),
    "LogPartition.load": _log_partition,
    "load_images": lambda: _npz(X=np.eye(4, 2, dtype=np.uint8), X_test=np.eye(4, 2, dtype="u1")),
    "load_corpus": lambda: _npz(**ARRAYS, vocab=["a"] * 3),
}


def damaged(t: Trial, content: bytes) -> bytes:
    """A file with some damage, packed perhaps; seldom a sound one."""
    rng = np.random.default_rng(t.whole(0, 2**32))
    content = gzip.compress(content) if t.seldom(8) else content
    for _ in range(t.one_of(0, 1, 1, 1, 1, 2, 4)):
        content = mutated_bytes(content, rng) if content else content
    return content


def damaged_estimators(t: Trial, kind: str) -> None:
    """Damaged and forged files of estimators or checkpoints, and what follows from them."""
    resumes = kind == "checkpoint"
    tree, content, estimator = saved(t.whole(0, len(SAVED) - 1 - 2 * resumes), kind)
    if t.one_of(True, False):
        Path("run").write_bytes(damaged(t, content))
    else:  # the checksums are right
        rng = np.random.default_rng(t.whole(0, 2**32))
        forged, ways = mutated_tree(tree, rng, t.whole(1, 3))
        t.log(f"forged at {ways}")
        try:
            write("run", kind, forged)
        except TypeError:  # not every tree can be written
            return
    if resumes:
        X = next(X for one, X in SAVED if type(one) is type(estimator))
        answered, _ = t.call("fit", estimator.fit, X, resume="run", check=anything)
    else:
        answered, estimator = t.call("load", annealvi.load, "run", check=anything)
    if answered:
        for _ in range(4):
            operate(t, estimator)
        t.call("save", annealvi.save, estimator, "other", check=anything)


COUNT_DATA = s.mostly(s.good_matrices(), s.matrices()) | s.matrices()
POINT_DATA = s.good_matrices(counts=False) | s.matrices(counts=False)
TOPIC_DATA = s.arrays((TOPICS, WORDS)) | s.matrices(WORDS)
OWN = (
    lambda q, prior_logit: (q.probability, q.variance),
    lambda q, prior_logit: (q.probability, -q.variance),
    lambda q, prior_logit: (q.probability * np.nan, q.variance),
    lambda *given: None,
)
FUNCTIONS = one_of(np.abs, np.square, np.sum, np.sign, lambda u: 2 * u, lambda u: None)
KINDS = (annealvi.Fixed, annealvi.Annealed, annealvi.Variational, annealvi.LocalVariational)
#: The key of a sheet of questions, which can be taken for answers too.
KEY = pd.DataFrame({"topic": [0, 1], "label": ["a", "b"], "answer": [1, 2], "options": [2, 2]})
KEY.index.name = "question"
#: What neither constraints nor annotations tell: by the name, or by function and name.
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["X", "Z", "data", "held_out"], COUNT_DATA),
    **dict.fromkeys(["components", "truth"], POINT_DATA),
    **dict.fromkeys(["other_topics"], TOPIC_DATA),
    **{f"topic_{kind}.topics": TOPIC_DATA for kind in ("diversity", "coherence", "stability")},
    **dict.fromkeys(["duplicate_topics.topics", "topic_checksum.topics"], TOPIC_DATA),
    **dict.fromkeys(["topics", "topic"], one_of(None, 0, 1, [1, 2], [], "x")),
    **dict.fromkeys(["texts", "raw_documents"], s.texts()),
    **dict.fromkeys(["describe.texts", "titles"], each("a", "b", "$x_$", None)),
    "plot_components.titles": one_of(["a", "b"], ["a"]),
    "documents": COUNT_DATA | st.just(COUNTS) | s.texts(),
    "random_state": s.seeds,
    "random_state_": s.seeds,
    "n_batch_iter_": one_of(0, 1, 5, 10**12),
    **dict.fromkeys(["inverse", "temperatures"], one_of([1.0, 0.5], [1, 2, 10], [1, 1])),
    "temperature": one_of(1.0, 2, 1e300, "learned", "annealed", None),
    "feature_names": one_of(list(map(str, range(WORDS))), np.arange(WORDS), ["a"], None),
    "method": one_of("variational", "cvb0", "auto", "exact", "monte-carlo", "jensen", "map"),
    "form": one_of("explicit", "collapsed"),
    "n_jobs": one_of(None, 1, 2, -1, -100),
    "over": one_of("pass", "step", "seconds"),
    "plot_learning_curves.value": one_of("perplexity", "elbo", "held_out_log_likelihood"),
    **dict.fromkeys(["Distance.value", "check_distance.value", "derivative"], FUNCTIONS),
    "as_temperature.value": one_of(1, 3.7, "auto", "annealed", "variational", "local", "hot"),
    "freq": one_of("YE", "5 years", "ME", "D", "2QE", pd.DateOffset(months=30), "no"),
    "times": each("2001", "2001-05-06", 2003, None),
    "groups": each("a", "b", "$x_$", None) | one_of([[0, 1]], [[0], [1, 2]], []),
    "prior": one_of(500.0, 1, 1e-6, 1e12, 0),
    "labels": one_of({0: "space"}, {0: "a", 1: "a"}, list("abc"), [1, 2, 3]),
    "key": one_of(KEY, KEY.drop(columns="topic"), KEY.assign(stratum="a").drop(columns="answer")),
    "answers": one_of(KEY, [KEY, KEY], KEY.assign(answer=9), KEY.assign(answer=""), KEY[:0], []),
    "frame": one_of(KEY, KEY.T, pd.DataFrame({"x_": [1.5, np.nan], "\\": ["a", None]})),
    "estimate_effects.shares": one_of(
        np.full((20, 2), 0.5), np.tile([0.1, 0.9], (3, 20, 1)), np.eye(20), [[1.0]], np.nan
    ),
    "formula": one_of("~ x", "~ g * x", "~ bs(x, df=4)", "~ C(x)", "x ~ g", "~ no", "~ (", "")
    | one_of(np.ones((20, 1)), np.ones((20, 2)), np.ones(20)),
    "estimate_effects.data": one_of(COVARIATES, pd.DataFrame(COVARIATES), {"x": [1.0]}, None),
    "clusters": one_of(None, np.arange(20) % 3, [1] * 20, [None] * 20, [[1]] * 20),
    "refits": one_of(0, 2, -1),
    "covariate": one_of("x", "g", "no"),
    "bounds": one_of([0.1, 0.5], [0.5], [], [0.5, 0.1]),
    "choose_n_topics.n_topics": one_of([2], [1, 3], (3,), np.array([2, 3]), range(1, 3)),
    **dict.fromkeys(["document_lengths", "lengths"], st.lists(st.integers(0, 40), max_size=5)),
    "TemperedFMM.predictive_score.observed": one_of(np.arange(WORDS) < 3, np.ones(WORDS, bool)),
    "made_for": one_of({}, {"n_words": 3}, {"alpha": 1.0}),
    "corpus": st.lists(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(1, 9))
            | one_of((-1, 2), (1, -2), (0.5, 1), (0, np.nan), (1, np.inf), (2, 0), (3,), "ab"),
            max_size=4,
        ),
        max_size=5,
    ),
    "dictionary": one_of(None, {0: "a", 1: "b"}, {-1: "a"}, {"a": 1}, {2**40: "b"}),
    "TopicModel.fit_counts.words": one_of(list(map(str, range(WORDS))), ["a"] * WORDS, ["a"]),
    "words": one_of(6, {0: "a", 1: "b"}, {2**40: "b"}),
    "blocks": st.lists(s.good_matrices() | s.matrices(), max_size=3),
    "vectorizer": one_of(
        *(None, TopicVectorizer(), CountVectorizer(vocabulary=["star"]), 3),
        *(CountVectorizer(), HashingVectorizer(n_features=8)),
    ),
    "stream_texts.documents": s.texts(),
    "stream_texts.vectorizer": one_of(
        CountVectorizer(vocabulary=["star"]), HashingVectorizer(n_features=8), TopicVectorizer()
    ),
    "lda": st.builds(TemperedLDA, one_of(2), max_iter=one_of(1), temperature=one_of(1, "local")),
    "dtype": one_of("float32", "float64", np.float32),
    "name": one_of("a", "a", "a", "nothing", "", "..", "a/b", "a\0b"),
    "shape": one_of((2, 10), (4, 5), (20, 1), (0, 20), (-2, -10)),
    "cmap": one_of("gray", "RdBu_r", "no"),
    "seed_words": st.dictionaries(
        one_of("space", "", "$"), st.lists(one_of("moon", "goal", "", "no")), max_size=2
    ),
    "seed_topics": one_of(None, {"a": 1}),
    "stop_words": one_of("english", None, ["the", "of"], [], ["don't"]),
    "ngram_range": one_of((1, 1), (1, 2), (2, 2)),
    "statistic": one_of(*OWN, "entropy", "kl"),
    "q": st.builds(lambda scale: prox.Bernoulli(scale * np.ones((1, 2, 4))), one_of(0.1, -30, 1e3)),
    "hidden": one_of((4,), [3, 2], [], (0,), 4),
    "log_density": one_of(lambda z: -0.5 * (z**2).sum(dim=-1), lambda z: z * float("nan")),
    "function": one_of(lambda weights: weights[0].norm(dim=1), *OWN[-1:]),
    "proximity": one_of(None, "entropy", "kl", "orthogonal"),
    "schedule": one_of(None, Linear(0.01, 1.0), Exponential(0.5, 0.9), "linear"),
    "device": one_of("cpu"),
    "callback": st.none(),
    "owner": one_of("Fuzz"),
    "rate": one_of(0.1, 1e-3, 10.0),
}
CALLBACKS = st.recursive(
    st.none()
    | st.builds(
        Callback,
        st.integers(1, 3),
        one_of("stop", "raise", "record", "components_", "doc_topic_prior_"),
        one_of(0.5, np.nan, [0.1, 0.2]),
    ),
    lambda one: st.lists(one, max_size=2),
    max_leaves=2,
)
#: Names that keep their defaults: what is drawn into or called is the user's to make.
KEPT = {"self", "y", "token_pattern", "ax", "axes", "label", "decays", "eps", "kinds"}
KEPT |= {"hyperparameters", "standard_error", "effective_sample_size", "bounds"}
#: Names whose values `_made` makes.
MADE = {"model", "estimator", "summary", "other", "choice", "effects", "client", "fits"} | s.PATHS
MADE |= {"first", "second"}


def _path(t: Trial, name: str) -> Any:
    """A path that `name` reads or writes: a damaged file, a folder, none, or no path."""
    if name.endswith("open_corpus"):
        corpora.write_corpus("corpus", [COUNTS, COUNTS])
        file = t.one_of(*sorted(Path("corpus").iterdir()))
        file.write_bytes(damaged(t, file.read_bytes()))
        return Path("corpus")
    if name in CONTENT and not t.seldom(20):
        path = Path(t.one_of("a.npz", "b.gz") if name.startswith("read_") else "a.npz")
        path.write_bytes(damaged(t, CONTENT[name]()))
        return path
    if name == "write_table":
        return t.one_of("out.csv", Path("out.tex"), "none/such.csv", "out")
    return t.one_of("out", Path("out"), Path.cwd(), "none/such", t.draw(odd_for("path")))


def _model(t: Trial, owner: str) -> Any:
    """A fitted estimator, now and then something else."""
    if owner == "log_partition":
        value = t.one_of(1.0, np.nan, "a")
        own = SimpleNamespace(n_samples=t.one_of(1, 10, 0), sample_prior=lambda rng: rng.normal())
        own.local_log_partition = lambda one, inverse: value
        lengths = t.draw(BY_NAME["document_lengths"])
        prior = t.call("LDAPrior", LDAPrior, 2, 3, lengths, check=anything)[1]
        return t.one_of(prior or own, prior, fitted(TemperedLDA), own, TemperedLDA())
    if owner == "choose_n_topics":
        return t.one_of(TemperedLDA(max_iter=1), TopicModel(lda=TemperedLDA(max_iter=1)))
    if owner.startswith("ProximityAscent"):
        return prox.BernoulliFactorModel(t.draw(s.good_matrices(counts=False)))
    if t.seldom(6):
        theta, topics = np.full((20, 2), 0.5), t.draw(s.matrices() | s.odd)
        return t.one_of(TemperedLDA(), TopicModel(), Foreign(theta=theta, components_=topics), 3)
    kinds: list[tuple[Any, dict[str, Any]]] = [(TemperedLDA, {})] * 3
    kinds += [(TopicModel, {}), (TemperedFMM, {})]
    kinds += [(TemperedLDA, {"temperature": "local"}), (TemperedLDA, {"doc_topic_prior": "learn"})]
    kind, given = kinds[t.whole(0, len(kinds) - 1)]
    return copy.deepcopy(fitted(kind, **given))


def _parts(t: Trial) -> Any:
    """Corpora on disk, for Dask; now and then something among them that is none."""
    for number in range(0 if Path("part0").exists() else t.whole(1, 3)):
        corpora.write_corpus(f"part{number}", [t.draw(s.good_matrices())])
    parts: list[Any] = sorted(map(str, Path.cwd().glob("part*")))
    if t.seldom(8):
        parts.append(t.one_of("none", COUNTS, None, t.draw(odd_for("path"))))
    return parts if not t.seldom(12) else t.one_of([], COUNTS, parts[0])


def _made(t: Trial, name: str, owner: str, module: str, before: dict[str, Any]) -> Any:
    """An argument that must be made for the function; None if a strategy has it."""
    if name == "data_home":
        Path("a.npz").write_bytes(damaged(t, CONTENT[owner]()))
        return "."
    if name in s.PATHS:
        content = {"resume": "none", "vocabulary": "read_mallet_topic_keys"}
        return _path(t, content.get(name, owner))
    if name in ("X", "documents", "texts") and module == DASK:
        return _parts(t)
    if name in ("X", "documents") and any(isinstance(v, TopicModel) for v in before.values()):
        return t.draw(s.texts())
    if name == "X" and module == "annealvi.proximity":
        return t.draw(POINT_DATA)
    if name in ("model", "estimator") or (name == "lda" and owner != "TopicModel"):
        return _model(t, owner)
    if owner == "topic_intrusion" and name == "summary":
        return four_topics()
    if name in ("summary", "other") or (name in ("first", "second") and "plot" in module):
        return _model(t, owner) if owner in ("describe", "compare_topics") else summary()
    if name == "choice":
        return choice()
    if name == "effects":
        return summary().effects("~ x + g", COVARIATES)
    if name == "client":
        return SerialEngine() if module == DASK else None
    if name == "fits":
        one = fitted(TemperedLDA, evaluate_every=1)
        return {"a": t.one_of(one, [one, one], [], 3)}
    return None


def usual(name: str, parameter: Any, function: Any, owner: str) -> st.SearchStrategy[Any]:
    """Good values of a parameter, by its constraints, by its name, or by its annotation."""
    allowed = s.allowed_by(function, name)
    if name == "temperature" and hasattr(function, "_parameter_constraints"):
        names = ("annealed", "variational", "local", "proximity")
        return one_of(1, 3.7, "auto", *names) | st.one_of(*map(constructed, KINDS))
    if name == "callback" and not allowed.is_empty:
        return CALLBACKS
    if name == "input":  # not "filename": texts are drawn, not names of files
        return one_of("content", "file")
    if allowed.is_empty or name in s.CALLED:
        allowed |= BY_NAME.get(f"{owner}.{name}", BY_NAME.get(name, st.nothing()))
    return allowed if not allowed.is_empty else s.annotated(name, parameter.annotation)


@st.composite
def constructed(draw: Any, cls: Any) -> Any:
    """An object of a class with some parameters, seldom odd ones."""
    names = st.sampled_from(sorted(cls._parameter_constraints))
    given = {}
    for name in draw(st.lists(names, max_size=3, unique=True)):
        values = usual(name, inspect.signature(cls).parameters[name], cls, cls.__name__)
        given[name] = draw(values if draw(st.integers(0, 19)) and name != "temperature" else s.odd)
    return cls(**given)


def arguments(t: Trial, function: Any, owner: str, module: str, cls: Any = None) -> dict[str, Any]:
    """Values for the required arguments and for some others, seldom one of them odd."""
    given: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    names = [n for n, p in parameters.items() if p.kind.name[:3] != "VAR" and n not in KEPT]
    names.sort(key=lambda name: name not in ("model", "estimator", "lda"))
    spoils = names and owner not in ("check_distance", "Adam") and t.seldom(4)
    wrong = t.one_of(*names) if spoils else None
    for name in names:
        always = parameters[name].default is parameters[name].empty or name in s.MOST
        if name == wrong:
            given[name] = t.draw(odd_for(name))
        elif always or name in ("n_topics", "client", "data_home") or t.seldom(4):
            value = _made(t, name, owner, module, given)
            if value is None:
                values = usual(name, parameters[name], function, owner)
                values = POINT_DATA if name == "X" and cls in POINT_MODELS else values
                value = t.draw(odd_for(name) if values.is_empty else values)
            given[name] = value
    return given


#: NaN means here that there is no value; numbers there may follow from infinite arguments; and
#: functions that do not look at a matrix yet, or at all.
NAN = {"history_", "document_temperatures_", "document_temperatures", "perplexity", "table"}
NAN |= {"topic_coherence", "document_completion", "weights", "documents", "outliers", "map"}
NAN |= {"by_group"}
INFINITE = {"inverse_huber", "inverse_huber_derivative", "update", "check_means", "over_time"}
INFINITE |= {"words", "describe", "top_words", "similar", "even_grid", "exponential_grid", "load"}
INFINITE |= {"open_corpus"}  # what uses the matrix looks at its numbers
NOT_YET = {"HeldOut", "log_partition", "describe", "set_params", "with_lda", "LogPartition"}


def called(t: Trial, function: Any, owner: str, module: str, cls: Any = None) -> tuple[bool, Any]:
    """Call a function or method with arguments drawn for it."""
    name = owner.rpartition(".")[2]
    given = arguments(t, function, owner, module, cls)
    loose = "epsilon" in given or any(isinstance(value, Foreign) for value in given.values())
    loose |= module in (DEEP, DASK) or name in INFINITE or "plot" in module or cls is function
    check = anything if loose else check_not_infinite if name in NAN else check_finite

    def whole(*args: Any, **kwargs: Any) -> Any:  # what a stream yields, but for endless headers
        result = function(*args, **kwargs)
        return list(islice(result, 1000)) if isinstance(result, Iterator) else result

    required = [  # scikit-learn's wrappers take the first by place alone
        given.pop(one.name)
        for one in inspect.signature(function).parameters.values()
        if one.name in given and one.default is one.empty and one.kind.name[:3] == "POS"
    ]
    allows = (OSError, ImportError, DivergenceError)
    judged = dict(check=check, allows=allows, looks=name not in NOT_YET)
    return t.call(owner, whole, *required, **judged, **given)


def _pickled(estimator: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(estimator))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError from error


def operate(t: Trial, one: Any, module: str = "annealvi") -> Any:
    """Call a method, read or assign an attribute, or copy; return what to go on with."""
    cls = type(one)
    name = t.one_of(*members(cls), "copy", "repr", *["set_params"] * hasattr(cls, "set_params"))
    owner = f"{cls.__name__}.{name}"
    if name == "copy":
        how = t.one_of(clone, copy.copy, copy.deepcopy, _pickled)
        # clone refuses what a constructor has changed, and what is no estimator
        return t.call("copy", how, one, check=anything, allows=(RuntimeError,))[1] or one
    if name == "repr":
        t.call(name, repr, one, check=anything)
    elif name == "set_params":
        given = arguments(t, cls, cls.__name__, module, cls)
        t.call(name, one.set_params, check=anything, **given)
    elif name.endswith("="):
        name = name[:-1]
        value = t.draw(s.mostly(BY_NAME.get(name, s.named_array(name)), odd_for(name)))
        t.call(owner, setattr, one, name, value, allows=(AttributeError,), check=anything)
    elif isinstance(inspect.getattr_static(cls, name), property):
        loose = name in ("components_", "labels") or module == DEEP
        check = anything if loose else check_not_infinite if name in NAN else check_finite
        t.call(owner, getattr, one, name, check=check, allows=(AttributeError,))
    else:
        answered, found = called(t, getattr(one, name), owner, module, cls)
        if answered and module == DASK and isinstance(found, list) and name != "top_words":
            t.call("compute", lambda: [part.compute(scheduler="synchronous") for part in found])
        return found if answered and isinstance(found, cls) else one
    return one


def run_function(t: Trial, module: str, name: str) -> None:
    """Call a function; use the estimator, the summary or the figure that it returns."""
    matplotlib.use("Agg")
    answered, found = called(t, thing(module, name), name, module)
    if not answered:
        return
    if hasattr(found, "to_json") and hasattr(found, "layout"):
        t.call("to_json", found.to_json, check=anything)
    elif module == "annealvi.plot":
        figure = np.ravel(np.asarray(found, dtype=object))[0].figure
        t.call("savefig", figure.savefig, io.BytesIO(), dpi=20, check=anything)
        matplotlib.pyplot.close("all")
    elif sparse.issparse(found) and found.shape[1] < 100:
        t.call("fit", TemperedLDA(2, max_iter=1, random_state=0).fit, found, check=anything)
    elif members(type(found)):
        for _ in range(3):
            found = operate(t, found)


def _use(t: Trial, one: Any, module: str) -> None:
    """Do what an object is for, if no method of its own says so."""
    cls = type(one)
    if cls in (HeldOut, Checkpoint, ProgressBar):
        fast = t.one_of(TemperedLDA, TemperedFMM)(2, max_iter=2, callback=one, random_state=0)
        X = t.draw(s.good_matrices())
        X = X.toarray() if sparse.issparse(X) and isinstance(fast, TemperedFMM) else X
        if t.call("fit", fast.fit, X, check=anything, allows=(OSError,))[0]:
            t.call("history_", getattr, fast, "history_", check=check_not_infinite)
    elif cls is prox.Adam:
        t.call("step", one, np.asarray(t.draw(s.arrays((4,), low=-3)), float), check=anything)
    elif cls is prox.BernoulliFactorModel:
        answered, means = t.call("check_means", one.check_means, t.draw(s.named_array("means")))
        q = prox.Bernoulli(np.ones((1, TOPICS, one.n_samples)))
        if answered and means.shape == (1, TOPICS, WORDS) and np.max(np.abs(means)) < 1e100:
            for method in (one.elbo, one.gradients):
                t.call(method.__name__, method, q, means, check=anything)
            t.call("best_means", one.best_means, q, check=anything)
    elif cls in (annealvi.Fixed, annealvi.Annealed):
        passes, per_pass = t.one_of(None, 1, 10, 10**12), t.one_of(1, 2.5)
        answered, planned = t.call("plan", one.plan, passes, per_pass, check=anything)
        for step in (0, 1, 10**12) if answered else ():
            answered, inverse = t.call("inverse", planned.inverse, step)
            assert not answered or 0 < inverse <= 1
    elif module == "annealvi.schedules":
        t.call("at", one, t.one_of(0.0, 0.5, 1.0), check=anything)


def run_class(t: Trial, module: str, name: str) -> None:
    """Make an object and do some of what can be done to it, in any order."""
    cls = thing(module, name)
    answered, one = called(t, cls, name, module, cls)
    if not answered or (cls is partition.LogPartition and not t.call("check", one.check)[0]):
        return
    _use(t, one, module)
    if hasattr(cls, "fit") and not t.seldom(4):
        X = t.draw(s.good_matrices(counts=cls not in POINT_MODELS))
        X = t.draw(s.good_texts) if cls is TopicModel else X
        if module == DEEP and name != "PoissonDEF":  # of binary data
            X = np.asarray(sparse.csr_matrix(X).toarray() > 0, np.float32)
        allows = (DivergenceError, OSError)
        t.call("fit", one.fit, _parts(t) if module == DASK else X, check=anything, allows=allows)
    for _ in range(t.whole(0, 5) if members(cls) else 0):
        one = operate(t, one, module)
