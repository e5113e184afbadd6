"""Strategies of Hypothesis: numbers at the edges, unsound data, what constraints allow."""

from __future__ import annotations

import copy
import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.utils import _param_validation as validation

from tests.damaged import V as WIDTH
from tests.damaged import odd as strange
from tests.damaged import unsound

Strategy = st.SearchStrategy[Any]
TOPICS = 3
#: Numbers at the edges of what dtypes can hold.
EXTREMES = (0.0, -0.0, 5e-324, 1e-300, 1e-160, 1e-45, 1e-30, 1e30, 1e38, 1e154, 1e200, 1e305)
NOT_FINITE = (math.nan, math.inf, -math.inf)
edges = st.sampled_from([*EXTREMES, *NOT_FINITE, -1.0, 0.5, 1e9])
odd = st.one_of(
    st.sampled_from(
        [
            *(0, 1, -1, 2, 0.5, -0.5, 2**31, 2**53, 2**63, -(2**63), 10**30, 10**400, 1 + 0j),
            *(*EXTREMES, *NOT_FINITE, True, False, np.bool_(True), Fraction(1, 3), Decimal("0.5")),
            *(np.float32(0.1), np.int8(3), np.uint64(2**63), np.float16(0.5), np.longdouble(0.5)),
            np.datetime64("2020-01-01"),
        ]
    ),
    st.sampled_from(
        [
            *(None, "", "auto", "nan", "0.5", "learn", "kmeans", b"auto", "é\udc80", (), int, len),
            *(range(3), slice(2), object(), Exception("no"), np.ma.masked, lambda *given: None),
        ]
    ),
    st.recursive(st.none() | st.floats() | st.text(max_size=3), lambda s: st.lists(s, max_size=3)),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0)),
)
#: The largest good value of numbers that set how long a call takes.
MOST = {
    **dict.fromkeys(["n_components", "n_topics", "n_theta", "n_inner", "n_draws", "dim"], 4),
    **dict.fromkeys(["max_iter", "n_init", "rounds", "n_runs", "n_reverse", "refits"], 3),
    **dict.fromkeys(["n_transitions", "transition_hidden", "n_local_steps"], 3),
    **dict.fromkeys(["grid", "n_documents", "n_features", "size", "max_doc_update_iter"], 20),
    **dict.fromkeys(["n_samples", "n_steps", "n_columns", "hidden", "n_jobs"], 6),
    **{"document_length": 100, "lengths": 40, "document_lengths": 40, "learning_offset": 100},
    **{"n_words": 12, "n_records": 5},
}
#: Where a function would be accepted and called, and where a number is an open file.
CALLED = {"callback", "statistic", "distance", "value", "derivative", "analyzer", "tokenizer"}
CALLED |= {"preprocessor", "strip_accents", "proximity", "schedule", "log_density", "function"}
PATHS = {"path", "source", "resume", "checkpoint", "vocabulary", "data_home"}
#: Shapes that arrays among the parameters may have; others have one of the last.
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    **dict.fromkeys(["weights", "doc_topic_prior", "prior_probability"], ((), (TOPICS,))),
    **dict.fromkeys(["topic_word_prior"], ((), (WIDTH,), (TOPICS, WIDTH))),
    **dict.fromkeys(["init", "means_init", "components", "means", "exp_dirichlet_component"], ()),
    **dict.fromkeys(["mean_prior", "covariance_prior"], ((WIDTH,),)),
    **{"covariances": ((WIDTH,), (TOPICS,), (TOPICS, WIDTH)), "prior": ((7,), (100,))},
    **{"grid": ((7,),), "shapes": ((3, 7),), "logits": ((1, TOPICS, 5), (2, TOPICS, 5))},
    "": ((2,), (3,), (7,), ()),
}


def odd_for(name: str) -> Strategy:
    """Odd values for a parameter: none that takes long, is called, or is an open file."""

    def fits(value: Any) -> bool:
        several = np.ravel(np.asarray(value, dtype=object))
        many = [one for one in several if isinstance(one, Real | Decimal) and one < math.inf]
        if name in MOST and any(one > 10 * MOST[name] for one in many):
            return False
        if name in PATHS and many and several.size == 1:
            return False
        return not (name in CALLED and callable(value))

    return odd.filter(fits)


def one_of(*values: Any) -> Strategy:
    return st.sampled_from(values)


def mostly(usual: Strategy, seldom: Strategy) -> Strategy:
    """Draws of the second strategy once in four times."""
    return st.integers(1, 4).flatmap(lambda number: seldom if number == 4 else usual)


flags = st.booleans()
seeds = st.integers(0, 99) | one_of(None, np.random.RandomState(1), 2**32 - 1)


