"""The targets: every public function and class, called with arguments drawn by their names."""

from __future__ import annotations

import copy
import functools
import gzip
import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
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
from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA, TopicModel, partition
from annealvi import corpus as corpora
from annealvi import proximity as prox
from annealvi.checkpoint import Checkpoint
from annealvi.exceptions import DivergenceError
from annealvi.files import read, write
from annealvi.metrics import HeldOut
from annealvi.models.lda_prior import LDAPrior
from annealvi.progress import ProgressBar
from annealvi.scale.engines import SerialEngine
from annealvi.schedules import Exponential, Linear
from annealvi.storage import KIND
from annealvi.topics import TopicVectorizer, choose, describe
from tests.files.mutations import mutated_bytes, mutated_tree
from tests.fuzz import strategies as s
from tests.fuzz.judge import Trial, UserError, anything, check_finite, check_not_infinite
from tests.fuzz.public import DEEP, EXEMPT, MODULES, members, public_names
from tests.fuzz.run import Target
from tests.fuzz.strategies import each, mostly, odd, odd_for, one_of, real, some

WORDS, TOPICS = s.WIDTH, 3
TEXTS = ["moon orbit moon", "goal team goal", "orbit comet", "the team"] * 5
COUNTS = np.random.RandomState(0).poisson(1.0, (20, WORDS)).astype(float)
POINTS = np.random.RandomState(0).standard_normal((12, WORDS))
POINT_MODELS = (TemperedFMM, TemperedGaussianMixture, prox.BernoulliFactorModel)

# ------------------------------------------------------------------------ what is fitted once


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
def choice() -> Any:
    """A choice of the number of topics."""
    return choose(COUNTS, (1, 2), n_runs=1, model=TemperedLDA(max_iter=1), random_state=0)


@functools.cache
def saved(number: int, checkpoint: bool) -> tuple[Any, bytes, Any]:
    """The tree and the file of an estimator, or of a checkpoint of its fit; and it, unfitted."""
    estimator, X = SAVED[number]
    model = clone(estimator)
    if checkpoint:
        model.set_params(callback=[Checkpoint("run", seconds=0), s.Callback(2, "stop", 0)])
    model.fit(X)
    if not checkpoint:
        annealvi.save(model, "run")
    tree = read("run", "checkpoint" if checkpoint else KIND)["tree"]
    tree = copy.deepcopy(tree)  # its arrays are parts of the file
    return tree, Path("run").read_bytes(), clone(estimator)


FEW = dict(n_components=2, max_iter=2, random_state=0)
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
    (TopicModel(2, seeds={"sky": ["moon"]}, lda=TemperedLDA(max_iter=2), random_state=0), TEXTS),
    (TopicModel("auto", lda=TemperedLDA(max_iter=2), random_state=0), TEXTS),
)

# --------------------------------------------------------------------------------- files

UCI = b"3\n4\n4\n1 1 4\n1 3 1\n2 2 5\n3 4 1\n"
LDA_C = b"2 0:4 2:1\n1 1:5\n0\n1 3:1\n"
STATE = (
    "#doc source pos typeindex type topic\n#alpha : 0.5 1.5 \n#beta : 0.01\n"
    "0 NA 0 0 star 1\n0 NA 1 1 proof# 0\n2 my file.txt 0 2 gène 0\n"
).encode()
PAIRS = b"#doc name topic proportion ...\n0\ta\t1\t0.75\t0\t0.25\t\n1\tb\t0\t0.6\t1\t0.4\t\n"
MARKET = b"%%MatrixMarket matrix coordinate real general\n%\n3 4 4\n1 1 4\n1 3 1\n2 2 5\n3 4 1\n"


def _npz(**arrays: Any) -> bytes:
    np.savez(file := io.BytesIO(), **arrays)
    return file.getvalue()


@functools.cache
def _log_partition() -> bytes:
    made_for = {"n_words": 3, "form": "explicit", "alpha": np.ones(2)}
    partition.LogPartition(partition.even_grid(4, 3), np.arange(3.0), made_for=made_for).save("c")
    return Path("c").read_bytes()


