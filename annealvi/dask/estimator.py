"""The estimator TemperedLDA that is fitted by Dask workers."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from annealvi.callbacks import Checkpoint
from annealvi.checks import Interval, as_array, check_flag, check_width, checked, n_threads
from annealvi.corpus.cells import open_corpus
from annealvi.dask.sources import are_partitions, as_engine, is_array, sources_of
from annealvi.exceptions import BadParameter
from annealvi.lda.estimator import TemperedLDA as LocalLDA
from annealvi.lda.estimator import prepare
from annealvi.lda.settings import CONSTRAINTS, check_fits, fit_dtype, passes
from annealvi.models.lda.collapsed import Method
from annealvi.scale.corpus import Partitions, ShardedCorpus, minibatch_order, numbers_of
from annealvi.scale.engines import SerialEngine
from annealvi.threads import reading

#: Default numbers of documents in a shard, and in a minibatch of a large corpus.
SHARD = 4096
BATCH = 65_536
#: Parameters that annealvi.TemperedLDA does not have.
OWN = ("client", "checkpoint", "shard_size")
#: The approximate minimum numbers of steps of a pass, and of a fit.
LEAST_OF_PASS = 8
LEAST_OF_FIT = 30


@dataclass(eq=False, repr=False, kw_only=True)
class TemperedLDA(LocalLDA):
    """The estimator :class:`annealvi.TemperedLDA`, fitted by Dask workers.

    The topics are identical, bit for bit, for any number of workers, even if some workers die.  A
    fit in memory, without a client, finds the same topics if it has the same `shard_size` and
    `batch_size`, and its documents are in the order that :func:`document_order` returns.

    In each step the topics are sent to all workers, and each worker fits some shards, which are
    parts of the minibatch.  The results of the workers are summed, and the process that called
    `fit` updates the topics.  docs/record/scale.md lists the time and memory of fits.

    Parameters
    ----------
    client : distributed.Client, engine or None, default=None
        The client whose workers are used.  None means the current client.  Instead you can pass an
        engine of :mod:`annealvi.scale.engines`, which fits the shards, for example in this process.
    checkpoint : path, default=None
        A file to which a :class:`annealvi.callbacks.Checkpoint` is written every minute.  If the
        file exists when `fit` begins, `fit` resumes from it, with any number of workers.
    shard_size : int, default=None
        Number of documents in a shard, which a worker fits on all of its threads.  None means
        4,096.  The shard size changes the results slightly; the number of workers does not.
    batch_size : int, default=None
        Number of documents in a minibatch, a multiple of `shard_size`.  None means 65,536.  In a
        small corpus it means fewer, so that a pass has at least about 8 steps, and a fit about 30.
    n_jobs : int, default=None
        Number of threads of a task.  None means all threads of the worker.
    n_components, doc_topic_prior, topic_word_prior, learning_method, learning_decay : optional
        For these and the parameters below, see :class:`annealvi.TemperedLDA`.
    learning_offset, max_iter, total_samples, perp_tol, mean_change_tol, evaluate_every : optional
    max_doc_update_iter, verbose, random_state, temperature, estimate, init, preset : optional
    n_init, dtype, callback : optional
    device : {"cpu"}, default="cpu"
        Workers compute on their processors.
    validation_fraction : optional
        This parameter can be used only if the documents are in the memory of this process.

    See Also
    --------
    annealvi.TemperedLDA : Describes the attributes, and methods for documents in memory.
    """

    _parameter_constraints: ClassVar[dict] = CONSTRAINTS | {
        "client": "no_validation",  # as_engine checks it
        "checkpoint": [None, str, PathLike],
        "shard_size": [None, Interval(Integral, 1, 2**31 - 1, closed="both")],
        "device": [StrOptions({"cpu"})],
    }

    client: Any = None
    checkpoint: str | PathLike | None = None
    shard_size: int | None = None

    @checked
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, resume: str | PathLike | None = None) -> Self:
        """Learn topics from documents on the workers.

        Parameters
        ----------
        X : dask array, or list of Delayed objects, futures or paths; or documents in memory
            The blocks of an array, or the items of a list, must be CSR matrices with a column for
            each word.  A path is a folder that :func:`annealvi.corpus.write_corpus` wrote and that
            workers can open.  Documents in memory are fitted in this process, without a client.
        y : Ignored
        resume : path, optional
            A checkpoint from which the fit is resumed; by default `checkpoint`, if the file exists.

        Returns
        -------
        self : TemperedLDA

        Raises
        ------
        RuntimeError
            If there are no workers for too long, or if workers die repeatedly in the same step.
        TypeError, ValueError
            If X or a parameter is not allowed.  Such an error leaves the estimator unchanged.
        """
        others: tuple[Any, ...] = ()
        if self.checkpoint is not None:
            others = (Checkpoint(self.checkpoint),)
            if resume is None and os.path.exists(self.checkpoint):
                resume = self.checkpoint
        prepared: Any = self._prepare_in_memory
        if are_partitions(X):
            if self.validation_fraction is not None:
                raise BadParameter(
                    "validation_fraction",
                    "None",
                    self.validation_fraction,
                    "Documents on workers cannot be held out. Exclude some documents from X, and "
                    "score them with annealvi.dask.document_completion.",
                )
            prepared = partial(self._prepare, as_engine(self.client))
        self._fit(X, y, resume=resume, prepared=prepared, others=others)
        return self

    @checked
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more documents, in memory, as :meth:`annealvi.TemperedLDA.partial_fit` does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored

        Raises
        ------
        TypeError
            If X consists of parts on workers.
        """
        if are_partitions(X):
            raise BadParameter(
                "X",
                "a matrix in memory",
                X,
                "Pass one part at a time: compute it, or open it by annealvi.corpus.open_corpus.",
            )
        return super().partial_fit(X, y)

    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True) -> Any:
        """Fit the model, and return the topic proportions of the same documents, lazily.

        Parameters
        ----------
        X : dask array, or list of Delayed objects, futures or paths
        y : Ignored
        normalize : bool, default=True
        """
        return self.fit(X, y).transform(X, normalize=normalize)

    @checked
    def transform(
        self,
        X: Any,
        *,
        normalize: bool = True,
        temperature: float | str = 1.0,
        method: Method = "variational",
    ) -> Any:
        """Infer the topic proportions of documents, lazily.

        Parameters
        ----------
        X : dask array, or list of Delayed objects, futures or paths; or documents in memory
        normalize : bool, default=True
        temperature : float or "learned", default=1.0
        method : {"variational", "cvb0"}, default="variational"
            The same parameters as in :meth:`annealvi.TemperedLDA.transform`.

        Returns
        -------
        dask array, or list of delayed
            A dask array if X is one, an ndarray if X is in memory, and otherwise a list.
        """
        options: dict[str, Any] = dict(normalize=normalize, temperature=temperature, method=method)
        if not are_partitions(X):
            return super().transform(X, **options)
        check_is_fitted(self)
        dtype = X.dtype if is_array(X) and X.dtype == np.float32 else np.float64
        return self._lazily(
            "transform", X, width=(self._n_features_out,), dtype=dtype, options=options
        )

    @checked
    def predict(self, X: Any) -> Any:
        """Predict, lazily, the topic of each document, as if each document had only one topic.

        Parameters
        ----------
        X : dask array, or list of Delayed objects, futures or paths; or documents in memory

        Returns
        -------
        dask array, or list of delayed
            A dask array if X is one, an ndarray if X is in memory, and otherwise a list.
        """
        if not are_partitions(X):
            return super().predict(X)
        check_is_fitted(self)
        return self._lazily("predict", X, width=(), dtype=np.int64, options={})

    @checked
    def score(self, X: Any, y: Any = None, *, temperature: float | str = 1.0) -> float:
        """Compute the ELBO of documents at T = 1, as :meth:`annealvi.TemperedLDA.score` does.

        Parameters
        ----------
        X : dask array, or list of Delayed objects, futures or paths; or documents in memory
        y : Ignored
        temperature : float or "learned", default=1.0
        """
        if not are_partitions(X):
            return super().score(X, y, temperature=temperature)
        check_is_fitted(self)
        tempering = self._state.tempering(temperature)
        with reading(self):
            documents = self._documents(X)
            engine = self._engine_for(self._state, documents)
            return self._state.elbo(engine, documents, tempering, topics=self._scores_topics)

    @checked
    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Compute exp(-ELBO per word) at T = 1, as :meth:`annealvi.TemperedLDA.perplexity` does.

        Parameters
        ----------
        X : dask array, or list of Delayed objects, futures or paths; or documents in memory
        sub_sampling : bool, default=False
        """
        if not are_partitions(X):
            return super().perplexity(X, sub_sampling)
        check_is_fitted(self)
        check_flag(sub_sampling, "sub_sampling")
        # the number of documents of which X is a sample
        population = float(self.total_samples) if sub_sampling else None
        with reading(self):
            documents = self._documents(X)
            return self._state.perplexity(
                self._engine_for(self._state, documents),
                documents,
                population=population,
                topics=self._scores_topics,
            )

    def to_local(self) -> LocalLDA:
        """Return an :class:`annealvi.TemperedLDA` with the same parameters and fitted topics.

        Returns
        -------
        annealvi.TemperedLDA
        """
        parameters = self.get_params(deep=False)
        local = LocalLDA(**{name: value for name, value in parameters.items() if name not in OWN})
        for name in [name for name in vars(self) if name not in parameters]:
            value = getattr(self, name)
            # a copy of the state, so that both estimators can be fitted further
            setattr(local, name, copy.copy(value) if name == "_state" else value)
        return local

    # ----------------------------------------------------------------- details

    def _lazily(self, method: str, X: Any, width: tuple, dtype: Any, options: dict) -> Any:
        """Apply a method of annealvi.TemperedLDA to each partition, lazily.

        `width` is the shape of the result of one document.
        """
        import dask

        model = dask.delayed(self.to_local())
        delayed_results = [
            dask.delayed(_call)(model, method, source, options) for source in sources_of(X)
        ]
        if not is_array(X):
            return delayed_results
        import dask.array

        return dask.array.concatenate(
            [
                dask.array.from_delayed(delayed_result, (n, *width), dtype=np.dtype(dtype))
                for delayed_result, n in zip(delayed_results, X.chunks[0], strict=True)
            ]
        )

    def _prepare_in_memory(self, columns: Any, X: Any) -> tuple[Any, ...]:
        """Check documents in memory, which this process fits in the same shards as workers."""
        X, data_for_callbacks, parameters = prepare(columns, X)
        return X, data_for_callbacks, {**parameters, **sizes(parameters, X.shape[0])}

    def _prepare(self, engine: SerialEngine, columns: Any, X: Any) -> tuple[Any, ...]:
        """Check the partitions on the workers, and divide them into shards."""
        partitions = Partitions(engine, sources_of(X))
        n_samples, columns.n_features_in_ = partitions.shape
        vars(columns).pop("feature_names_in_", None)
        parameters = vars(self) | sizes(vars(self), n_samples)
        dtype = fit_dtype(parameters, partitions, n_samples)
        return self._sharded(partitions, dtype, parameters), partitions.dtype, parameters

    def _sharded(
        self, partitions: Partitions, dtype: np.dtype, parameters: Mapping[str, Any]
    ) -> ShardedCorpus:
        """Check that counts fit in `dtype`; divide the partitions into shards."""
        check_fits(partitions, dtype)
        shard_size = int(parameters["shard_size"])
        shards_per_batch = max(1, int(parameters["batch_size"]) // shard_size)
        threads = None if self.n_jobs is None else n_threads(self.n_jobs)
        return ShardedCorpus(partitions, dtype, shard_size, shards_per_batch, n_threads=threads)

    def _documents(self, X: Any) -> ShardedCorpus:
        """Return the documents of X as a corpus for a method of the fitted estimator."""
        engine = as_engine(self.client)
        partitions = Partitions(engine, sources_of(X))
        check_width(partitions, self.n_features_in_, type(self).__name__)
        parameters = vars(self) | sizes(vars(self), partitions.shape[0])
        return self._sharded(partitions, self.dtype_, parameters)


def sizes(parameters: Mapping[str, Any], n_samples: int) -> dict[str, int]:
    """Return the sizes of shards and minibatches, computed from the corpus if they are None."""
    shard = parameters["shard_size"]
    batch = parameters["batch_size"]
    size = SHARD if shard is None else int(shard)
    if batch is None:
        n_passes = passes(n_samples) if parameters["max_iter"] is None else parameters["max_iter"]
        least_steps = max(LEAST_OF_PASS, -(-LEAST_OF_FIT // max(1, int(n_passes))))
        target_batch = min(BATCH, max(1, n_samples // least_steps))
        if shard is None:
            size = min(size, target_batch)
        batch = max(1, target_batch // size) * size
    elif shard is None:
        size = next(size for size in range(min(size, int(batch)), 0, -1) if not int(batch) % size)
    if int(batch) % size:
        raise BadParameter("batch_size", f"a multiple of shard_size={size!r}", batch)
    return {"shard_size": size, "batch_size": int(batch)}


@checked
def document_order(
    lengths: Any,
    *,
    shard_size: int | None = None,
    batch_size: int | None = None,
    max_iter: int | None = None,
) -> NDArray[np.int64]:
    """Return the order in which :class:`TemperedLDA` uses documents that are in partitions.

    Parameters
    ----------
    lengths : sequence of int
        Number of documents in each partition.
    shard_size, batch_size, max_iter : int, optional
        The parameters of the estimator.

    Returns
    -------
    ndarray of int64
        Positions of the documents in the concatenation of all partitions.

    Raises
    ------
    ValueError
        If a parameter is not valid.
    """
    options = {"shard_size": shard_size, "batch_size": batch_size, "max_iter": max_iter}
    constraints = {name: TemperedLDA._parameter_constraints[name] for name in options}
    validate_parameter_constraints(constraints, options, "document_order")
    lengths_array = as_array(lengths)
    if (
        lengths_array.ndim != 1
        or lengths_array.dtype.kind not in "iu"
        or not lengths_array.size
        or lengths_array.min() < 0
    ):
        raise BadParameter("lengths", "a sequence of ints of at least 0", lengths)
    chosen_sizes = sizes(options, int(lengths_array.sum()))
    n_shards = chosen_sizes["batch_size"] // chosen_sizes["shard_size"]
    shards = minibatch_order(lengths_array.tolist(), chosen_sizes["shard_size"], n_shards)
    return numbers_of(shards, lengths_array.tolist())


def _call(model: LocalLDA, method: str, source: Any, options: dict[str, Any]) -> NDArray:
    """Apply a method of a model to a partition, which may be a path; runs on a worker."""
    if isinstance(source, str | PathLike):
        source = open_corpus(source)
    return getattr(model, method)(source, **options)
