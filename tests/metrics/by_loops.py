"""The measures of topics by plain loops."""

import numpy as np


def naive_top(topics, n):
    return [sorted(range(len(row)), key=lambda v: (-row[v], v))[:n] for row in topics]


def naive_coherence(topics, X, measure, n_words, epsilon):
    documents = [{v for v, count in enumerate(row) if count} for row in X.toarray()]

    def share(*words):
        return sum(all(w in document for w in words) for document in documents) / len(documents)

    means = []
    for words in naive_top(topics, n_words):
        values = []
        for rank, w in enumerate(words):
            for before in words[:rank]:
                both = share(w, before) + epsilon
                if measure == "umass":
                    values.append(np.log(both / share(before)))
                elif both:
                    values.append(np.log(both / share(w) / share(before)) / -np.log(both))
                else:
                    values.append(-1)
        means.append(np.mean(values))
    return means


def naive_cosines(a, b):
    return np.array([[x @ y / np.sqrt((x @ x) * (y @ y)) for y in b] for x in a])
