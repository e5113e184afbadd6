"""annealvi.corpus: corpora on disk, damaged ones too, and corpora in blocks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from annealvi import TemperedLDA, corpus
from tests.fuzz import matrices
from tests.fuzz.judge import check_finite
from tests.fuzz.target import Target
from tests.fuzz.targets.corpora import LDA_C, UCI, damaged_file, pairs
from tests.fuzz.targets.files import mutated
from tests.fuzz.trial import Trial
from tests.fuzz.values import odd

MARKET = "%%MatrixMarket matrix coordinate real general\n%\n3 4 4\n1 1 4\n1 3 1\n2 2 5\n3 4 1\n"


def _whole(function: Callable[..., Iterable[Any]]) -> Callable[..., list[Any]]:
    """What a stream yields, but for a header that promises a million documents without words."""
    return lambda *args, **kwargs: list(islice(function(*args, **kwargs), 1000))


def _check(blocks: list[Any]) -> None:
    for block in blocks:
        check_finite(block.data)


def _size(t: Trial) -> dict[str, Any]:
    return {"block_size": t.one_of(1, 2, 100, 100, odd(t))} if t.chance(0.6) else {}


def _file(name: str, valid: str) -> Callable[[Trial], None]:
    def run(t: Trial) -> None:
        with tempfile.TemporaryDirectory() as folder:
            given = [damaged_file(t, folder, valid)]
            if name == "stream_lda_c" and t.chance(0.4):
                given.append(t.one_of(None, 1, 4, 9, odd(t)))
            read = _whole(getattr(corpus, name))
            t.call(name, read, *given, check=_check, allows=(OSError,), **_size(t))

    return run


def _gensim(t: Trial) -> None:
    documents: Any = [pairs(t) for _ in range(t.whole(0, 5))]
    documents = t.one_of(documents, iter(documents), documents, odd(t))
    words = t.one_of(6, {number: f"word {number}" for number in range(6)}, 2, odd(t))
    read = _whole(corpus.stream_gensim)
    t.call("stream_gensim", read, documents, words, check=_check, **_size(t))


def _texts(t: Trial) -> None:
    texts = ["a star", "a gène", "", "proof proof"][: t.whole(0, 4)]
    given = t.one_of(texts, iter(texts), texts, "a text", odd(t))
    counter = CountVectorizer(vocabulary=["star", "proof"])
    vectorizer = t.one_of(counter, HashingVectorizer(n_features=8), CountVectorizer(), odd(t))
    read = _whole(corpus.stream_texts)
    t.call("stream_texts", read, given, vectorizer, check=lambda _: None, **_size(t))


def _disk(t: Trial) -> None:
    V = t.whole(1, 6)
    blocks: Any = [matrices.good_corpus(t, t.whole(1, 5), V) for _ in range(t.whole(0, 3))]
    if t.chance(0.2):
        blocks = t.one_of([*blocks, matrices.corpus(t, V)], odd(t))
    options = {"dtype": t.one_of("float32", "float64", odd(t))} if t.chance(0.4) else {}
    with tempfile.TemporaryDirectory() as folder:
        path: Any = Path(folder) / "corpus"
        written, _ = t.call(
            "write", corpus.write, path, blocks, check=lambda _: None, allows=(OSError,), **options
        )
        if written and t.chance(0.5):
            file = t.one_of(*sorted(path.iterdir()))
            file.write_bytes(mutated(t, file.read_bytes()))
        given = odd(t) if t.chance(0.03) else path
        opened, X = t.call("open", corpus.open, given, check=lambda _: None, allows=(OSError,))
        if opened and isinstance(X, sparse.csr_matrix) and X.shape[1] < 100:
            lda = TemperedLDA(2, max_iter=1, random_state=0)
            answered, _ = t.call("fit", lda.fit, X, check=lambda _: None)
            if answered:
                assert np.isfinite(lda.components_).all()
                t.call("transform", lda.transform, X)


TARGETS = (
    *(
        Target(f"corpus.{name}", _file(name, valid), frozenset([name]))
        for name, valid in {
            "stream_uci": UCI,
            "stream_lda_c": LDA_C,
            "stream_matrix_market": MARKET,
        }.items()
    ),
    Target("corpus.stream_gensim", _gensim, frozenset(["stream_gensim"])),
    Target("corpus.stream_texts", _texts, frozenset(["stream_texts"])),
    Target("corpus.write", _disk, frozenset(["write", "open"])),
)