def each(*values: Any) -> Strategy:
    """One of the values for each of twenty documents, seldom for fewer."""
    whole = st.lists(one_of(*values), min_size=20, max_size=20)
    return mostly(whole, st.lists(one_of(*values), max_size=5))


@st.composite
def arrays(draw: Any, *shapes: tuple[int, ...], low: float = 0.01, high: float = 3.0) -> Any:
    """An array of one of some shapes, sometimes of another or with a number at the edge."""
    shape = draw(st.sampled_from(shapes))
    if draw(st.integers(0, 19)) == 19:
        shape = tuple(max(0, n + draw(st.integers(-1, 1))) for n in shape)
    values = draw(hnp.arrays(np.float64, shape, elements=st.floats(low, high)))
    if values.size and draw(st.integers(0, 9)) == 9:
        values.flat[draw(st.integers(0, values.size - 1))] = draw(edges)
    if draw(st.integers(0, 4)) == 4:
        with np.errstate(all="ignore"):
            values = values.astype(draw(one_of("f4", "f2", ">f8", "i4", "O", "g")))
    return values.tolist() if draw(flags) else values


def named_array(name: str) -> Strategy:
    shapes = SHAPES.get(name.rstrip("_"), SHAPES[""]) or ((TOPICS, WIDTH),)
    return arrays(*shapes)


def _interval(name: str, kind: Any, low: Any, high: Any, closed: str) -> Strategy:
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if kind is Integral:
        least = -1 if low == -math.inf else int(low) + (closed in ("right", "neither"))
        return st.integers(least, int(min(high, MOST.get(name, 9))))
    open_low = closed in ("right", "neither") or math.isinf(low)
    open_high = closed in ("left", "neither") or math.isinf(high)
    most = min(high, MOST.get(name, math.inf))
    near = st.floats(max(low, 1e-3), min(most, max(10.0, low + 3)), exclude_max=open_high)
    far = st.floats(low, most, exclude_min=open_low, exclude_max=open_high, allow_nan=False)
    types = one_of(float, float, np.float64, np.float32)
    return mostly(st.builds(lambda kind, x: kind(x), types, near), far)


def _allowed(name: str, constraint: Any) -> Strategy:
    """Values that a constraint of scikit-learn's allows, or a name in an annotation."""
    if isinstance(constraint, validation.Interval):
        limits = constraint.left, constraint.right, constraint.closed
        return _interval(name, constraint.type, *limits)
    if isinstance(constraint, validation.Options):
        return st.sampled_from(sorted(constraint.options, key=repr))
    plain: dict[Any, Strategy] = {
        **{"boolean": flags, "bool": flags, "verbose": one_of(0, 1), "random_state": seeds},
        **{None: st.none(), "None": st.none(), Integral: one_of(1, 1, 2, 3, -1, -2, -100)},
        **{"int": _interval(name, Integral, 0, None, "neither")},
        **{"float": _interval(name, Real, 0, None, "neither"), "str": one_of("a", "b", "")},
        **{
            "np.random.RandomState": seeds,
            "NDArray": named_array(name),
            "ArrayLike": named_array(name),
        },
    }
    plain |= {"array-like": named_array(name)} if name in SHAPES else {}
    try:
        return plain.get(constraint, st.nothing())
    except TypeError:  # not hashable
        return st.nothing()


def allowed_by(owner: Any, name: str) -> Strategy:
    """Values of a parameter that the constraints of a class or function allow."""
    constraints: Any = getattr(owner, "_skl_parameter_constraints", None)
    found = (constraints or getattr(owner, "_parameter_constraints", {})).get(name)
    return st.one_of([_allowed(name, one) for one in found] if isinstance(found, list) else [])


def annotated(name: str, annotation: Any) -> Strategy:
    """Values that an annotation allows, such as ``float | Literal["learn"] | None``."""
    options = []
    for part in str(annotation).split(" | "):
        kind, _, inner = part.partition("[")
        literal = kind == "Literal"
        options.append(st.sampled_from(eval(f"[{inner}")) if literal else _allowed(name, kind))
    return st.one_of(options)


def _numbers(draw: Any, shape: tuple[int, int], counts: bool) -> Any:
    """Word counts or real numbers: usual ones, or with some at the edges."""
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    X = rng.poisson(draw(one_of(0.3, 1.0, 5.0)), shape) * 1.0 if counts else rng.normal(size=shape)
    style = draw(one_of(*["usual"] * 6, "scaled", "shifted", "constant", "edge", "few"))
    with np.errstate(all="ignore"):
        if style == "scaled":
            X *= draw(one_of(*EXTREMES, 1e3, 1e-3))
        elif style == "shifted" and not counts:
            X += draw(one_of(1e3, 1e8, 1e16, 1e100, -1e160))
        elif style == "constant" and X.size:
            X[:, draw(st.integers(0, shape[1] - 1))] = draw(one_of(0.0, 1.0, 1e-300, 1e100))
        elif style == "edge" and X.size:
            for _ in range(draw(st.integers(1, 3))):
                X.flat[draw(st.integers(0, X.size - 1))] = draw(edges)
        elif style == "few":
            few = one_of(0.0, 0.0, 1.0, 2.0, 0.5)
            X = draw(hnp.arrays(np.float64, shape, elements=few, fill=st.just(0.0)))
        dtype = draw(one_of(*["f8"] * 8, *["f4"] * 4, "i4", "i8", "u1", "f2", "?", ">f4", "g", "O"))
        return np.nan_to_num(X).astype(dtype) if dtype[0] in "iu" else X.astype(dtype)