#: A sound file for each function that reads one.
CONTENT: dict[str, Callable[[], bytes]] = {
    "read_uci": lambda: UCI,
    "stream_uci": lambda: UCI,
    "read_lda_c": lambda: LDA_C,
    "stream_lda_c": lambda: LDA_C,
    "stream_matrix_market": lambda: MARKET,
    "read_mallet_state": lambda: STATE,
    "read_mallet_weights": lambda: "0\tstar\t0.01\n0\tgène\t1.01\n1\tstar\t2.01\n".encode(),
    "read_mallet_doc_topics": lambda: PAIRS,
    "read_mallet_topic_keys": lambda: "0\t0.5\tstar gène \n1\t1.5\tproof \n".encode(),
    "LogPartition.load": _log_partition,
    "load_images": lambda: _npz(X=np.eye(4, 2, dtype=np.uint8), X_test=np.eye(4, 2, dtype="u1")),
    "load_corpus": lambda: _npz(
        data=np.ones(3), indices=np.arange(3), indptr=np.arange(4), shape=[3, 3], vocab=["a"] * 3
    ),
}


def damaged(t: Trial, content: bytes) -> bytes:
    """A file with some damage, packed perhaps; seldom a sound one."""
    rng = np.random.default_rng(t.whole(0, 2**32))
    content = gzip.compress(content) if t.seldom(8) else content
    for _ in range(t.one_of(0, 1, 1, 1, 1, 2, 4)):
        content = mutated_bytes(content, rng) if content else content
    return content


def _path(t: Trial, name: str) -> Any:
    """A path that `name` reads or writes: a damaged file, a folder, none, or no path."""
    if name.endswith("open"):
        corpora.write("corpus", [COUNTS, COUNTS])
        file = t.one_of(*sorted(Path("corpus").iterdir()))
        file.write_bytes(damaged(t, file.read_bytes()))
        return Path("corpus")
    if name in CONTENT and not t.seldom(20):
        path = Path(t.one_of("a.npz", "b.gz") if name.startswith("read_") else "a.npz")
        path.write_bytes(damaged(t, CONTENT[name]()))
        return path
    return t.one_of("out", Path("out"), Path.cwd(), "none/such", t.draw(odd_for("path")))


def damaged_estimators(t: Trial, checkpoint: bool) -> None:
    """Damaged and forged files of estimators or checkpoints, and what follows from them."""
    tree, content, estimator = saved(t.whole(0, len(SAVED) - 1 - 2 * checkpoint), checkpoint)
    if t.one_of(True, False):
        Path("run").write_bytes(damaged(t, content))
    else:  # the checksums are right
        rng = np.random.default_rng(t.whole(0, 2**32))
        forged, ways = mutated_tree(tree, rng, t.whole(1, 3))
        t.log(f"forged at {ways}")
        try:
            write("run", "checkpoint" if checkpoint else KIND, forged)
        except TypeError:  # not every tree can be written
            return
    X = next(X for one, X in SAVED if type(one) is type(estimator))
    if checkpoint:
        answered, _ = t.call("fit", estimator.fit, X, resume="run", check=anything)
    else:
        answered, estimator = t.call("load", annealvi.load, "run", check=anything)
    if answered:
        for _ in range(4):
            operate(t, estimator)
        t.call("save", annealvi.save, estimator, "other", check=anything)


# ------------------------------------------------------------------------ arguments by name


