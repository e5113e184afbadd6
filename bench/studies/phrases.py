"""Which phrases does TopicVectorizer(phrases=True) find, and what do they change in topics?

    python -m bench.studies.phrases                   # about ten minutes on one core
    python -m bench.studies.phrases --documents 5000 --topics 20

The corpora are the arXiv abstracts (arxiv_texts20k.jsonl.gz) and the entries of the changelogs of
the Debian packages that are installed, except those that only tests of annealvi need: Chromium,
Wine, QEMU, clang, and compilers for other systems.  For each the script prints the fifty most
frequent phrases, and, with and without phrases, for two seeds: the log-likelihood of held-out
documents in nats per word of the text (a phrase counts as its words), NPMI coherence, diversity and
stability.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
from scipy import sparse

from annealvi import TemperedLDA
from annealvi.metrics import document_completion, topic_coherence, topic_diversity, topic_stability
from annealvi.topics import TopicVectorizer
from annealvi.topics.vectorizer import with_stop_words
from bench import parser
from bench.markdown import table
from bench.studies.texts20k import read_abstracts

#: The lines between two entries of a changelog: the signature of one and the head of the next.
_BETWEEN = re.compile(r"^(?: -- .*|\S.*\) .*;.*)$", re.MULTILINE)
#: Names of people and bugs, which are in brackets, and comments that replace removed entries.
_NAMES = re.compile(r"\[[^\]]*\]|\([^)]*\)|<[^>]*>|^#.*$", re.MULTILINE)
#: Names of packages that only tests need.
_FOR_TESTS = re.compile("chromium|.*(clang|libomp|mingw|mmdebstrap|qemu|wine|-cross|-aarch64-)")


def changelogs(most: int) -> list[str]:
    """Read the different entries of installed changelogs, without names of people and bugs."""
    entries: dict[str, None] = {}
    for path in sorted(Path("/usr/share/doc").glob("*/changelog.Debian*.gz")):
        if _FOR_TESTS.match(path.parent.name):
            continue
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            for entry in _BETWEEN.split(file.read()):
                text = _NAMES.sub(". ", entry).strip()
                if len(text.split()) >= 10:
                    entries[text] = None
    texts = list(entries)
    return texts[:: max(1, len(texts) // most)][:most]


def measures(texts: list[str], phrases: bool, n_topics: int) -> tuple[list[str], list[str]]:
    """Return the fifty most frequent phrases, and the measures of two fits."""
    vectorizer = with_stop_words(TopicVectorizer(phrases=phrases), "english")
    X = sparse.csr_matrix(vectorizer.fit_transform(texts), dtype=np.float64)
    words = vectorizer.get_feature_names_out()
    counts = np.asarray(X.sum(axis=0)).ravel()
    order = np.argsort(-counts, kind="stable")
    names = [f"{words[k]} ({counts[k]:.0f})" for k in order if " " in words[k]]
    held_out = np.arange(X.shape[0]) % 10 == 0
    n_words = X[held_out] @ np.array([1 + word.count(" ") for word in words])
    scores = []
    fits = [TemperedLDA(n_topics, random_state=seed).fit(X[~held_out]) for seed in (0, 1)]
    for lda in fits:
        per_token = document_completion(lda, X[held_out], random_state=0)
        scores.append(
            [
                per_token * X[held_out].sum() / n_words.sum(),
                topic_coherence(lda.components_, X[~held_out]).mean(),
                topic_diversity(lda.components_),
            ]
        )
    numbers = [*np.mean(scores, axis=0), topic_stability(*(lda.components_ for lda in fits))]
    return names, [f"{len(words):,}", f"{len(names):,}", *(f"{number:.3f}" for number in numbers)]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=20_000)
    options.add_argument("--topics", type=int, default=50)
    chosen = options.parse_args()
    rows = []
    corpora = {
        "abstracts": read_abstracts(chosen.documents).texts,
        "changelogs": changelogs(chosen.documents),
    }
    for name, texts in corpora.items():
        for phrases in (True, False):
            names, row = measures(texts, phrases, chosen.topics)
            rows.append([f"{name} ({len(texts):,})", "yes" if phrases else "no", *row])
            if phrases:
                print(f"{name}: {', '.join(names[:50])}\n", flush=True)
            print(rows[-1], flush=True)
    head = ["corpus", "phrases", "vocabulary", "phrases found", "held-out", "coherence"]
    print(table([*head, "diversity", "stability"], rows))


if __name__ == "__main__":
    main()
