"""UCI's bag of words, LDA-C and Matrix Market; as a whole and in blocks, also of gensim's corpora
and of texts."""

import gzip

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import mmwrite
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from annealvi import corpus
from annealvi.corpus import files, read_lda_c, read_uci, stream_gensim, stream_lda_c
from annealvi.corpus.streams import stream_matrix_market, stream_uci
from tests.asserts import refused
from tests.marks import cases

COUNTS = np.array([[4, 0, 1, 0], [0, 0, 0, 0], [0, 2.5, 0, 0]])
UCI = "3\n4\n3\n1 1 4\n1 3 1\n3 2 2.5\n"
LDA_C = "2 0:4 2:1\n0\n1 1:2.5\n"
MARKET = "%%MatrixMarket matrix coordinate real general\n% a comment\n"
TEXTS = ["a star and a gene", "", "a proof", "gene gene", "nothing", "star proof field"]


WORDS = ["stjärna", "хлеб", "云", "field"]
#: Only a line feed ends a word.
ODD = [f"bre{sign}ad" for sign in "\u2028\u2029\x85\x0b\x0c\x1c\x1e"]


@pytest.fixture
def write(tmp_path):
    def written(text, packed=False, name="file"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        return path

    return written


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("read", "text"), [(read_uci, UCI), (read_lda_c, LDA_C)])
def test_counts_and_words(write, read, text, packed):
    for words in (WORDS, ODD[:4], ODD[3:]):
        lines = "\n".join(words)
        for vocabulary in (lines, "\r\n".join(words) + "\r\n", "\ufeff" + lines + "\n\n"):
            found = read(write(text, packed), write(vocabulary, packed, "vocab"))
            assert_array_equal(found.data.toarray(), COUNTS)
            assert found.feature_names.tolist() == words
    alone = read(write(text))
    assert alone.feature_names is None and alone.data.dtype == np.float64
    n_words = 4 if read is read_uci else 3  # LDA-C does not say how many there are
    assert_array_equal(alone.data.toarray(), COUNTS[:, :n_words])
    assert read_uci(write("2\n3\n0\n")).data.toarray().tolist() == [[0] * 3] * 2


@cases(
    "line, counts",
    ("2 5:1 0:2\n", [2, 0, 0, 0, 0, 1]),
    ("3 4:1 1:2 3:7 \n", [0, 2, 0, 7, 1, 0]),
    *(("1 2:5\n", [0, 0, 5, 0, 0, 0]), ("0\n", [0] * 6)),
    ("4 5:1 3:1 2:1 0:1\r\n", [1, 0, 1, 1, 0, 1]),
)
def test_lda_c_in_any_order(write, line, counts):
    path = write("2 0:1 5:1\n" + line)
    for read in (read_lda_c(path).data, *stream_lda_c(path, n_words=6)):
        assert read.toarray()[1].tolist() == counts


@pytest.fixture
def X():
    return sparse.random_array((53, 11), density=0.2, rng=0, format="csr").tocsr().ceil() * 3


def together(blocks):
    blocks = list(blocks)
    assert all(isinstance(block, sparse.csr_matrix) for block in blocks)
    return sparse.vstack(blocks).toarray(), [block.shape[0] for block in blocks]


def triples(X, separator):
    entries = zip(*X.nonzero(), X.data, strict=True)
    head = separator.join(map(str, [*X.shape, X.nnz]))
    return f"{head}\n" + "".join(f"{i + 1} {j + 1} {n:g}\n" for i, j, n in entries)


def uci(X):
    return triples(X, "\n")


def market(X):
    return MARKET + triples(X, " ")


def lda_c(X):
    lines = []
    for row in map(sparse.csr_array, X):
        pairs = zip(row.indices, row.data, strict=True)
        lines.append(" ".join([str(row.nnz), *(f"{word}:{n:g}" for word, n in pairs)]))
    return "\n".join(lines) + "\n"