def shapes(K: int, V: int) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Shapes that arrays among the parameters may have, for K components and V features."""
    return {
        **dict.fromkeys(["doc_topic_prior", "doc_topic_prior_", "prior_probability"], ((K,),)),
        **dict.fromkeys(["weights"], ((K,),)),
        **dict.fromkeys(["topic_word_prior", "topic_word_prior_"], ((V,), (K, V))),
        **dict.fromkeys(["init", "means_init", "components_", "means", "init_"], ((K, V),)),
        **dict.fromkeys(["mean_prior", "covariance_prior", "document_lengths"], ((V,),)),
        **{"covariances": ((V,), (K,), (K, V)), "prior": ((7,), (100,)), "grid": ((7,),)},
        **{"shapes": ((3, 7),), "logits": ((1, K, 5), (2, K, 5)), "values": ((2,), (3,))},
    }


SHAPES = shapes(TOPICS, WORDS)
COUNT_DATA = mostly(s.good_matrices(WORDS), s.matrices(WORDS)) | s.matrices(WORDS)
POINT_DATA = s.good_matrices(WORDS, counts=False) | s.matrices(WORDS, counts=False)
TOPIC_DATA = s.arrays((TOPICS, WORDS)) | s.matrices(WORDS, TOPICS)
COUNT, WEIGHT, TOPIC = st.integers(1, 9), real(0.01, 1.0, None, 0), one_of(0, 1, [1, 2], [], "x")
INVERSES = one_of([1.0, 0.5], [1, 0.9, 0.1], partition.exponential_grid(1e3, 5), [0.5, 0.1], [1, 1])
PRIOR = real(1e-3, 10.0, None, 1e-300, 1e300) | s.arrays((TOPICS,), (WORDS,), (TOPICS, WORDS))
OWN = (
    lambda q, prior_logit: (q.probability, q.variance),
    lambda q, prior_logit: (q.probability, -q.variance),
    lambda q, prior_logit: (q.probability * np.nan, q.variance),
    lambda *given: None,
)
#: A strategy for each name of an argument; functions of the trial where it must be made.
BY_NAME: dict[str, Any] = {
    **dict.fromkeys(["normalize", "documents", "per_sample", "per_document"], s.flags),
    **dict.fromkeys(["sub_sampling", "return_X_y", "continuous", "monotone"], s.flags),
    **dict.fromkeys(["n", "n_words", "n_columns", "n_documents", "n_samples", "size"], COUNT),
    **dict.fromkeys(["n_topics", "n_theta", "n_draws"], st.integers(2, 6)),
    **{"n_components": one_of(TOPICS, TOPICS, 2), "n_features": one_of(WORDS, WORDS, 1)},
    **dict.fromkeys(["n_records", "max_documents", "block_size", "shard_size"], COUNT),
    **dict.fromkeys(
        ["batch_size", "n_runs", "max_iter", "n_steps", "steps_per_pass"], st.integers(1, 3)
    ),
    **dict.fromkeys(["step", "n_batch_iter_"], one_of(0, 1, 5, 10**12)),
    **dict.fromkeys(["random_state", "random_state_"], s.seeds),
    **dict.fromkeys(["observed", "threshold", "relevance", "decay", "every", "epsilon"], WEIGHT),
    **dict.fromkeys(["first", "last", "limit", "min_tokens", "rate"], real(1e-3, 1e3, *s.EXTREMES)),
    **dict.fromkeys(["inverse", "inverse_temperatures"], INVERSES),
    **dict.fromkeys(["doc_topic_prior", "topic_word_prior", "doc_topic_prior_"], PRIOR),
    **dict.fromkeys(["topic_word_prior_", "document_topic_prior"], PRIOR),
    **dict.fromkeys(["components_", "exp_dirichlet_component_"], s.arrays((TOPICS, WORDS))),
    **dict.fromkeys(["u", "prior_logit", "new"], s.arrays((3,), (), low=-3)),
    **dict.fromkeys(["titles"], each("a", "b", "$x_$", None)),
    **dict.fromkeys(["texts", "raw_documents"], s.texts()),
    **dict.fromkeys(["topics", "topic"], TOPIC),
    **dict.fromkeys(["client", "callback"], st.none()),
    **dict.fromkeys(["derivative"], one_of(np.sign, lambda u: 2 * u, np.sum, lambda u: None)),
    **dict.fromkeys(["X", "data", "held_out"], COUNT_DATA),
    **dict.fromkeys(["components", "truth"], POINT_DATA),
    **dict.fromkeys(["temperature", "value"], one_of(1.0, 2, 1e300, "learned", "annealed", None)),
    "feature_names": one_of(list(map(str, range(WORDS))), np.arange(WORDS), ["a"], None),
    "temperatures": s.temperatures,
    "method": one_of("variational", "cvb0", "auto", "exact", "monte-carlo", "jensen", "map"),
    "n_jobs": one_of(None, 1, 2, -1, -100),
    "title": one_of(None, "a", "<b>", "$x_$", ""),
    "measure": one_of("npmi", "umass"),
    "matching": one_of("best", "one_to_one"),
    "criterion": one_of("quality", "heldout"),
    "form": one_of("explicit", "collapsed"),
    "freq": one_of("YE", "ME", "D", "2QE", pd.DateOffset(months=30), "no"),
    "times": each("2001", "2001-05-06", 2003, None),
    "groups": each("a", "b", "$x_$", None) | one_of([[0, 1]], [[0], [1, 2]], []),
    "labels": one_of({0: "space"}, {0: "a", 1: "a"}, list("abc"), [1, 2, 3]),
    "ks": one_of([2], [1, 3], (3,), np.array([2, 3]), range(1, 3)),
    "document_lengths": st.lists(st.integers(0, 9), min_size=1, max_size=5),
    "document_length": real(0.5, 100.0),
    "lengths": st.lists(st.integers(0, 40), max_size=4),
    "noise_variance": real(1e-3, 10.0, 0, 1e300),
    "prior_probability": real(1e-3, 0.999, 0, 1, [0.5] * TOPICS),
    "shapes": s.arrays((3, 7)),
    "t_max": real(1.001, 100.0, *s.EXTREMES),
    "values": s.arrays((2,), (3,)),
    "made_for": one_of({}, {"n_words": 3}, {"alpha": 1.0}),
    "corpus": s.pairs,
    "dictionary": one_of(None, {0: "a", 1: "b"}, {-1: "a"}, {"a": 1}, {2**40: "b"}),
    "words": one_of(6, {0: "a", 1: "b"}, {2**40: "b"}),
    "blocks": st.lists(s.good_matrices(WORDS) | s.matrices(WORDS), max_size=3),
    "vectorizer": one_of(
        None, TopicVectorizer(), CountVectorizer(), HashingVectorizer(n_features=8)
    ),
    "dtype": one_of("float32", "float64", np.float32),
    "name": one_of("a", "a", "a", "nothing", "", "..", "a/b", "a\0b"),
    "shape": one_of((2, 10), (4, 5), (20, 1), (0, 20), (-2, -10)),
    "cmap": one_of("gray", "RdBu_r", "no"),
    "over": one_of("pass", "step", "seconds"),
    "seeds": st.dictionaries(one_of("space", "", "$"), some("moon", "goal", "", "no"), max_size=2),
    "seed_topics": one_of(None, {"a": 1}),
    "statistic": one_of(*OWN, "entropy", "kl"),
    "means": s.arrays((TOPICS, WORDS), (2, TOPICS, WORDS), low=-3),
    "logits": st.none() | s.arrays((1, TOPICS, 5), low=-3),
    "q": st.builds(lambda scale: prox.Bernoulli(scale * np.ones((1, 2, 4))), one_of(0.1, -30, 1e3)),
    "stop_words": one_of("english", None, ["the", "of"], [], ["don't"]),
    "ngram_range": one_of((1, 1), (1, 2), (2, 2)),
    "lda": st.builds(TemperedLDA, one_of(2), max_iter=one_of(1), temperature=one_of(1, "local")),
    "hidden": one_of((4,), [3, 2], [], (0,), 4),
    "log_density": one_of(lambda z: -0.5 * (z**2).sum(dim=-1), lambda z: z * float("nan")),
    "function": one_of(lambda weights: weights[0].norm(dim=1), *OWN[-1:]),
    "proximity": one_of(None, "entropy", "kl", "orthogonal"),
    "schedule": one_of(None, Linear(0.01, 1.0), Exponential(0.5, 0.9), "linear"),
    "device": one_of("cpu"),
}
#: Where a name means something else: by function or class.
ELSEWHERE: dict[str, dict[str, Any]] = {
    "load_arxiv_abstracts": {"texts": s.flags},
    "describe": {"documents": st.just(COUNTS) | COUNT_DATA | s.texts(), "texts": each("a", "b")},
    "TemperedFMM": {"observed": one_of(np.arange(WORDS) < 3, np.ones(WORDS, bool), np.ones(WORDS))},
    "topic_stability": dict.fromkeys("ab", TOPIC_DATA),
    "topic_diversity": {"topics": TOPIC_DATA},
    "topic_coherence": {"topics": TOPIC_DATA},
    "duplicate_topics": {"topics": TOPIC_DATA},
    "plot_learning_curves": {"value": one_of("perplexity", "elbo", "heldout")},
    "stream_texts": {
        "vectorizer": one_of(
            CountVectorizer(vocabulary=["star"]), HashingVectorizer(n_features=8), 3
        )
    },
    "check_distance": {"value": one_of(np.abs, np.square, np.sum, np.sign)},
    "Distance": {"value": one_of(np.abs, np.square, np.sum, np.sign)},
    "plot_components": {
        "titles": one_of(["a", "b"], ["a"]),
        "components": s.matrices(WORDS, 2, counts=False),
    },
}
#: Names that are always passed, as the call would take long without them.
SMALL = {"max_iter", "n_steps", "n_theta", "n_samples", "n_draws", "n_local_steps", "hidden", "ks"}
SMALL |= {
    "client",
    "data_home",
    "n_words",
    "n_runs",
    "n_transitions",
    "n_reverse",
    "n_components",
    "n_documents",
    "n_features",
}
DASK = "annealvi.dask"
#: Names that keep their defaults: what is drawn into or called is the user's to make.
KEPT = {
    "self",
    "y",
    "token_pattern",
    "ax",
    "axes",
    "label",
    "decays",
    "eps",
    "kinds",
    "hyperparameters",
}
#: What takes functions or numbers of the user's own as they are.
AS_IS = {"check_distance", "Adam"}
KEPT |= {"standard_error", "effective_sample_size", "bounds"}


#: Names whose values `_adapted` makes.
MADE = {"model", "estimator", "lda", "summary", "other", "a", "b", "choice", "client", "fits"}
MADE |= {"data_home", "owner"}


class Foreign(SimpleNamespace):
    """A topic model of someone else's, with arrays that nobody has checked."""

    def transform(self, X: Any, temperature: Any = None) -> Any:
        """The same theta, whatever the documents are."""
        return self.theta


