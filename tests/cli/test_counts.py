"""Counts of words in files."""

import gzip

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from annealvi.cli.inputs import Roles, read_corpus

X = sparse.csr_matrix(np.array([[2, 0, 1, 0], [0, 3, 0, 0], [1, 1, 0, 4]], dtype=float))
WORDS = ["star", "bread", "ship", "moon"]


def written(folder, kind, packed=False):
    """X in a file of a kind."""
    path = (
        folder / {"npz": "x.npz", "mtx": "x.mtx", "uci": "docword.x.txt", "lda-c": "x.ldac"}[kind]
    )
    if kind == "npz":
        sparse.save_npz(path, X)
        return path
    if kind == "mtx":
        mmwrite(path, X)
    elif kind == "uci":
        entries = [f"{d + 1} {w + 1} {int(n)}" for (d, w), n in X.todok().items()]
        path.write_text("\n".join(["3", "4", str(len(entries)), *entries]) + "\n")
    else:
        rows = [" ".join(f"{w}:{int(row[0, w])}" for w in row.indices) for row in X]
        path.write_text("".join(f"{len(r.split())} {r}\n" for r in rows))
    if packed:
        file = path.with_name(path.name + ".gz")
        file.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        return file
    return path


def read(path, vocabulary=None, **options):
    roles = Roles(**{name: options.pop(name) for name in ("time", "text") if name in options})
    return read_corpus(str(path), roles, vocabulary=vocabulary, **options)


@pytest.mark.parametrize(
    ("kind", "packed"),
    [("npz", False), *((kind, packed) for kind in ("mtx", "uci", "lda-c") for packed in (0, 1))],
)
def test_counts(tmp_path, kind, packed):
    path = written(tmp_path, kind, packed)
    corpus = read(path)
    np.testing.assert_array_equal(corpus.counts.toarray(), X.toarray())
    assert corpus.words is None and corpus.texts is None and len(corpus) == 3
    words = tmp_path / "words.txt"
    words.write_text("\n".join([*WORDS, "more"]) + "\n")
    corpus = read(path, vocabulary=str(words))
    assert list(corpus.words) == [*WORDS, "more"]
    assert corpus.counts.shape == (3, 5)


def test_words_beside_the_counts(tmp_path):
    path = written(tmp_path, "uci", packed=True)
    (tmp_path / "vocab.txt").write_text("wrong\n" * 9)
    (tmp_path / "vocab.x.txt").write_text("\n".join(WORDS))
    assert list(read(path).words) == WORDS


def test_arrays_of_an_archive(tmp_path):
    path = tmp_path / "x.npz"
    csr = dict(data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape)
    np.savez(path, **csr, vocab=np.array(WORDS), year=[1999, 2000, 2001], other=[1, 2])
    corpus = read(path, time="year")
    assert corpus.times == [1999, 2000, 2001] and list(corpus.words) == WORDS
    with pytest.raises(ValueError, match=r"no column 'other' for --time. Its columns are: year."):
        read(path, time="other")
    with pytest.raises(ValueError, match=r"--text: .* holds counts of words and no texts"):
        read(path, text=("year",))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.mtx", "abc", "cannot be read as Matrix Market counts"),
        ("x.mtx.gz", "abc", "is no .gz file, or it is damaged"),
        ("docword.x.txt", "2\n3\nx\n", "cannot be read as UCI bag of words"),
        ("docword.x.txt", "2\n3\n1\n3 1 1\n", "cannot be read as UCI bag of words"),
        ("x.ldac", "2 0:1\n", r"document 0 says that it has 2 different words. It has 1"),
        ("x.ldac", "star\n", "cannot be read as LDA-C counts"),
        ("docword.x.txt.gz", "abc", "cannot be read as UCI bag of words"),
        ("x.npz", "abc", "holds no counts of words: it is no archive"),
        (
            "x.mtx",
            "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 -3\n",
            "holds no counts: some are negative",
        ),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / name)


def test_an_archive_of_something_else(tmp_path):
    np.savez(tmp_path / "x.npz", a=[1])
    with pytest.raises(ValueError, match=r"It has no \['data', 'indices', 'indptr', 'shape'\]"):
        read(tmp_path / "x.npz")
    sparse.save_npz(tmp_path / "y.npz", sparse.coo_matrix(X))
    with pytest.raises(ValueError, match="holds no counts of words"):
        read(tmp_path / "y.npz")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("star\nbread\n", "has 2 words for the 4 columns"),
        ("a\nb\nb\nc\n", "has the word 'b' twice"),
    ],
)
def test_wrong_words(tmp_path, content, words):
    (tmp_path / "w").write_text(content)
    with pytest.raises(ValueError, match=words):
        read(written(tmp_path, "mtx"), vocabulary=str(tmp_path / "w"))


def test_a_fit(call, tmp_path):
    path = written(tmp_path, "lda-c")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    assert call("fit", path, "--topics", 2, "--model", "m").status == 0
    # texts and counts of the same words
    (tmp_path / "t.txt").write_text("star ship star\nbread bread bread\nstar bread moon\n")
    labels = call("label", "m", path, "--shares").out
    assert len(labels.splitlines()) == 4
    assert (
        call("label", "m", tmp_path / "t.txt", "--shares").out.splitlines()[:3]
        == (labels.splitlines()[:3])
    )
    (tmp_path / "vocab.txt").unlink()
    done = call("fit", path, "--topics", 2, "--model", "bare")
    assert "the words are not known" in done.err
    assert call("label", "bare", path).status == 0
    failed = call("label", "bare", tmp_path / "t.txt")
    assert failed.status == 2 and "fitted to counts without words" in failed.err
