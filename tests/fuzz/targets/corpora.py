"""annealvi.corpus and annealvi.progress: damaged files, odd corpora, and bars around fits."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from annealvi import TemperedFMM, TemperedLDA, corpus
from annealvi.progress import ProgressBar
from tests.fuzz import matrices
from tests.fuzz.judge import check_finite
from tests.fuzz.target import Target
from tests.fuzz.targets.files import mutated
from tests.fuzz.trial import Trial
from tests.fuzz.values import odd

UCI = "3\n4\n4\n1 1 4\n1 3 1\n2 2 5\n3 4 1\n"
LDA_C = "2 0:4 2:1\n1 1:5\n0\n1 3:1\n"
VOCABULARY = "star\nplanet\nproof\ngène\n"
STATE = (
    "#doc source pos typeindex type topic\n#alpha : 0.5 1.5 \n#beta : 0.01\n"
    "0 NA 0 0 star 1\n0 NA 1 1 proof# 0\n2 my file.txt 0 2 gène 0\n"
)
WEIGHTS = "0\tstar\t0.01\n0\tgène\t1.01\n1\tstar\t2.01\n1\tgène\t0.01\n"
DENSE = "0\tfile:/a\t0.25\t0.75\n1\tb\t0.5\t0.5\n"
PAIRS = "#doc name topic proportion ...\n0\ta\t1\t0.75\t0\t0.25\t\n1\tb\t0\t0.6\t1\t0.4\t\n"
KEYS = "0\t0.5\tstar gène \n1\t1.5\tproof \n"


def damaged_file(t: Trial, folder: str, *valid: str) -> Any:
    """A file with a damaged text, now and then a good one, packed, or none at all."""
    path = Path(folder, t.one_of("a.txt", "b.gz"))
    content = t.one_of(*valid).encode()
    if t.chance(0.2):
        content = gzip.compress(content)
    content = content if t.chance(0.1) else mutated(t, content)
    path.write_bytes(gzip.compress(content) if t.chance(0.1) else content)
    return odd(t) if t.chance(0.03) else t.one_of(path, path, str(path))


def _reader(name: str, *valid: str, words: bool = False) -> Callable[[Trial], None]:
    def run(t: Trial) -> None:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            given = [damaged_file(t, folder, *valid)]
            if words and t.chance(0.3):
                given.append(damaged_file(t, other, VOCABULARY))
            t.call(name, getattr(corpus, name), *given, allows=(OSError,))

    return run


def pairs(t: Trial) -> list[Any]:
    """A document as gensim has it."""
    pairs: list[Any] = [(t.whole(0, 5), t.whole(1, 9)) for _ in range(t.whole(0, 4))]
    if pairs and t.chance(0.15):
        wrong = ((-1, 2), (1, -2), (0.5, 1), (0, np.nan), (1, np.inf), (2, 0), (3,), "ab", odd(t))
        pairs[0] = t.one_of(*wrong)
    return pairs


def _gensim(t: Trial) -> None:
    documents: Any = [pairs(t) for _ in range(t.whole(0, 5))]
    documents = t.one_of(documents, iter(documents), documents, odd(t))
    words: Any = {number: f"word {number}" for number in range(t.whole(0, 7))}
    words = t.one_of(None, words, words, {-1: "a"}, {"a": 1}, {2**40: "b"}, odd(t))
    t.call("from_gensim", corpus.from_gensim, documents, words)
    X = matrices.corpus(t)
    names = t.one_of([f"w{j}" for j in range(getattr(X, "shape", (0, 3))[-1])], ["a"], odd(t))
    t.call("to_gensim", corpus.to_gensim, X, names, allows=(ImportError,))


def _bar(t: Trial) -> None:
    drawn = io.StringIO()
    options = dict(
        desc=t.one_of(None, None, "fit", "", odd(t)), file=t.one_of(drawn, drawn, drawn, odd(t))
    )
    answered, bar = t.call("ProgressBar", ProgressBar, check=lambda _: None, **options)
    if not answered or bar.file is not drawn:
        return
    model = t.one_of(TemperedLDA, TemperedFMM)
    estimator = model(2, max_iter=t.whole(1, 3), n_init=t.whole(1, 2), callback=bar, random_state=0)
    X = matrices.good_corpus(t, 6, 4)
    X = X if model is TemperedLDA else np.eye(6, 4)
    during = bar.during_fit(estimator) if t.chance(0.1) else None
    if during is not None:  # another fit has it
        during.__enter__()
    for _ in range(2):
        if t.call("fit", estimator.fit, X, check=lambda _: None)[0]:
            check_finite(estimator.components_)
            assert "%" in drawn.getvalue()


TARGETS = (
    Target("corpus.read_uci", _reader("read_uci", UCI, words=True), frozenset(["read_uci"])),
    Target(
        "corpus.read_lda_c", _reader("read_lda_c", LDA_C, words=True), frozenset(["read_lda_c"])
    ),
    *(
        Target(f"corpus.{name}", _reader(name, *valid), frozenset([name]))
        for name, valid in {
            "read_mallet_state": (STATE,),
            "read_mallet_weights": (WEIGHTS,),
            "read_mallet_doc_topics": (DENSE, PAIRS),
            "read_mallet_topic_keys": (KEYS,),
        }.items()
    ),
    Target("corpus.gensim", _gensim, frozenset(["from_gensim", "to_gensim"])),
    Target(
        "progress",
        _bar,
        frozenset(["ProgressBar", "ProgressBar.begin", "ProgressBar.during_fit"]),
    ),
)