def _model(t: Trial) -> Any:
    """A fitted estimator, now and then something else."""
    if t.seldom(6):
        theta, topics = np.full((20, 2), 0.5), t.draw(s.matrices(WORDS, 2) | odd)
        return t.one_of(TemperedLDA(), TopicModel(), Foreign(theta=theta, components_=topics), 3)
    kinds = [(TemperedLDA, {})] * 3 + [(TopicModel, {}), (TemperedFMM, {})]
    kinds += [(TemperedLDA, {"temperature": "local"}), (TemperedLDA, {"doc_topic_prior": "learn"})]
    kind, given = kinds[t.whole(0, len(kinds) - 1)]
    return copy.deepcopy(fitted(kind, **given))


def _partition_model(t: Trial) -> Any:
    """A model whose log C(T) is asked for."""
    lengths = t.draw(BY_NAME["document_lengths"])
    value = t.one_of(1.0, np.nan, "a")
    own = SimpleNamespace(
        n_samples=t.one_of(1, 10, 0),
        sample_prior=lambda rng: rng.standard_normal(),
        local_log_partition=lambda one, inverse: value,
    )
    answered, prior = t.call("LDAPrior", LDAPrior, 2, 3, lengths, check=anything)
    return t.one_of(prior if answered else own, prior, fitted(TemperedLDA), own, TemperedLDA())