@pytest.mark.thinned
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("block_size", [1, 7, 53, 100])
@cases("stream, text", (stream_uci, uci), (stream_matrix_market, market), (stream_lda_c, lda_c))
def test_blocks_of_files(tmp_path, write, monkeypatch, X, stream, text, block_size, packed):
    monkeypatch.setattr(files, "LINES", 9)
    path = write(text(X), packed)
    read, sizes = together(stream(path, block_size=block_size))
    assert_array_equal(read, X.toarray())
    assert sizes == [block_size] * (53 // block_size) + [53 % block_size] * (53 % block_size > 0)
    if stream is not stream_matrix_market:
        whole = read_uci if stream is stream_uci else read_lda_c
        assert_array_equal(whole(path).data.toarray(), read)
    if stream is stream_lda_c:
        assert together(stream(path, 20))[0].shape == (53, 20)
    corpus.write_corpus(tmp_path / "X", stream(path, block_size=block_size))
    assert_array_equal(corpus.open_corpus(tmp_path / "X").toarray(), X.toarray())


def test_files_of_scipy(tmp_path, X):
    mmwrite(tmp_path / "X.mtx", X)
    assert_array_equal(together(stream_matrix_market(tmp_path / "X.mtx"))[0], X.toarray())
    mmwrite(tmp_path / "X.mtx", X.tocsc())
    refused("documents must be in the order", list, stream_matrix_market(tmp_path / "X.mtx"))


@pytest.mark.parametrize("block_size", [1, 2, 10])
def test_blocks_of_gensim(block_size):
    documents = [[(0, 4), (2, 1)], [], [(1, 2.5)]]
    words = dict(enumerate(WORDS[:3]))
    whole = corpus.from_gensim(documents, words).data.toarray()
    for given in (words, 3):
        read, _ = together(stream_gensim(iter(documents), given, block_size=block_size))
        assert_array_equal(read, whole)


@pytest.mark.filterwarnings("ignore:Block .* contains no word")
@pytest.mark.parametrize("block_size", [1, 4, 10])
def test_blocks_of_texts(block_size):
    for vectorizer in (
        CountVectorizer(vocabulary=["gene", "star", "proof"]),
        CountVectorizer().fit(TEXTS),
        HashingVectorizer(n_features=8, alternate_sign=False, norm=None),
    ):
        read, _ = together(corpus.stream_texts(iter(TEXTS), vectorizer, block_size=block_size))
        assert_array_equal(read, vectorizer.transform(TEXTS).toarray())


@cases(
    "text, message",
    ("2\n3\n", "cannot be read as UCI bag of words"),
    ("", "cannot be read as UCI bag of words"),
    ("-1\n1\n0\n", "cannot be read as UCI bag of words"),
    # SciPy's reader of such lines reads past them and then crashes
    ("3\n4\n4\n" + "1 1 4\n2 2 5\n3 4 1 1 1 4\n" * 100, "cannot be read as UCI bag of words"),
    ("1\n1\n1\n1 2 1\n", "Words must be numbered from 1 to 1. Got 2"),
    ("1\n1\n1\n0 1 1\n", "Documents must be numbered from 1 to 1. Got 0"),
    ("1\n1\n2\n1 1 1\n", "must contain 2 entries. Got 1"),
    ("1\n1\n1\n", "must contain 1 entries. Got 0"),
    ("1\n1\n1\n1 1\n", "three numbers .document, word, count.. Got '1 1' in the line of entry 1"),
    ("1\n1\n1\n1 1 word\n", "Got '1 1 word' in the line of entry 1"),
    ("1\n1\n1\n1 1 -2\n", "must be finite and non-negative. Got -2"),
    ("1\n1\n1\n1 1 nan\n", "must be finite and non-negative. Got nan"),
    ("2\n3\n2\n2 1 1\n1 1 1\n", "documents must be in the order"),
    ("1 0:1\n2 0:1\n", "document 1 begins with 2, so it must have 2 .* Got 1 words"),
    ("2 5:1 5:2\n", "document 0 must be .* pairs word:count of different words"),
    ("3\n4\n1\n2 x 1\n", "Got '2 x 1' in the line of entry 1"),
    ("1 0:1e\n", "document 0 must be .* Got '1 0:1e'"),
    ("1 word:4\n", "cannot be read as LDA-C counts"),
    ("1 0:-4\n", "must be finite and non-negative. Got -4"),
    ("%%MatrixMarket matrix array real general\n1 1 1\n", "must begin with '%%MatrixMarket"),
    (MARKET.replace("general", "symmetric"), "'real general' or 'integer general'. Got 'real symm"),
)
def test_wrong_files(write, text, message):
    path = write(text)
    readers = [read_uci, stream_uci]
    if ":" in text:
        readers = [read_lda_c, stream_lda_c]
    elif "%%" in text:
        readers = [stream_matrix_market]
    elif "order" in message:  # as a whole it may come in any order
        readers = [stream_uci]
    for read in readers:
        with pytest.raises(ValueError, match=message) as caught:
            list(read(path))
        assert repr(str(path)) in str(caught.value)


def test_a_damaged_archive_and_a_vocabulary_of_another_length(write):
    path = write(UCI, packed=True)
    short = write("star\n", name="vocab")
    refused("a vocabulary: it has 1 words, but the counts have 4", read_uci, path, short)
    message = "'.*vocab' .* it has 5 words, but the counts have 4.* header"
    for head in ("word", "4", "", "# слово"):
        refused(message, read_uci, path, write("\n".join([head, *WORDS]), name="vocab"))
    path.write_bytes(path.read_bytes()[:-12])
    refused("cannot be read as UCI", read_uci, path)


def stream_texts(texts):
    return corpus.stream_texts(texts, HashingVectorizer())


@cases(
    "call, error, message",
    (lambda: stream_gensim([[(2, 1)]], 2), ValueError, "less than 2, the number of words. Got 2"),
    (lambda: stream_gensim([[(1e30, 1)]], 3), ValueError, r"less than 3, .* Got 1e\+30"),
    (lambda: stream_gensim(5, 3), TypeError, "an iterable of documents. Got int"),
    (
        lambda: stream_texts([5]),
        TypeError,
        "items of 'documents' must be objects that the vectorizer accepts",
    ),
    (lambda: stream_texts("text"), TypeError, "Got a single text"),
    (lambda: stream_texts(pd.DataFrame({"a": TEXTS})), TypeError, r"one of its columns, \['a'\]"),
    (lambda: stream_texts(["star", None]), TypeError, r"'documents\[1\]' .* a text. Got None"),
    (
        lambda: corpus.stream_texts([*TEXTS[:2], np.nan], HashingVectorizer(), block_size=2),
        TypeError,
        r"'documents\[2\]' .* must be a text. Got nan",
    ),
    (lambda: stream_texts(5), TypeError, "documents. Got int"),
    (lambda: corpus.stream_texts(TEXTS, CountVectorizer()), NotFittedError, "not fitted"),
    (lambda: stream_uci("nothing"), FileNotFoundError, "nothing"),
)
def test_arguments_that_are_refused(call, error, message):
    refused(message, list, call(), error=error)


@pytest.mark.parametrize("block_size", [2, 3])
def test_a_block_without_a_counted_word_is_told(block_size):
    texts = ["gene star"] * block_size + ["", "unknown words", "none"][:block_size] + ["star"]
    stream = corpus.stream_texts(
        iter(texts), CountVectorizer(vocabulary=["gene", "star"]), block_size=block_size
    )
    with pytest.warns(UserWarning, match=f"Block 1 .* document {block_size} to"):
        assert len(list(stream)) == 3


@cases("text, read", (UCI, read_uci), (LDA_C, read_lda_c))
def test_a_byte_order_mark_is_skipped(write, text, read):
    for packed in (False, True):
        assert read(write("\ufeff" + text, packed)).data.sum() == 7.5


def test_the_line_of_a_broken_file_is_named(tmp_path):
    path = tmp_path / "x"
    for text, message in {
        "1 0:2\n\n2 0:1 1\n": "document 1 must be",
        "a 0:1\n": "document 0",
    }.items():
        path.write_text(text)
        refused(f"the line of {message}", corpus.read_lda_c, path)
    path.write_text("2\n2\n3\n1 1 4\n1 23\n2 1 1\n")
    refused("Got '1 23' in the line of entry 2", corpus.read_uci, path)
