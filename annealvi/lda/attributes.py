"""The fitted attributes of an LDA estimator, of which the user may assign some, and its files."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from annealvi.checks import as_array, check_topics, n_threads, unchanged_on_error
from annealvi.files import Node
from annealvi.inference.fitted import Fitted
from annealvi.lda.defaults import Settings
from annealvi.lda.dtypes import single_or_double, topics_dtype
from annealvi.lda.parameters import stream_settings
from annealvi.lda.saved import state_of, state_tree
from annealvi.lda.state import LDAState
from annealvi.threads import writing


class Attributes(Fitted, BaseEstimator):
    """The attributes of a fitted estimator; see :class:`annealvi.TemperedLDA`.

    A subclass defines the parameters.
    """

    # set by `fit`, `partial_fit` or an assignment to `components_`
    _state: LDAState

    # the subclass's parameters that are needed here
    n_components: int
    total_samples: float
    n_jobs: int | None
    random_state: Any

    @property
    def components_(self) -> NDArray:
        return self._fitted().model.topics.show()

    @components_.setter
    def components_(self, value: ArrayLike) -> None:
        with writing(self):
            self._set_components(as_array(value))

    def _set_components(self, value: NDArray) -> None:
        state: LDAState | None = vars(self).get("_state")
        if state is not None and state.model.buffers.in_use:
            # a callback edits the topics of a running fit
            model = state.model
            shape = (model.n_topics, model.n_features)
            value = check_topics(value, "components_", shape, model.dtype)
            with state.lock:
                model.topics.assign(value)
                state.results.sample = None
            return
        n_topics = value.shape[0] if value.ndim else self.n_components
        n_features = value.shape[-1] if value.ndim and state is None else 0
        n_features = getattr(self, "n_features_in_", n_features)
        self._validate_params()  # settings follow from them
        dtype = topics_dtype(vars(self), value) if state is None else state.model.dtype
        value = check_topics(value, "components_", (n_topics, n_features), dtype)
        with unchanged_on_error(self):
            self._go_on_from(value, dtype)

    def _go_on_from(self, components: NDArray, dtype: np.dtype) -> None:
        """Use given topics as if a fit had found them."""
        settings = self._resolved(components.shape[0])
        owner, threads = type(self).__name__, n_threads(self.n_jobs)
        wanted = settings.wanted_temperature(owner)
        if self.__sklearn_is_fitted__():
            self._state = self._state.moved_to(components, settings, threads)
            return
        rng = check_random_state(self.random_state)
        state = LDAState.at_topics(owner, components, settings, rng, threads, dtype)
        state.shown_as(single_or_double(components))
        planned = state.plan(wanted, None, float(self.total_samples) / settings.batch_size)
        state.follow(wanted, planned)
        self.n_features_in_, self._state = components.shape[1], state

    @property
    def exp_dirichlet_component_(self) -> NDArray:
        return self._fitted().model.topics.exp_e_log()

    @exp_dirichlet_component_.setter
    def exp_dirichlet_component_(self, value: ArrayLike) -> None:
        derived = self.exp_dirichlet_component_
        value = as_array(value)
        wrong = value.dtype.kind not in "fiu" or value.shape != derived.shape
        if wrong or not np.allclose(value, derived, rtol=1e-3, atol=1e-6):
            raise ValueError(
                f"The 'exp_dirichlet_component_' of {type(self).__name__} follows from "
                "'components_' as exp(E[log beta]); the array assigned differs from it. Assign "
                "'components_' instead."
            )

    @property
    def dtype_(self) -> np.dtype:
        return self._fitted().model.dtype

    @property
    def doc_topic_prior_(self) -> float | NDArray[np.float64]:
        return self._fitted().doc_topic_prior

    @doc_topic_prior_.setter
    def doc_topic_prior_(self, value: float | NDArray[np.float64]) -> None:
        with writing(self):
            self._fitted().doc_topic_prior = value

    @property
    def topic_word_prior_(self) -> float | NDArray[np.float64]:
        return self._fitted().topic_word_prior

    @topic_word_prior_.setter
    def topic_word_prior_(self, value: float | NDArray[np.float64]) -> None:
        with writing(self):
            self._fitted().topic_word_prior = value

    @property
    def random_state_(self) -> RandomState | None:
        return self._fitted().model.rng

    @random_state_.setter
    def random_state_(self, value: RandomState) -> None:
        with writing(self):
            state = self._fitted()
            state.model.rng = check_random_state(value)

    @property
    def n_batch_iter_(self) -> int:
        return self._fitted().monitor.step + 1

    @n_batch_iter_.setter
    def n_batch_iter_(self, value: int) -> None:
        with writing(self):
            state = self._fitted()
            if not isinstance(value, Integral) or not 1 <= value <= 2**53:
                raise ValueError(
                    f"The 'n_batch_iter_' of {type(self).__name__} must be an int in the range "
                    f"[1, {2**53}]. Got {value!r} instead."
                )
            state.monitor.step = int(value) - 1

    @property
    def n_iter_(self) -> int:
        return self._fitted().n_passes

    @property
    def settings_(self) -> dict[str, Any]:
        return self._found(self._fitted().settings, "settings_", "`fit` or `partial_fit`")

    @property
    def bound_(self) -> float:
        return self._found(self._fitted().results.bound, "bound_", "`fit`")

    @property
    def validation_score_(self) -> float:
        score = self._fitted().results.validation_score
        return self._found(score, "validation_score_", "`fit` with validation_fraction")

    @property
    def init_scores_(self) -> NDArray[np.float64]:
        return self._found(self._fitted().results.init_scores, "init_scores_", "`fit`")

    @property
    def document_temperatures_(self) -> NDArray[np.float64]:
        temperatures = self._fitted().results.document_temperatures
        when = "`fit` with a LocalVariational temperature"
        return self._found(temperatures, "document_temperatures_", when)

    def state_dict(self) -> dict[str, Any]:
        """Return the fitted state as a tree, for :func:`annealvi.save`."""
        check_is_fitted(self)
        return {
            "feature_names_in": getattr(self, "feature_names_in_", None),
            "fit": state_tree(copy.copy(self._fitted())),
        }

    def load_state_dict(self, node: Node) -> None:
        """Take over a fitted state, for :func:`annealvi.load`.

        Parameters
        ----------
        node : Node
            What :meth:`state_dict` returned, from a file.

        Raises
        ------
        ValueError
            If a parameter is out of range, or the state is not one of this class.
        """
        self._validate_params()
        state = state_of(type(self).__name__, node.node("fit"))
        n_features = state.model.n_features
        if not node.is_none("feature_names_in"):
            self.feature_names_in_ = node.strings("feature_names_in", n_features)
        self._state, self.n_features_in_ = state, n_features

    # ----------------------------------------------------------------- details

    def _found(self, value: Any, name: str, when: str) -> Any:
        """Return a result of the fit; AttributeError if the fit has none."""
        if value is None:
            raise AttributeError(f"{name!r} of {type(self).__name__} is only there after {when}.")
        return value

    def _resolved(self, n_topics: int | None = None) -> Settings:
        """The settings for a stream of documents, by default of `n_components` topics."""
        # not get_params, which looks the signature up at every call of partial_fit
        given = vars(self) if n_topics is None else vars(self) | {"n_components": n_topics}
        return stream_settings(given, int(min(float(self.total_samples), 2**53)))