def _parts(t: Trial) -> Any:
    """Corpora on disk, for Dask; now and then something among them that is none."""
    for number in range(0 if Path("part0").exists() else t.whole(1, 3)):
        corpora.write(f"part{number}", [t.draw(s.good_matrices(WORDS))])
    parts: list[Any] = sorted(map(str, Path.cwd().glob("part*")))
    if t.seldom(8):
        parts.append(t.one_of("none", COUNTS, None, t.draw(odd_for("path"))))
    return parts if not t.seldom(12) else t.one_of([], COUNTS, parts[0])


def _adapted(t: Trial, name: str, owner: str, module: str, before: dict[str, Any]) -> Any:
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
    if name in ("model", "estimator", "lda"):
        if owner == "log_partition":
            return _partition_model(t)
        if owner == "choose":
            return t.one_of(TemperedLDA(max_iter=1), TopicModel(lda=TemperedLDA(max_iter=1)))
        if owner.startswith("ProximityAscent"):
            return prox.BernoulliFactorModel(t.draw(s.good_matrices(WORDS, counts=False)))
        return _model(t)
    if name in ("summary", "other") or (name in "ab" and "plot" in module):
        return summary() if owner != "describe" else _model(t)
    special = {"choice": choice, "client": lambda: SerialEngine() if module == DASK else None}
    scored = functools.partial(fitted, TemperedLDA, evaluate_every=1)
    special["fits"] = lambda: {"a": t.one_of(scored(), [scored(), scored()], [], 3)}
    return special[name]() if name in special else None


