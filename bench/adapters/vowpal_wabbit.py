"""The LDA of Vowpal Wabbit (its option --lda)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from vowpalwabbit import LabelType, Workspace

from bench.adapters import Fit, mean_topics


def start(problem, X):
    """Online passes over parsed examples; one minibatch was fitted before."""
    n_documents, n_features = X.shape
    bits = int(np.ceil(np.log2(n_features)))
    workspace = Workspace(
        f"--lda {problem.n_topics} --lda_alpha {problem.doc_topic_prior} "
        f"--lda_rho {problem.topic_word_prior} --lda_D {n_documents} "
        f"--minibatch {problem.batch_size} --power_t .7 --initial_t 10 --lda_epsilon 1e-3 "
        f"-b {bits} --noconstant --random_seed 1 --quiet"
    )
    examples = []
    for begin, end in pairwise(X.indptr):
        entries = zip(X.indices[begin:end], X.data[begin:end], strict=True)
        line = "| " + " ".join(f"{word}:{count:g}" for word, count in entries)
        examples.append(workspace.parse(line, LabelType.SIMPLE))

    def learn(examples):
        for example in examples:
            workspace.learn(example)

    def topics():
        rows = [
            [workspace.get_weight(word, topic) for topic in range(problem.n_topics)]
            for word in range(n_features)
        ]
        return mean_topics(np.array(rows).T)

    learn(examples[: problem.batch_size])
    return Fit(lambda: learn(examples), topics)
