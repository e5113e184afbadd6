"""Files, gensim's corpora and texts in blocks are what they are as a whole."""

import gzip

import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import mmwrite
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from annealvi import corpus
from annealvi.corpus import (
    from_gensim,
    read_lda_c,
    read_uci,
    stream_gensim,
    stream_lda_c,
    stream_matrix_market,
    stream_texts,
    stream_uci,
    streams,
)

TEXTS = ["a star and a gene", "", "a proof", "gene gene", "nothing", "star proof field"]


@pytest.fixture
def X():
    return sparse.random_array((53, 11), density=0.2, rng=0, format="csr").tocsr().ceil() * 3


def together(blocks):
    blocks = list(blocks)
    assert all(isinstance(block, sparse.csr_matrix) for block in blocks)
    return sparse.vstack(blocks).toarray(), [block.shape[0] for block in blocks]


def triples(X):
    X = X.tocoo()
    return "".join(f"{i + 1} {j + 1} {n:g}\n" for i, j, n in zip(X.row, X.col, X.data, strict=True))


def uci(X):
    return f"{X.shape[0]}\n{X.shape[1]}\n{X.nnz}\n" + triples(X)


def market(X):
    header = "%%MatrixMarket matrix coordinate real general\n% a comment\n"
    return header + f"{X.shape[0]} {X.shape[1]} {X.nnz}\n" + triples(X)


def lda_c(X):
    lines = []
    for row in map(sparse.csr_array, X):
        pairs = zip(row.indices, row.data, strict=True)
        lines.append(" ".join([str(row.nnz), *(f"{word}:{n:g}" for word, n in pairs)]))
    return "\n".join(lines) + "\n"


def written(tmp_path, text, packed=False):
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("block_size", [1, 7, 53, 100])
@pytest.mark.parametrize(
    ("stream", "text"), [(stream_uci, uci), (stream_matrix_market, market), (stream_lda_c, lda_c)]
)
def test_files(tmp_path, monkeypatch, X, stream, text, block_size, packed):
    monkeypatch.setattr(streams, "LINES", 9)
    path = written(tmp_path, text(X), packed)
    read, sizes = together(stream(path, block_size=block_size))
    assert_array_equal(read, X.toarray())
    assert sizes == [block_size] * (53 // block_size) + [53 % block_size] * (53 % block_size > 0)


def test_files_are_read_as_the_functions_that_read_them_whole(tmp_path, X):
    path = written(tmp_path, uci(X))
    assert_array_equal(together(stream_uci(path))[0], read_uci(path).data.toarray())
    path = written(tmp_path, lda_c(X))
    assert_array_equal(together(stream_lda_c(path))[0], read_lda_c(path).data.toarray())
    assert together(stream_lda_c(path, 20))[0].shape == (53, 20)


def test_files_of_scipy(tmp_path, X):
    mmwrite(tmp_path / "X.mtx", X)
    assert_array_equal(together(stream_matrix_market(tmp_path / "X.mtx"))[0], X.toarray())
    mmwrite(tmp_path / "X.mtx", X.tocsc())
    with pytest.raises(ValueError, match="documents must come in the order of their numbers"):
        list(stream_matrix_market(tmp_path / "X.mtx"))


@pytest.mark.parametrize("block_size", [1, 2, 10])
def test_gensim(block_size):
    documents = [[(0, 4), (2, 1)], [], [(1, 2.5)]]
    words = {0: "star", 1: "gene", 2: "proof"}
    whole = from_gensim(documents, words).data.toarray()
    for given in (words, 3):
        read, _ = together(stream_gensim(iter(documents), given, block_size=block_size))
        assert_array_equal(read, whole)


@pytest.mark.parametrize("block_size", [1, 4, 10])
def test_texts(block_size):
    for vectorizer in (
        CountVectorizer(vocabulary=["gene", "star", "proof"]),
        CountVectorizer().fit(TEXTS),
        HashingVectorizer(n_features=8, alternate_sign=False, norm=None),
    ):
        read, _ = together(stream_texts(iter(TEXTS), vectorizer, block_size=block_size))
        assert_array_equal(read, vectorizer.transform(TEXTS).toarray())


def test_streams_are_written_to_disk(tmp_path, X):
    corpus.write(tmp_path / "X", stream_uci(written(tmp_path, uci(X)), block_size=5))
    assert_array_equal(corpus.open(tmp_path / "X").toarray(), X.toarray())


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("stream", "text", "message"),
    [
        (stream_uci, "2\n3\n", "cannot be read as UCI bag of words"),
        (stream_uci, "2\n3\n1\n1 4 1\n", "Words must be numbered from 1 to 3. Got 4"),
        (stream_uci, "2\n3\n1\n3 1 1\n", "Documents must be numbered from 1 to 2. Got 3"),
        (stream_uci, "2\n3\n2\n2 1 1\n1 1 1\n", "documents must come in the order"),
        (stream_uci, "2\n3\n5\n1 1 1\n", "must have 5 entries. Got 1"),
        (stream_uci, "2\n3\n1\n1 1 -1\n", "counts must be finite and not negative. Got -1"),
        (stream_uci, "2\n3\n1\n1 1\n", "a document, a word and a count. Got 2 numbers"),
        (stream_matrix_market, "1 1 1\n1 1 1\n", "must begin with '%%MatrixMarket matrix coord"),
        (
            stream_matrix_market,
            "%%MatrixMarket matrix coordinate real symmetric\n1 1 1\n1 1 1\n",
            "must be real or integer, and general. Got 'real symmetric'",
        ),
        (stream_lda_c, "1 0:1\n2 0:1\n", "document 1 says that it has 2 different words. It has 1"),
        (stream_lda_c, "1 0:-1\n", "counts must be finite and not negative"),
    ],
)
def test_files_that_are_refused(tmp_path, stream, text, message):
    with pytest.raises(ValueError, match=message):
        list(stream(written(tmp_path, text), block_size=1))