def arguments(t: Trial, function: Any, owner: str, module: str, cls: Any = None) -> dict[str, Any]:
    """Values for the required arguments and for some others, seldom one of them odd."""
    given: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    usual = [n for n, p in parameters.items() if p.kind.name[:3] != "VAR" and n not in KEPT]
    usual.sort(key=lambda name: name not in ("model", "estimator", "lda"))
    wrong = t.one_of(*usual) if usual and owner not in AS_IS and t.seldom(4) else None
    part = {**BY_NAME, **ELSEWHERE.get(owner.partition(".")[0], {}), **ELSEWHERE.get(owner, {})}
    if cls in POINT_MODELS:
        part["X"] = POINT_DATA
    for name in usual:
        if name == "owner":
            given[name] = "Fuzz"
        elif name == wrong:
            given[name] = t.draw(odd_for(name))
        elif parameters[name].default is parameters[name].empty or name in SMALL or t.seldom(4):
            value = _adapted(t, name, owner, module, given)
            if value is None:
                strategy = s.allowed_by(function, name, SHAPES)
                if strategy.is_empty or name in s.CALLED & part.keys():
                    strategy |= part.get(name, odd_for(name))
                if name == "temperature" and cls is function:
                    strategy = s.temperatures
                value = t.draw(strategy)
            given[name] = value
    return given


# ------------------------------------------------------------------------------- calls

#: Further errors that are documented; NaN that means there is no value; numbers that may follow
#: from infinite arguments; and functions that do not look at a matrix yet, or at all.
READS = (OSError, ImportError)
ALLOWS = {"ascend": (DivergenceError,), "fit": (DivergenceError, OSError)}
NAN = {"history_", "document_temperatures_", "document_temperatures", "perplexity", "table"}
NAN |= {
    "topic_coherence",
    "document_completion",
    "weights",
    "documents",
    "odd",
    "map",
    "by",
    "over",
}
INFINITE = {"inverse_huber", "inverse_huber_derivative", "update", "check_means"}
INFINITE |= {"describe", "words", "top_words", "similar", "even_grid", "exponential_grid", "load"}
NOT_YET = {"HeldOut", "log_partition", "describe", "set_params", "with_lda", "LogPartition"}


def called(t: Trial, function: Any, owner: str, module: str, cls: Any = None) -> tuple[bool, Any]:
    """Call a function or method with arguments drawn for it."""
    name = owner.rpartition(".")[2]
    given = arguments(t, function, owner, module, cls)
    loose = "epsilon" in given or any(isinstance(value, Foreign) for value in given.values())
    deep = module == DEEP[0] or name in INFINITE or "plot" in module or cls is function
    check = (
        anything
        if deep or loose or module == DASK
        else check_not_infinite
        if name in NAN
        else check_finite
    )

    def whole(*args: Any, **kwargs: Any) -> Any:  # what a stream yields, but for endless headers
        result = function(*args, **kwargs)
        return list(islice(result, 1000)) if isinstance(result, Iterator) else result

    required = [  # scikit-learn's wrappers take the first by place alone
        given.pop(one.name)
        for one in inspect.signature(function).parameters.values()
        if one.name in given and one.default is one.empty and one.kind.name[:3] == "POS"
    ]
    allows = (*READS, *ALLOWS.get(name, ()), *[DivergenceError] * deep)
    return t.call(
        owner, whole, *required, check=check, allows=allows, looks=name not in NOT_YET, **given
    )


def _pickled(estimator: Any) -> Any:
    try:
        data = pickle.dumps(estimator)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError from error
    return pickle.loads(data)


