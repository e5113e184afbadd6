"""Bad parameters, drawn from what classes and functions say they allow.

The error names the parameter and its owner, what is allowed and what was passed; an estimator is
left as it was.  Errors that depend on the data or on other parameters have tests of their own.
"""

import math
import re
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from numbers import Real

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.utils import _param_validation as validation

from annealvi import TemperedFMM, TemperedGaussianMixture, TemperedLDA, TemperedMultinomialMixture
from annealvi.callbacks import Checkpoint, HeldOut
from annealvi.datasets import make_shape_mixture, make_topic_corpus
from annealvi.metrics import document_completion
from annealvi.partition import LogPartition
from annealvi.proximity import BernoulliFactorModel, MovingAverage, ProximityAscent
from annealvi.temperature import Annealed, Fixed, LocalVariational, Proximity, Variational
from annealvi.topics import TopicModel
from tests.reference import reference, thing

X = make_topic_corpus(30, 20, 3, document_length=20, random_state=0).data
POINTS = make_shape_mixture(30, random_state=0).data  # 16 features
TEXTS = ["moon orbit moon", "goal team goal", "orbit comet", "the team"] * 5
HUGE = 10**400
#: Values of which most parameters allow none.
VALUES = (
    *(-1.5, 0, 1.5, 2.5, -1, math.nan, math.inf, -math.inf, HUGE, True, None, 1j),
    *("no such value", b"auto", {"a": 1}, object(), len, np.datetime64("2020-01-01")),
)
#: Arrays that no parameter allows.
ARRAYS = ([["a"]], [[1], [1, 2], 3], np.ones((2, 2, 2, 2)), np.ones(1, complex), np.ones((0, 7)))


def bad_values(constraints):
    """The values that none of some constraints allows, and arrays where an array is allowed."""
    made = [validation.make_constraint(c) for c in constraints if c is not list]
    kinds = tuple(c for c in constraints if isinstance(c, type))
    for value in VALUES:
        if not isinstance(value, kinds) and not any(c.is_satisfied_by(value) for c in made):
            yield value
    if "array-like" in constraints:
        yield from ARRAYS


def found(error, name, owner, value):
    text = str(error)
    words = rf"'{name}'( parameter)?( of {owner})?( parameter)? must be .*Got "
    assert re.search(words, text, re.S), text
    if isinstance(value, str | Real | bytes) and value is not HUGE:
        assert f"Got {value!r}" in text, text


def fit(estimator):
    """Fit to data of its kind, or ask a temperature for its plan."""
    if isinstance(estimator, ProximityAscent):
        return estimator.ascend(BernoulliFactorModel(POINTS), np.ones((2, 16)))
    if not hasattr(estimator, "fit"):
        return estimator.check()
    if isinstance(estimator, TopicModel):
        return estimator.fit(TEXTS)
    if type(estimator).__module__.startswith("annealvi.deep"):
        return estimator.fit(np.eye(12, 5))
    counts = isinstance(estimator, (TemperedLDA, TemperedMultinomialMixture))
    return estimator.fit(X if counts else POINTS)


#: Parameters that are not in the constraints, as what they allow depends on the class.
MORE = {
    "temperature": [0.5, math.nan, math.inf, HUGE, "cold", [1.0], object(), 0],
    "seed_words": [3, "moon", ["moon"], {"a": 3}],
    "callback": [3, {}, "print", [3]],
    "device": ["gpu", "cuda:x", None, 0.5],
}
OWNERS = (TemperedFMM, TemperedGaussianMixture, TemperedLDA, TemperedMultinomialMixture, TopicModel)
OWNERS += (Fixed, Annealed, Variational, LocalVariational, Proximity, ProximityAscent)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner in OWNERS for name in owner._parameter_constraints],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_of_a_class(owner, name):
    check(owner, name, {"lda": TemperedLDA(max_iter=2)} if owner is TopicModel else {})


def check(owner, name, small):
    values = MORE.get(name) or list(bad_values(owner._parameter_constraints[name]))
    assert values
    few = {"n_components": 2, "n_topics": 2, "max_iter": 2, "random_state": 0}
    few = {key: few[key] for key in few.keys() & owner._parameter_constraints.keys()}
    for value in values:
        bad = owner(**few | small | {name: value})
        before = dict(vars(bad))
        with pytest.raises((ValueError, TypeError)) as caught:
            fit(bad)
        found(caught.value, name, owner.__name__, value)
        assert vars(bad).keys() == before.keys()
        assert all(vars(bad)[key] is before[key] for key in before)


MODELS = "PoissonDEF", "SigmoidBeliefNetwork", "VariationalAutoencoder", "HierarchicalPosterior"


