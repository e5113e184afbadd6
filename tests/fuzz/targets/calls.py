"""What is done to all estimators."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import clone

from tests.fuzz.judge import UserError, anything, check_not_infinite
from tests.fuzz.trial import Trial

#: Done to an estimator with the data that it may know; see `sequence`.
Operation = Callable[[Trial, Any], Any]


def read(t: Trial, name: str, estimator: Any) -> None:
    """Read an attribute, which need not be there.

    NaN is allowed in a history: not everything is evaluated at each record.  Documents without
    words have no temperature.
    """
    some_are_nan = name in ("history_", "document_temperatures_")
    check = check_not_infinite if some_are_nan else None
    if name == "components_" and t.spoilt:
        check = anything
    options = {} if check is None else {"check": check}
    t.call(name, getattr, estimator, name, allows=(AttributeError,), **options)


#: Raised by `clone` for a parameter that a constructor changed.
NO_COPY = (RuntimeError,)


def _pickled(estimator: Any) -> Any:
    try:
        data = pickle.dumps(estimator)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UserError from error
    return pickle.loads(data)


def copied(t: Trial, estimator: Any) -> Any:
    """A copy of some kind; the estimator itself where that is an error."""
    how = t.one_of(clone, copy.copy, copy.deepcopy, _pickled)
    answered, other = t.call(
        getattr(how, "__name__", "how"), how, estimator, check=anything, allows=NO_COPY
    )
    return other if answered else estimator


def sequence(t: Trial, estimator: Any, operations: Mapping[str, Operation], longest: int) -> None:
    """Do some of the operations one after another, to the same estimator or to copies of it.

    Parameters
    ----------
    t : Trial
    estimator : object
    operations : dict of str to callable
        An operation returns the estimator to go on with, or None for the same one.
    longest : int
    """
    names = list(operations)
    for _ in range(t.whole(1, longest)):
        name = t.one_of(*names)
        estimator = operations[name](t, estimator) or estimator