def operate(t: Trial, one: Any, module: str = "annealvi") -> Any:
    """Call a method, read or assign an attribute, or copy; return what to go on with."""
    cls = type(one)
    others = ["copy", "repr"] + ["set_params"] * hasattr(cls, "set_params")
    name = t.one_of(*members(cls), *others)
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
        value = arguments(t, _setter(name[:-1]), owner, module)[name[:-1]]
        t.call(owner, setattr, one, name[:-1], value, allows=(AttributeError,), check=anything)
    elif isinstance(inspect.getattr_static(cls, name), property):
        check = check_not_infinite if name in NAN else check_finite
        if name in ("components_", "labels") or module in DEEP:
            check = anything
        t.call(owner, getattr, one, name, check=check, allows=(AttributeError,))
    else:
        answered, found = called(t, getattr(one, name), owner, module, cls)
        if answered and module == DASK and isinstance(found, list):
            t.call("compute", lambda: [part.compute(scheduler="synchronous") for part in found])
        return found if answered and isinstance(found, cls) else one
    return one


def _setter(name: str) -> Any:
    """A function whose argument has the name of an attribute."""
    parameter = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    function = lambda value: value  # noqa: E731
    function.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return function


def run_function(t: Trial, module: str, name: str) -> None:
    """Call a function; use the estimator, the summary or the figure that it returns."""
    matplotlib.use("Agg")
    answered, found = called(t, getattr(import_module(module), name), name, module)
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


def run_class(t: Trial, module: str, name: str) -> None:
    """Make an object and do some of what can be done to it, in any order."""
    cls = getattr(import_module(module), name)
    answered, one = called(t, cls, name, module, cls)
    if not answered:
        return
    if cls in (HeldOut, Checkpoint, ProgressBar):
        fast = t.one_of(TemperedLDA, TemperedFMM)(2, max_iter=2, callback=one, random_state=0)
        X = t.draw(s.good_matrices(WORDS))
        X = X.toarray() if sparse.issparse(X) and isinstance(fast, TemperedFMM) else X
        answered, _ = t.call("fit", fast.fit, X, check=anything, allows=(OSError,))
        if answered:
            t.call("history_", getattr, fast, "history_", check=check_not_infinite)
    elif cls is partition.LogPartition and not t.call("check", one.check)[0]:
        return
    elif cls is prox.Adam:
        t.call("step", one, np.asarray(t.draw(s.arrays((4,), low=-3)), float), check=anything)
    elif cls is prox.BernoulliFactorModel:
        answered, means = t.call("check_means", one.check_means, t.draw(BY_NAME["means"]))
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
    if hasattr(cls, "fit") and not t.seldom(4):
        X = t.draw(s.good_matrices(WORDS, counts=cls not in POINT_MODELS))
        X = t.draw(s.good_texts) if cls is TopicModel else X
        if module in DEEP and name != "PoissonDEF":  # of binary data
            X = np.asarray(sparse.csr_matrix(X).toarray() > 0, np.float32)
        allows = (DivergenceError, OSError)
        t.call("fit", one.fit, _parts(t) if module == DASK else X, check=anything, allows=allows)
    for _ in range(t.whole(0, 5) if members(cls) else 0):
        one = operate(t, one, module)


#: How often a target is called, if not once a round.
WEIGHTS = {"TemperedLDA": 12, "TemperedFMM": 5, "TemperedGaussianMixture": 5, "TopicModel": 4}
WEIGHTS |= {"document_completion": 3, "log_partition": 3, "describe": 2, "choose": 2}


def all_targets(deep: bool = False) -> dict[str, Target]:
    """All targets by name; with `deep` those of the models that need PyTorch instead."""
    found: dict[Any, tuple[str, Target]] = {}  # a name may be in two modules
    for module in DEEP if deep else MODULES:
        if find_spec("plotly") is None and module in (
            "annealvi.plot.interactive",
            "annealvi.plot.report",
        ):
            continue
        for name in public_names(module):
            value = getattr(import_module(module), name)
            if name not in EXEMPT and value not in found:
                run = run_class if inspect.isclass(value) else run_function
                short = f"{module.partition('.')[2]}.{name}".lstrip(".")
                weight = WEIGHTS.get(name, 1)
                found[value] = (
                    short,
                    Target(functools.partial(run, module=module, name=name), weight),
                )
    targets = dict(found.values())
    if not deep:
        for name, checkpoint in (("files.load", False), ("files.resume", True)):
            run = functools.partial(damaged_estimators, checkpoint=checkpoint)
            targets[name] = Target(run, 4)
    return targets
