"""One more portion of a stream of documents, for `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from scipy import sparse

from annealvi.inference import Monitor
from annealvi.lda.defaults import Settings, check_steps
from annealvi.lda.state import LDAState
from annealvi.temperature import Temperature


def prepare_portion(
    state: LDAState,
    X: sparse.csr_matrix,
    settings: Settings,
    population: float,
    wanted: Temperature,
    n_threads: int,
) -> None:
    """Check one more portion of a stream, and update the settings and the temperature.

    Parameters
    ----------
    state : LDAState
        Changed in place, if there is no error.
    X : CSR matrix of shape (n_samples, V)
    settings : Settings
    population : float
        Number of documents in the whole stream.
    wanted : Temperature
        Planned again if it differs from that of the last portion.
    n_threads : int

    Raises
    ------
    ValueError
        If a prior is not valid, or if rho T >= 1 in a step of the posterior form.
    """
    state.check_priors()
    state.model.release_buffers()  # in a forked child, of a step that was not its own
    state.model.set_corpus(X, population)
    batch_size, planned = int(settings.batch_size), state.temperature
    if state.planned_for is None or wanted != state.planned_for:
        planned = state.plan(wanted, None, population / batch_size)
    n_steps = -(-X.shape[0] // batch_size)
    check_steps(settings, planned, settings.step_size(None), state.monitor.step, n_steps)
    if planned is not state.temperature:
        state.follow(wanted, planned)
    state.resume(settings, n_threads)


def fit_portion(
    state: LDAState,
    X: sparse.csr_matrix,
    settings: Settings,
    population: float,
    callback: Callable[[Monitor], None] | None,
) -> None:
    """Fit one more portion of a stream, after :func:`prepare_portion`.

    Parameters
    ----------
    state : LDAState
        Changed in place.
    X : CSR matrix of shape (n_samples, V)
    settings : Settings
    population : float
        Number of documents in the whole stream.
    callback : callable or None
        Called with the monitor after each step.
    """
    state.forget_results()
    state.make_passes(
        X,
        batch_size=int(settings.batch_size),
        n_passes=1,
        population=population,
        step_size=settings.step_size(None),
        on_step=partial(state.after_step, callback),
    )
