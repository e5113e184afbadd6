"""Corpora on disk: the same bits as in memory, in memory that does not grow with the corpus."""

import json
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone

from annealvi import TemperedLDA, corpus
from annealvi.corpus import mapped
from annealvi.datasets import load_arxiv_abstracts, make_topic_corpus
from annealvi.metrics import document_completion
from tests.asserts import refused
from tests.marks import cases


@pytest.fixture(scope="module")
def X():
    return load_arxiv_abstracts().data[:600].astype(np.float32)


def blocks(X, size=70):
    return (X[first : first + size] for first in range(0, X.shape[0], size))


@pytest.fixture(scope="module")
def folder(X, tmp_path_factory):
    path = tmp_path_factory.mktemp("mapped") / "corpus"
    corpus.write_corpus(path, blocks(X))
    return path


def is_mapped(array):
    while array.base is not None and not isinstance(array, np.memmap):
        array = array.base
    return isinstance(array, np.memmap)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_was_written_is_there(X, tmp_path, dtype):
    corpus.write_corpus(tmp_path / "X", blocks(X), dtype=dtype)
    read = corpus.open_corpus(tmp_path / "X")
    assert type(read) is sparse.csr_matrix and read.dtype == dtype and read.shape == X.shape
    for name in ("data", "indices", "indptr"):
        array = getattr(read, name)
        assert is_mapped(array) and not array.flags.writeable
        assert_array_equal(array, getattr(X, name))
    described = json.loads((tmp_path / "X" / "corpus.json").read_text())
    assert described == {"format": 1, "shape": list(X.shape), "dtype": dtype}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["X"]


def test_blocks_of_all_kinds(tmp_path):
    dense = np.array([[0, 2, 0], [1, 0, 0]])
    unsorted = sparse.csr_matrix(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    empty = sparse.csr_matrix((0, 3))
    corpus.write_corpus(
        tmp_path / "X", [dense, empty, unsorted, sparse.coo_array(dense), [[0, 0, 7]]]
    )
    expected = [[0, 2, 0], [1, 0, 0], [2, 0, 4], [0, 2, 0], [1, 0, 0], [0, 0, 7]]
    read = corpus.open_corpus(tmp_path / "X")
    assert_array_equal(read.toarray(), expected)
    assert read.has_canonical_format
    corpus.write_corpus(tmp_path / "none", [sparse.csr_matrix((2, 3))])
    assert_array_equal(corpus.open_corpus(tmp_path / "none").toarray(), np.zeros((2, 3)))


def test_many_entries_have_wide_indices(X, tmp_path, monkeypatch):
    monkeypatch.setattr(mapped, "_INT32_MAX", X.nnz - 1)
    monkeypatch.setattr(mapped, "CHUNK", 1000)
    corpus.write_corpus(tmp_path / "X", blocks(X))
    read = corpus.open_corpus(tmp_path / "X")
    assert read.indices.dtype == read.indptr.dtype == np.int64 and (read != X).nnz == 0
    lda = TemperedLDA(3, max_iter=1, random_state=0).fit(read)
    assert_array_equal(lda.components_, lda.fit(X).components_)


@pytest.mark.slow
@cases(
    "parameters",
    *({}, {"preset": "sklearn"}, {"dtype": "float64"}, {"learning_method": "batch"}),
    *({"validation_fraction": 0.2}, {"doc_topic_prior": "learn", "n_jobs": 2}),
)
def test_fits_have_the_same_bits(X, folder, parameters):
    make = TemperedLDA(4, max_iter=2, random_state=0, **parameters)
    fits = [clone(make).fit(Z) for Z in (X, corpus.open_corpus(folder))]
    assert_array_equal(fits[0].components_, fits[1].components_)
    assert fits[0].bound_ == fits[1].bound_


def test_methods_have_the_same_bits(X, folder):
    lda, Z = TemperedLDA(4, max_iter=2, random_state=0).fit(X), corpus.open_corpus(folder)
    assert_array_equal(lda.transform(Z), lda.transform(X))
    assert_array_equal(lda.transform(Z, method="cvb0"), lda.transform(X, method="cvb0"))
    assert lda.score(Z) == lda.score(X) and lda.perplexity(Z) == lda.perplexity(X)
    assert document_completion(lda, Z) == document_completion(lda, X)
    streams = [TemperedLDA(4, random_state=0).partial_fit(Z).partial_fit(Z[:50]) for Z in (X, Z)]
    assert_array_equal(streams[0].components_, streams[1].components_)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """By less than 64 bytes for each document, which has more than 60 entries of 8 bytes."""
    X = make_topic_corpus(500, 2000, 3, random_state=0).data.astype(np.float32)
    assert X.nnz > 60 * X.shape[0]
    for times in (16, 48):  # in blocks of 4,000 documents
        corpus.write_corpus(tmp_path / str(times), [X] * times)
    fit = {"max_iter": 1, "batch_size": 200, "n_init": 1, "temperature": 1, "random_state": 0}
    calls = {
        "fit": lambda Z: TemperedLDA(32, **fit).fit(Z),
        "partial_fit": lambda Z: TemperedLDA(32, batch_size=200, random_state=0).partial_fit(Z),
        "score": TemperedLDA(32, **fit).fit(X).score,
    }
    for name, call in calls.items():
        call(X)  # imports, and what is made once
        peaks = []
        for times in (16, 48):
            tracemalloc.start()
            call(corpus.open_corpus(tmp_path / str(times)))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] - peaks[0] < 64 * 32 * X.shape[0], name