@pytest.mark.deep
@pytest.mark.parametrize("kind", [*MODELS, "ProximityPenalty"])
def test_of_a_deep_model(kind):
    owner = getattr(import_module("annealvi.deep"), kind)
    posterior = {"log_density": lambda z: -(z**2).sum(dim=-1), "dim": 2}
    small = posterior if kind == "HierarchicalPosterior" else {}
    for name, constraints in owner._parameter_constraints.items():
        if name in MORE or constraints != "no_validation":
            check(owner, name, small)


def functions():
    for module, name in reference():
        if not module.startswith("annealvi.deep") and not isinstance(thing(module, name), type):
            function = thing(module, name)
            for parameter, allowed in getattr(function, "_skl_parameter_constraints", {}).items():
                if allowed != "no_validation":
                    yield pytest.param(function, parameter, allowed, id=f"{name}-{parameter}")


@pytest.mark.parametrize(("function", "name", "allowed"), list(functions()))
def test_of_a_function(function, name, allowed):
    """Parameters that are listed are checked before any other."""
    first = {"components": POINTS, "truth": POINTS, "name": "a", "X": X, "path": "out.html"}
    required = {"model": LDA, "topics": X, "a": X, "b": X, "other_topics": X, "summary": None}
    required |= {"fits": {}, "shape": (1, 1), "corpus": [], "blocks": [], "texts": [], "words": 3}
    required |= {"labels_true": [0, 1], "labels_pred": [0, 1], "documents": X}
    required |= {"temperatures": [1, 2], "t_max": 4.0, "size": 3}
    required |= {
        "vectorizer": HashingVectorizer(),
        "topic": 0,
        "groups": ["a", "b"],
        "times": [2020],
    }
    names = signature(function).parameters
    given = {key: value for key, value in (first | required).items() if key in names}
    for value in bad_values(allowed):
        if isinstance(value, np.ndarray | list):
            continue
        with pytest.raises((ValueError, TypeError)) as caught:
            function(**given | {name: value})
        found(caught.value, name, function.__name__, value)


LDA = TemperedLDA(2, max_iter=2, random_state=0).fit(X)
FMM = TemperedFMM(2, max_iter=2, random_state=0).fit(POINTS)
PREDICTIVE, HALF, B = FMM.predictive_score, np.arange(16) < 8, [1, 0.5]
FRACTIONS, COUNTS, FLAGS = (0, 1, 1.5, math.nan, "a"), (0, -1, 2.5, "a"), ("no", np.ones(2))
NO_GRIDS = ([], [0.0], [math.nan], object(), [[1.0]])
#: Functions and methods with checks of their own: how they are called with a value; bad values.
OTHERS: dict[str, tuple[Callable, tuple]] = {
    "transform(normalize)": (lambda v: LDA.transform(X, normalize=v), FLAGS),
    "transform(temperature)": (lambda v: LDA.transform(X, temperature=v), (0.5, HUGE, "cold")),
    "transform(method)": (lambda v: LDA.transform(X, method=v), ("gibbs", None)),
    "perplexity(sub_sampling)": (lambda v: LDA.perplexity(X, v), FLAGS),
    "posterior_log_partition(temperatures)": (
        lambda v: LDA.posterior_log_partition(v, X),
        NO_GRIDS,
    ),
    "predictive_score(per_sample)": (lambda v: PREDICTIVE(POINTS, HALF, per_sample=v), FLAGS),
    "predictive_score(n_draws)": (lambda v: PREDICTIVE(POINTS, HALF, n_draws=v), (*COUNTS, HUGE)),
    "completion(per_document)": (lambda v: document_completion(LDA, X, per_document=v), FLAGS),
    "HeldOut(observed)": (lambda v: HeldOut(X, observed=v), FRACTIONS),
    "HeldOut(every)": (lambda v: HeldOut(X, every=v), (0, -1, math.nan, "a")),
    "Checkpoint(seconds)": (lambda v: Checkpoint("out", v), (-1, math.nan, "a")),
    "MovingAverage(decay)": (MovingAverage, (0, 1.5, math.nan, "a")),
    "LogPartition(made_for)": (
        lambda v: LogPartition([1, 2], [0, 1], made_for=v).check(),
        (range(3), None, "a"),
    ),
    "n_batch_iter_": (lambda v: setattr(LDA, "n_batch_iter_", v), (0, [1], 2.5)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_of_a_method_or_a_function_with_checks_of_its_own(name):
    call, values = OTHERS[name]
    owner, _, parameter = name.rstrip(")").rpartition("(")
    for value in values:
        with pytest.raises((ValueError, TypeError)) as caught:
            call(value)
        found(caught.value, parameter, rf"[\w.]*{owner}", value)
