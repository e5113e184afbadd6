"""Scripts that compare commits call older builds by the names that those have."""

import inspect
from pkgutil import resolve_name

from bench.speed import renames


def test_the_present_names_are_those_of_the_package():
    for owner, name in renames.PARAMETERS:
        function = getattr(resolve_name(owner), name)
        renamed = renames.PARAMETERS[owner, name]
        assert renamed.keys() <= inspect.signature(function).parameters.keys()
        assert renames.with_former_names(function, renamed) is function
    for module, name in renames.MOVED:
        assert hasattr(resolve_name(module), name)


def test_an_older_function_gets_the_former_names():
    def older(estimator, X, *, observed=0.5):
        return estimator, X, observed

    function = renames.with_former_names(older, {"model": "estimator", "documents": "X"})
    assert function(1, 2) == function(model=1, documents=2) == function(1, X=2) == (1, 2, 0.5)
    assert function(1, documents=3, observed=0.1) == (1, 3, 0.1)
