"""What the tests of several deep estimators do with their fits."""

import numpy as np
import pytest
from sklearn.base import clone


def stop_at(step, path=None):
    """A callback that ends the fit after a step, and saves its state where a path is given."""

    def callback(estimator, monitor):
        if monitor.step == step:
            if path is not None:
                estimator.save_state(path)
            raise StopIteration

    return callback


def assert_refuses(fitted, options, X, message, answer):
    """Parameters that raise in `fit` leave a fitted estimator, and a fresh one, as they were."""
    before = answer(fitted)
    fresh = clone(fitted).set_params(**options)
    with pytest.raises(ValueError, match=message):
        fitted.set_params(**options).fit(X)
    np.testing.assert_array_equal(answer(fitted), before)
    with pytest.raises(ValueError, match=message):
        fresh.fit(X)
    assert not hasattr(fresh, "network_")


def undocumented(fitted):
    """Names of fitted attributes that the docstring of the class does not list."""
    names = {name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")}
    listed = type(fitted).__doc__.split("Attributes\n")[1]
    return {name for name in names if f"    {name} : " not in listed}


def order_matters(reason):
    """What scikit-learn's checks expect of estimators that draw for one sample after another."""
    names = ["check_methods_sample_order_invariance", "check_methods_subset_invariance"]
    return lambda estimator: dict.fromkeys(names, reason)
