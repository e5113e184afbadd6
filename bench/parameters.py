"""Parameters of TemperedLDA, with the names that they have in the imported commit."""

from __future__ import annotations

from typing import Any

from annealvi import TemperedLDA

#: The names of the parameters in the imported commit.
NAMES = TemperedLDA().get_params().keys()


def estimate(kind: str) -> dict[str, Any]:
    """The parameters that make topics and documents ``"map"`` or ``"variational"`` estimates."""
    if "estimate" in NAMES:
        return {"estimate": kind}
    documents = "auto" if kind == "map" else "variational"
    return {"topic_estimate": kind, "document_estimate": documents}


def mean_field(n_topics: int) -> dict[str, Any]:
    """Parameters of plain mean-field inference at T = 1, with documents that start constant."""
    return {
        "doc_topic_prior": 1.0 / n_topics,
        "topic_word_prior": 1.0 / n_topics,
        "learning_decay": 0.7,
        "learning_offset": 10.0,
        "mean_change_tol": 1e-3,
        "max_doc_update_iter": 100,
        "temperature": 1.0,
        "init": "random",
        "n_init": 1,
        **estimate("variational"),
    }