@cases(
    "given, error, message",
    ([np.eye(3), np.eye(4)], ValueError, "same number of columns.* Block 0 has 3 columns, and"),
    ([np.eye(3), -np.eye(3)], ValueError, "block 1: counts must be .* non-negative. Got -1"),
    ([np.eye(3) * 0.1], ValueError, "block 0 contains the count .*0.1.* Pass dtype='float64'"),
    ([np.eye(3) * (2**24 + 1)], ValueError, "which float32 cannot represent"),
    ([np.eye(3) * np.nan], ValueError, "block 0 contains NaN"),
    ([], ValueError, "'blocks' must contain at least one block"),
    (5, TypeError, "'blocks' must be an iterable of matrices. Got int"),
)
def test_blocks_that_are_refused(tmp_path, given, error, message):
    refused(message, corpus.write_corpus, tmp_path / "X", given, error=error)
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_blocks_leaves_nothing(tmp_path):
    def failing():
        yield np.eye(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        corpus.write_corpus(tmp_path / "X", failing())
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(X, folder, tmp_path):
    with pytest.raises(FileExistsError, match="Remove it, or write to another path"):
        corpus.write_corpus(folder, [np.eye(3)])
    assert corpus.open_corpus(folder).shape == X.shape
    with pytest.raises(FileNotFoundError) as raised:
        corpus.write_corpus(tmp_path / "no" / "X", [np.eye(3)])
    assert raised.value.filename == str(tmp_path / "no" / "X")


@pytest.mark.parametrize("place", ["nothing", "", "file"])
def test_folders_that_are_no_corpus(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"There is no corpus at .*corpus.json"):
        corpus.open_corpus(tmp_path / place)


@cases(
    "change, message",
    ("", "is not the description of a corpus"),
    ("[]", "is not the description of a corpus"),
    ("\udcff", "is not the description of a corpus"),
    ({"format": 2}, r"corpus.json in .*: The file is damaged: 'format' must be .* Got 2"),
    ({"shape": [4]}, "is not the description of a corpus"),
    ({"shape": [4, -3]}, "'shape.1' must be an int .* Got -3"),
    ({"shape": [5, 3]}, "indptr.npy' must contain 6 numbers of dtype int32 or int64. Got"),
    ({"dtype": "float64"}, "data.npy' must contain 3 numbers of dtype float64. Got"),
    ({"dtype": "int8"}, "'dtype' must be one of .* Got 'int8'"),
)
def test_descriptions_that_are_refused(tmp_path, change, message):
    corpus.write_corpus(tmp_path / "X", [np.eye(3)])
    place = tmp_path / "X" / "corpus.json"
    if isinstance(change, dict):
        change = json.dumps(json.loads(place.read_text()) | change)
    place.write_bytes(change.encode("utf-8", "surrogateescape"))
    refused(message, corpus.open_corpus, tmp_path / "X")


@pytest.mark.parametrize("name", ["data.npy", "indices.npy", "indptr.npy"])
def test_damaged_files(tmp_path, name):
    corpus.write_corpus(tmp_path / "X", [np.eye(300)])
    file = tmp_path / "X" / name
    for content in (file.read_bytes()[:-4], b""):
        file.write_bytes(content)
        refused(f"{name}' is not a NumPy file, or it is inc", corpus.open_corpus, tmp_path / "X")
    file.unlink()
    refused(f"has no file {name}", corpus.open_corpus, tmp_path / "X", error=FileNotFoundError)


def test_damaged_numbers_are_refused_before_they_are_read(tmp_path):
    corpus.write_corpus(tmp_path / "X", [np.eye(300)])
    indices = np.load(tmp_path / "X" / "indices.npy")
    np.save(tmp_path / "X" / "indices.npy", np.where(indices == 7, 10**6, indices))
    refused(r"indices must be < 300", TemperedLDA(2).fit, corpus.open_corpus(tmp_path / "X"))
