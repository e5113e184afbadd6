"""What a comparison of numbers of topics found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annealvi._optional import import_optional
from annealvi.files.schema import Array, Integer, Schema, Sizes, Text, damaged

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

    def __repr__(self) -> str:
        return f"Choice(recommended={self.recommended}, ks={self.ks.tolist()}): {self.rule}"


class _ChoiceField(Schema):
    """A Choice in a file; of one run there is no standard deviation and no stability."""

    def load(self, value: Any, way: str = "", sizes: Sizes | None = None, **more: Any) -> Choice:
        values = super().load(value, way, sizes, **more)
        ks, recommended = values["ks"], values["recommended"]
        if not len(ks) or ks[0] < 1 or not np.all(ks[1:] > ks[:-1]):
            raise damaged(f"{way}.ks", "positive numbers that rise", ks)
        for name, found in values["measures"].items():
            if len(found) != len(ks) or not found.shape[1]:
                rows = f"values of at least one run for each of {len(ks)} numbers of topics"
                raise damaged(f"{way}.measures.{name}", rows, found)
        if recommended not in ks:
            raise damaged(f"{way}.recommended", f"one of {ks.tolist()}", recommended)
        return Choice(**values)


CHOICE = _ChoiceField(
    ks=Array((None,), np.int64),
    measures=Schema(**{name: Array((None, None), finite=False) for name in (*MEASURES, STABILITY)}),
    criterion=Text(*CRITERIA),
    recommended=Integer(1),
    rule=Text(),
    n_documents=Integer(2),
)


def mean_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over runs."""
    return np.asarray(values.mean(axis=1))


def spread_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations over runs; NaN of one run."""
    if values.shape[1] < 2:
        return np.full(len(values), np.nan)
    return np.asarray(values.std(axis=1, ddof=1))