def _dense(draw: Any, X: np.ndarray) -> Any:
    """An array in some layout, a list or a frame."""
    how = draw(one_of(*["plain"] * 6, "fortran", "strided", "frozen", "list", "frame", "flat"))
    if how == "frame":
        names = [f"word {v}" for v in range(X.shape[1])]
        return pd.DataFrame(X, columns=draw(one_of(names, names, names[::-1], ["a"] * len(names))))
    X.flags.writeable = how != "frozen"
    layouts = {"fortran": np.asfortranarray, "list": np.ndarray.tolist, "flat": np.ravel}
    layouts["strided"] = lambda X: np.repeat(X, 2, axis=1)[:, ::2]
    return layouts.get(how, lambda X: X)(X)


#: Matrices of SciPy that are unsound, or sound and odd, of the width that all data have here.
STRANGE = [*unsound(), *strange()]


def _sparse(draw: Any, X: np.ndarray) -> Any:
    """A sparse matrix of some format; or a strange one, or one with an index at the edge."""
    how = draw(one_of(*["plain"] * 4, "format", "strange", "strange", "written"))
    if how == "strange":
        name, found = draw(st.sampled_from(STRANGE))
        return found if name.startswith("dok") else copy.deepcopy(found)  # SciPy looks its keys up
    kind = draw(one_of(sparse.csr_matrix, sparse.csr_array))
    made = kind(X.astype(X.dtype.newbyteorder("=") if X.dtype.char in "dfilqB?" else np.float64))
    if how == "format" and X.size:
        return made.asformat(draw(one_of("csc", "coo", "lil", "dok", "bsr", "dia")))
    array = draw(one_of(made.indices, made.indptr))
    if how == "written" and array.size:
        limits = np.iinfo(array.dtype)
        near = st.integers(-1, max(X.shape) + 1) | one_of(limits.min, limits.max)
        array[draw(st.integers(0, array.size - 1))] = draw(near)
    return made


@st.composite
def matrices(draw: Any, n_features: int = WIDTH, counts: bool = True) -> Any:
    """Word counts or points, in some format; seldom of another width, empty or large."""
    n_samples = draw(st.integers(1, 12) | st.integers(1, 12) | one_of(0, 20, 40, 130))
    if draw(st.integers(0, 29)) == 29:
        n_features = draw(one_of(0, 1, n_features + 1))
    X = _numbers(draw, (n_samples, n_features), counts)
    return _sparse(draw, X) if draw(st.integers(0, 9)) < (6 if counts else 1) else _dense(draw, X)


@st.composite
def good_matrices(draw: Any, counts: bool = True) -> Any:
    """Data that every estimator takes."""
    shape = draw(st.integers(5, 12)), WIDTH
    rng = np.random.RandomState(draw(st.integers(0, 99)))
    X = rng.poisson(1.0, shape) * 1.0 if counts else rng.normal(size=shape)
    X[0, 0] += 1
    X = X.astype(draw(one_of(np.float64, np.float32)))
    return sparse.csr_matrix(X) if counts and draw(flags) else X


WORDS = (
    *("star", "planet", "orbit", "bread", "butter", "flour", "ship", "wave", "sail", "the", "of"),
    *("NASA", "É", "naïve", "don't", "2020", "\0", "\ud800", "\u200b", "<script>", "x" * 500),
)
text = st.lists(one_of(*WORDS), max_size=12).map(" ".join) | st.text(max_size=20)
good_texts = st.lists(
    st.lists(one_of(*WORDS[:9]), min_size=3).map(" ".join), min_size=6, max_size=20
)


@st.composite
def texts(draw: Any) -> Any:
    """Texts in a container of some kind, now and then with something else among them."""
    found: list[Any] = draw(good_texts | st.lists(text, max_size=20))
    if found and not draw(st.integers(0, 4)):
        wrong = one_of(None, b"bytes", math.nan, pd.NA) | odd
        found[draw(st.integers(0, len(found) - 1))] = draw(wrong)
    try:
        return draw(one_of(*[list] * 5, tuple, iter, pd.Series, " ".join, dict.fromkeys))(found)
    except (TypeError, ValueError):
        return found