@pytest.mark.parametrize("block_size", [0, 1.5, True, "2"])
def test_block_sizes_that_are_refused(tmp_path, block_size):
    calls = {
        "stream_uci": lambda size: stream_uci(tmp_path, block_size=size),
        "stream_matrix_market": lambda size: stream_matrix_market(tmp_path, block_size=size),
        "stream_lda_c": lambda size: stream_lda_c(tmp_path, block_size=size),
        "stream_gensim": lambda size: stream_gensim([], 3, block_size=size),
        "stream_texts": lambda size: stream_texts([], HashingVectorizer(), block_size=size),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"'block_size' parameter of {name} must be an int"):
            list(call(block_size))


def test_arguments_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'n_words' parameter of stream_lda_c .* Got 0"):
        list(stream_lda_c(tmp_path, 0))
    with pytest.raises(ValueError, match=r"'words' parameter of stream_gensim .* Got 0"):
        list(stream_gensim([], 0))
    with pytest.raises(ValueError, match=r"must be below 2, the number of words. Got the id 2"):
        list(stream_gensim([[(2, 1)]], 2))
    with pytest.raises(ValueError, match=r"Ids of 'corpus' must be below 2147483647. Got 1e\+30"):
        list(stream_gensim([[(1e30, 1)]], 3))
    with pytest.raises(TypeError, match=r"'texts' must be what the vectorizer reads"):
        list(stream_texts([5], HashingVectorizer()))
    with pytest.raises(TypeError, match=r"'corpus' must be an iterable of documents. Got int"):
        list(stream_gensim(5, 3))
    with pytest.raises(TypeError, match=r"must be an iterable of texts. Got a single one"):
        list(stream_texts("a text", HashingVectorizer()))
    with pytest.raises(TypeError, match=r"'texts' must be an iterable of documents. Got int"):
        list(stream_texts(5, HashingVectorizer()))
    with pytest.raises(TypeError, match=r"'vectorizer' must have a method transform. Got str"):
        list(stream_texts(TEXTS, "counts"))
    with pytest.raises(NotFittedError):
        list(stream_texts(TEXTS, CountVectorizer()))
    with pytest.raises(FileNotFoundError):
        list(stream_uci(tmp_path / "nothing"))
