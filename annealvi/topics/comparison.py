"""What a comparison of numbers of topics found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from annealvi._optional import import_optional
from annealvi.files import Node

#: The measures with a value for each run.  Stability has one for each pair of runs.
MEASURES = ("heldout", "gain", "coherence", "diversity", "quality")
STABILITY = "stability"
#: What a recommendation may go by.
CRITERIA = ("quality", "heldout")


@dataclass(frozen=True, eq=False)
class Choice:
    """Measures at each number of topics, and a recommendation; what :func:`choose` returns.

    Attributes
    ----------
    ks : ndarray of shape (n_ks,)
        The numbers of topics, ascending.
    measures : dict of str to ndarray of shape (n_ks, n_runs)
        One row for each number of topics, one column for each run.  Higher is better.

        - ``heldout``: log-likelihood per word of documents that were not fitted, by
          :func:`annealvi.metrics.document_completion`, in nats.
        - ``gain``: by how much this is above prediction by the words' frequencies alone.
        - ``coherence``: mean NPMI of the ten top words of the topics.
        - ``diversity``: share of distinct words among these.
        - ``quality``: coherence times diversity; coherence alone where that is negative.
        - ``stability``: :func:`annealvi.metrics.topic_stability`, one column for each pair of
          runs.
    criterion : {"quality", "heldout"}
        What the recommendation goes by.
    recommended : int
        One of `ks`.
    rule : str
        How the recommendation was made, in a sentence.  Further sentences name numbers that are
        about as good, and warn where it is the smallest or the largest of `ks`.
    n_documents : int
        Number of documents that the measures are from; X may have had more.
    """

    ks: NDArray[np.int64]
    measures: Mapping[str, NDArray[np.float64]]
    criterion: str
    recommended: int
    rule: str
    n_documents: int

    @property
    def table(self) -> Any:
        """The measures as a pandas DataFrame.

        A row for each number of topics, with mean and standard deviation of each measure over
        runs (``heldout``, ``heldout_sd``, ...), and whether it is ``recommended``.
        """
        pandas = import_optional("pandas", "text", "Choice.table")
        columns: dict[str, Any] = {}
        for name, values in self.measures.items():
            columns[name] = mean_of(values)
            columns[f"{name}_sd"] = spread_of(values)
        columns["recommended"] = self.ks == self.recommended
        return pandas.DataFrame(columns, index=pandas.Index(self.ks, name="n_topics"))

    def plot(self, axes: Any = None) -> Any:
        """Draw each measure over the number of topics, by :func:`annealvi.plot.plot_choice`.

        A line connects the means, bars are standard deviations over runs, and a dashed line
        marks the recommended number.  Needs matplotlib.

        Parameters
        ----------
        axes : array of matplotlib Axes, optional
            At least five.  By default those of a new figure, side by side.

        Returns
        -------
        ndarray of matplotlib Axes
            The given ones, in their shape, or the five new ones.
        """
        from annealvi.plot import plot_choice

        return plot_choice(self, axes=axes)

    def state_dict(self) -> dict[str, Any]:
        """Return the choice as a tree, see :mod:`annealvi.files`."""
        return {
            "ks": np.asarray(self.ks, dtype=np.int64),
            "measures": dict(self.measures),
            "criterion": self.criterion,
            "recommended": self.recommended,
            "rule": self.rule,
            "n_documents": self.n_documents,
        }

    @classmethod
    def of(cls, node: Node) -> Self:
        """Return the choice of a tree that :meth:`state_dict` returned.

        Parameters
        ----------
        node : Node

        Raises
        ------
        ValueError
            If it is no such tree.
        """
        ks = node.array("ks", (None,), np.int64)
        if not len(ks) or ks[0] < 1 or not np.all(ks[1:] > ks[:-1]):
            raise node.error("ks", "positive numbers that rise", ks)
        values, measures = node.node("measures"), {}
        for name in (*MEASURES, STABILITY):
            # of one run there is no standard deviation and no stability
            found = values.array(name, (len(ks), None), np.float64, finite=False)
            if not found.shape[1]:
                raise values.error(name, "values of at least one run", found)
            measures[name] = found
        recommended = node.integer("recommended", 1)
        if recommended not in ks:
            raise node.error("recommended", f"one of {ks.tolist()}", recommended)
        criterion = node.string("criterion", CRITERIA)
        n_documents = node.integer("n_documents", 2)
        return cls(ks, measures, criterion, recommended, node.string("rule"), n_documents)

    def __repr__(self) -> str:
        return f"Choice(recommended={self.recommended}, ks={self.ks.tolist()}): {self.rule}"


def mean_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over runs."""
    return np.asarray(values.mean(axis=1))


def spread_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations over runs; NaN of one run."""
    if values.shape[1] < 2:
        return np.full(len(values), np.nan)
    return np.asarray(values.std(axis=1, ddof=1))
