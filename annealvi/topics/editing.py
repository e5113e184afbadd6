"""Functions that edit the topics of a fitted model: merge, drop, reduce and refine."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import validate_params

from annealvi.checks import COUNT, as_array, checked, is_int_in
from annealvi.exceptions import BadParameter
from annealvi.lda import TemperedLDA
from annealvi.lda.settings import PRIORS, is_learned
from annealvi.matrices import summed
from annealvi.models.lda.merging import groups_of
from annealvi.topics.source import counts_of, lda_of, number_of_topics, with_topics
from annealvi.topics.vectorizer import different_ints, is_list

Model = TypeVar("Model")

NUMBERS = "numbers of topics"
#: The default number of passes of `refine_topics`.
REFINING_PASSES = 10


@checked
def merge_topics(model: Model, groups: Sequence[Sequence[int]]) -> Model:
    r"""Merge groups of topics: the topics of each group become one topic.

    The word counts of a group's topics are added.  The share of the merged topic in a document is
    about the sum of the shares of the group's topics.  A merged topic has the position of the first
    topic of its group, and the order of the other topics does not change.

    Parameters
    ----------
    model : fitted TemperedLDA or TopicModel
        The model, which is not changed.
    groups : sequence of sequences of int
        The numbers of the topics of each group, counted from 0.  A group must contain at least two
        topics, and a topic can be in only one group.

    Returns
    -------
    model
        A new fitted model of the same class, with the parameters of `model` except the number of
        topics.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi, or if a topic is not an integer.
    ValueError
        If a group has fewer than two topics, or if a topic is repeated or out of range.

    Notes
    -----
    Topic k is :math:`\lambda_k = \eta + n_k`, a prior plus word counts, so the merged topic is
    :math:`\eta + \sum_k n_k`.  Its :math:`\alpha` is the sum of the :math:`\alpha_k`, because
    shares of topics are added.  If each topic has its own row of :math:`\eta`, the new row has
    the maximum of the group's rows for each word, so that seed words remain seed words.

    Examples
    --------
    >>> from annealvi import TemperedLDA
    >>> from annealvi.datasets import make_topic_corpus
    >>> from annealvi.topics import merge_topics
    >>> X = make_topic_corpus(200, 50, 8, random_state=0).data
    >>> lda = TemperedLDA(8, random_state=0).fit(X)
    >>> merge_topics(lda, [[3, 7], [1, 2]]).transform(X).shape
    (200, 6)
    """
    lda = lda_of(model)
    n_topics = number_of_topics(lda)
    if not is_list(groups) or not all(is_list(group) for group in groups):
        raise BadParameter("groups", "a list of lists of topics, such as [[3, 7], [1, 2]]", groups)
    for group in groups:
        if len(group) < 2:
            raise BadParameter("groups", "a list of groups of at least two topics", group)
    listed = [topic for group in groups for topic in group]
    different_ints(listed, "groups", NUMBERS, lower=0, upper=n_topics - 1)
    group_of = {topic: list(map(int, group)) for group in groups for topic in group}
    # the group of each topic, or the topic alone; each group is kept only at its first topic
    groups_of_topics = [group_of.get(topic, [topic]) for topic in range(n_topics)]
    new_groups = [group for k, group in enumerate(groups_of_topics) if group[0] == k]
    return with_groups(model, lda, new_groups)


@checked
def drop_topics(model: Model, topics: Sequence[int]) -> Model:
    r"""Remove topics.  The words of documents are then assigned to the remaining topics.

    Parameters
    ----------
    model : fitted TemperedLDA or TopicModel
        The model, which is not changed.
    topics : int or sequence of int
        The numbers of the topics to remove, counted from 0.  At least one topic must remain.

    Returns
    -------
    model
        A new fitted model of the same class, with the remaining topics in the same order.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi, or if a topic is not an integer.
    ValueError
        If a topic is repeated or out of range, or if no topic would remain.

    See Also
    --------
    refine_topics : Continues the fit, so that the other topics learn the words of removed topics.

    Notes
    -----
    The :math:`\alpha` of the remaining topics are multiplied by a factor that preserves their sum,
    so documents mix topics as much as before.
    """
    lda = lda_of(model)
    n_topics = number_of_topics(lda)
    listed = [topics] if isinstance(topics, Integral) else topics
    dropped = different_ints(listed, "topics", NUMBERS, lower=0, upper=n_topics - 1)
    if len(dropped) == n_topics:
        raise BadParameter(
            "topics", "a list that leaves at least one topic", f"all {n_topics} topics"
        )
    # each remaining topic is a group of its own
    return with_groups(model, lda, [[k] for k in range(n_topics) if k not in dropped])


@checked
def reduce_topics(model: Model, n_topics: int, documents: Any = None) -> Model:
    r"""Merge topics, two at a time, until `n_topics` topics remain.

    Each step merges the pair of topics with the smallest loss of information about words.  Little
    information is lost if the two topics have similar words, or if one of them is small.

    Parameters
    ----------
    model : fitted TemperedLDA or TopicModel
        The model, which is not changed.
    n_topics : int
        Number of topics that remain, from 1 to the number of topics of the model.
    documents : {array-like, sparse matrix} of shape (D, V), or iterable of str, default=None
        Documents in which the size of each topic is measured: word counts, or texts for a
        TopicModel.  None means the documents to which the model was fitted.

    Returns
    -------
    model
        A new fitted model of the same class.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi.
    ValueError
        If `n_topics` is not an integer between 1 and the number of topics.

    See Also
    --------
    refine_topics : Continues the fit from the remaining topics, which improves them.

    Notes
    -----
    Merging topics a and b of sizes :math:`p_a, p_b` (shares of all tokens) loses

    .. math::
        p_a \mathrm{KL}(\beta_a \| \beta_{ab}) + p_b \mathrm{KL}(\beta_b \| \beta_{ab}), \quad
        \beta_{ab} = \frac{p_a \beta_a + p_b \beta_b}{p_a + p_b}

    of the mutual information of topics and words (Slonim and Tishby, "Agglomerative information
    bottleneck", NIPS 1999).  docs/record/n_topics.md compares this criterion with a second one, the
    loss in held-out likelihood.
    """
    lda = lda_of(model)
    components = np.asarray(lda.components_, float)
    if not is_int_in(n_topics, 1, len(components)):
        raise BadParameter(
            "n_topics",
            f"an int in the range [1, {len(components)}], the number of topics of the model",
            n_topics,
        )
    totals = components.sum(axis=1)
    sizes = totals  # by default each topic's words in the fit, plus its prior
    if documents is not None:
        counts = counts_of(model, documents, "reduce_topics")
        tokens = summed(counts, axis=1, dtype=np.float64)
        sizes = np.einsum("d,dk->k", tokens, lda.transform(counts))
        if not sizes.sum() > 0:
            raise BadParameter(
                "documents",
                "documents that contain words",
                f"{counts.shape[0]} documents without words",
            )
    counts = components * (sizes / totals)[:, None]
    return with_groups(model, lda, groups_of(counts, n_topics))


@validate_params({"max_iter": COUNT}, prefer_skip_nested_validation=False)
@checked
def refine_topics(model: Model, documents: Any, *, max_iter: int = REFINING_PASSES) -> Model:
    """Continue the fit from the current topics, at temperature 1.

    Use this function after `merge_topics`, `drop_topics` or `reduce_topics`, or after you have
    edited `components_`, so that topics adjust to each other.  The order of topics does not change.

    Parameters
    ----------
    model : fitted TemperedLDA or TopicModel
        The model, which is not changed.
    documents : {array-like, sparse matrix} of shape (D, V), or iterable of str
        Word counts, or texts for a TopicModel.
    max_iter : int, default=10
        Number of passes over the documents.  Each step uses all documents.

    Returns
    -------
    model
        A new fitted model with the class, parameters and current number of topics of `model`.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `model` is not a model of annealvi.
    ValueError
        If the words of the documents are not those of the model, or `max_iter` is not a positive
        integer.
    """
    lda = lda_of(model)
    n_topics = number_of_topics(lda)
    parameters: dict[str, Any] = {
        "init": np.array(lda.components_, lda.dtype_),  # in the dtype of the old fit
        "temperature": 1.0,
        "learning_method": "batch",
        "max_iter": max_iter,
        "n_init": 1,
        "validation_fraction": None,
    }
    # a prior that is learned is learned again from its default; others keep their values
    for name in PRIORS:
        if not is_learned(getattr(lda, name)):
            parameters[name] = getattr(lda, f"{name}_")
    counts = counts_of(model, documents, "refine_topics")
    refined = _clone(lda).set_params(n_components=n_topics)
    # the parameters of the fit are set back afterwards
    original = {name: getattr(refined, name) for name in parameters}
    refined.set_params(**parameters).fit(counts).set_params(**original)
    # each topic keeps its number, and so its label
    return with_topics(model, refined, [[topic] for topic in range(n_topics)])


# --------------------------------------------------------------------------- models


def _clone(lda: TemperedLDA) -> TemperedLDA:
    """Return a clone that has the user's own callbacks instead of copies."""
    return clone(lda).set_params(callback=lda.callback)


def with_groups(model: Any, lda: TemperedLDA, groups: list[list[int]]) -> Any:
    """Return a new model with one topic for each group, merged from the topics of the group."""
    components = lda.components_
    # the prior of words may be a number, a row for all topics, or a row for each topic
    eta = np.asarray(lda.topic_word_prior_, float)
    eta_rows = np.broadcast_to(eta, components.shape)
    # the prior of each word in a merged topic is the largest among its topics
    priors = np.array([eta_rows[group].max(axis=0) for group in groups])
    topics = np.empty((len(groups), components.shape[1]), components.dtype)
    for topic, prior, group in zip(topics, priors, groups, strict=True):
        counts = np.maximum(components[group] - eta_rows[group], 0.0).sum(axis=0)
        # written into a row of `topics`; a single topic is copied, without rounding
        topic[:] = components[group[0]] if len(group) == 1 else prior + counts
    if eta.ndim == 2:
        eta = priors
    # sums over the topics of a group, scaled so that their total does not change
    alphas = np.broadcast_to(lda.doc_topic_prior_, len(components))
    sums = np.array([alphas[group].sum() for group in groups])
    alpha = sums * (alphas.sum() / sums.sum())
    edited = _clone(lda).set_params(n_components=len(groups))
    if not isinstance(lda.init, str):
        edited.set_params(init="auto")  # the array `init` has the old number of topics
    if as_array(lda.doc_topic_prior).ndim == 1:
        edited.set_params(doc_topic_prior=alpha)
    if as_array(lda.topic_word_prior).ndim == 2:
        edited.set_params(topic_word_prior=eta)
    # topics are stored in the dtype of the old fit, which may differ from the parameter
    edited.set_params(dtype=lda.dtype_.name)
    edited.components_ = topics
    edited.set_params(dtype=lda.dtype)
    edited.doc_topic_prior_ = alpha
    edited.topic_word_prior_ = eta if eta.ndim else float(eta)  # an array of 0 axes as a float
    edited.n_batch_iter_ = lda.n_batch_iter_  # so that partial_fit continues with small steps
    return with_topics(model, edited, groups)
