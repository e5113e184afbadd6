"""The bundled corpus and the readers."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from annealvi import datasets
from annealvi.datasets import load_arxiv_abstracts, load_corpus, load_images, make_topic_corpus
from tests.asserts import refused
from tests.marks import cases


def test_the_bundled_corpus():
    abstracts = load_arxiv_abstracts()
    assert sparse.issparse(abstracts.data)
    assert abstracts.data.shape == (3000, 3000) and abstracts.data.dtype == np.float64
    assert abstracts.data.sum() == 213_909 and abstracts.feature_names.shape == (3000,)
    assert list(np.bincount(abstracts.target)) == [200] * 15 and len(abstracts.target_names) == 15
    assert "CC0" in abstracts.DESCR and "arXiv" in abstracts.DESCR
    X, y = load_arxiv_abstracts(return_X_y=True)
    assert (abstracts.data != X).nnz == 0
    assert_array_equal(y, abstracts.target)


@pytest.mark.slow
def test_the_bundled_texts():
    plain, abstracts = load_arxiv_abstracts(), load_arxiv_abstracts(texts=True)
    assert "texts" not in plain
    assert len(abstracts.texts) == len(abstracts.titles) == len(set(abstracts.ids)) == 3000
    assert all(map(str.startswith, abstracts.texts, abstracts.titles))
    years = [int(date[:4]) for date in abstracts.created]
    assert (min(years), max(years)) == (1994, 2019)
    counter = CountVectorizer(vocabulary=abstracts.feature_names, token_pattern="[a-z]{3,}")
    both = counter.transform(abstracts.texts).minimum(abstracts.data).sum() / abstracts.data.sum()
    assert both > 0.98  # but for words in mathematics, which the counts leave out
    texts, y = load_arxiv_abstracts(texts=True, return_X_y=True)
    assert texts == abstracts.texts
    assert_array_equal(y, abstracts.target)


def test_images_on_disk(tmp_path, monkeypatch):
    grey = np.array([[[0, 255, 51]], [[255, 0, 0]]], dtype=np.uint8)
    np.savez(tmp_path / "grey.npz", X=grey, X_test=grey[:1], y=[3, 8])
    images = load_images("grey", data_home=tmp_path)
    assert images.data.dtype == images.data_test.dtype == np.float32
    assert_array_equal(images.data, np.array([[0, 1, 0.2], [1, 0, 0]], dtype=np.float32))
    assert_array_equal(images.data_test, images.data[:1])
    assert images.shape == (1, 3) and list(images.y) == [3, 8]
    bits = np.random.RandomState(0).randint(0, 2, (4, 25), dtype=np.uint8)
    np.savez(tmp_path / "bits.npz", X=np.packbits(bits, axis=1))
    images = load_images("bits", data_home=tmp_path)
    assert images.shape == (5, 5) and images.data.dtype == np.float32
    assert_array_equal(images.data, bits)
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    assert "data_test" not in load_images("bits")
    message = r"no image file 'none' .* ANNEALVI_DATA .*none.npz"
    refused(message, load_images, "none", error=FileNotFoundError)


def test_a_corpus_on_disk(tmp_path, monkeypatch):
    X = sparse.csr_matrix(np.array([[0, 2], [1, 0]], dtype=np.int32))
    arrays = dict(data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape)
    np.savez(tmp_path / "mine.npz", **arrays, vocab=np.array(["a", "b"]), year=[1999, 2000])
    corpus = load_corpus("mine", data_home=tmp_path)
    assert_array_equal(corpus.data.toarray(), X.toarray())
    assert corpus.data.dtype == np.float64 and list(corpus.feature_names) == ["a", "b"]
    assert list(corpus.year) == [1999, 2000]
    monkeypatch.setenv("ANNEALVI_DATA", str(tmp_path))
    assert (load_corpus("mine").data != corpus.data).nnz == 0
    with pytest.raises(FileNotFoundError, match=r"'yours' in .*ANNEALVI_DATA.*yours\.npz"):
        load_corpus("yours")


def test_documents_with_known_topics():
    options = dict(document_length=20, random_state=0)
    corpus, again = (make_topic_corpus(50, 30, 4, **options) for _ in range(2))
    assert corpus.data.shape == (50, 30) and corpus.topics.shape == (4, 30)
    np.testing.assert_allclose(corpus.topics.sum(axis=1), 1)
    np.testing.assert_allclose(corpus.document_topics.sum(axis=1), 1)
    assert (corpus.data != again.data).nnz == 0
    alike = make_topic_corpus(16, 1, 4, doc_topic_prior=1e30, random_state=34)
    assert_array_equal(alike.data.indices, 0)


def test_the_shapes():
    shapes = datasets.load_shapes().data
    assert datasets.load_shapes().shape == (4, 4)
    assert shapes.shape == (8, 16) and set(np.unique(shapes)) == {0.0, 1.0}
    assert np.linalg.matrix_rank(shapes) == 8
    assert shapes.sum(axis=1).tolist() == [4, 4, 4, 4, 12, 4, 4, 4]
    assert_array_equal(shapes[0].reshape(4, 4)[:2, :2], np.ones((2, 2)))


def test_images_that_are_sums_of_shapes():
    make = partial(datasets.make_shape_mixture, random_state=0)
    options = dict(prior_probability=0.2, noise_variance=0.04)
    toy = make(20_000, **options)
    assert toy.data.shape == (20_000, 16) and toy.factors.shape == (20_000, 8)
    weights = toy.components.sum(axis=1) / datasets.load_shapes().data.sum(axis=1)
    np.testing.assert_allclose(toy.components, weights[:, None] * datasets.load_shapes().data)
    assert weights.min() >= 0.5 and weights.max() <= 1
    np.testing.assert_allclose(toy.factors.mean(axis=0), 0.2, atol=0.015)
    np.testing.assert_allclose(np.var(toy.data - toy.factors @ toy.components), 0.04, rtol=0.02)
    assert_array_equal(toy.data, make(20_000, **options).data)
    assert_array_equal(*(make(9, noise_variance=v).data for v in (0.0, -0.0)))
    assert make(30, shapes=np.eye(3)).data.shape == (30, 3)


@pytest.mark.parametrize("prior", [dict(topic_word_prior=1e-300), dict(doc_topic_prior=1.7e308)])
def test_priors_that_numpy_cannot_draw_from(prior):
    refused(f"{next(iter(prior))}=.* do not sum to 1.*less extreme", make_topic_corpus, **prior)


@cases(
    "arrays, message",
    ({}, "it has no arrays .'data', 'indices', 'indptr', 'shape'"),
    (dict(indices=[0, 7, 1]), "not a valid sparse matrix of counts: .*indices"),
    (dict(indptr=[0, 2, 2**40]), "not a valid sparse matrix of counts"),
    (dict(shape=[-1, 3]), "not a valid sparse matrix of counts"),
    (dict(data=[1, -2, 3]), "not a valid sparse matrix of counts"),
)
def test_a_corpus_file_with_wrong_arrays(tmp_path, arrays, message):
    whole = dict(data=[1, 2, 3], indices=[0, 2, 1], indptr=[0, 2, 3], shape=[2, 3], vocab=["a"] * 3)
    np.savez(tmp_path / "mine.npz", **(whole | arrays if arrays else {"a": 1}))
    refused(
        rf"mine.npz' does not contain any corpus.*{message}",
        load_corpus,
        "mine",
        data_home=tmp_path,
    )


def test_image_files_with_wrong_arrays_and_damaged_ones(tmp_path):
    for arrays in (dict(X=np.ones((2, 3))), dict(X=np.uint8(1)), dict(Y=[1])):
        np.savez(tmp_path / "mine.npz", **arrays)
        refused("mine.npz' does not contain any images: ", load_images, "mine", data_home=tmp_path)
    np.savez(tmp_path / "mine.npz", X=np.zeros((4, 8), dtype=np.uint8))
    whole = (tmp_path / "mine.npz").read_bytes()
    for place in (*range(0, len(whole), 7), len(whole) - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 255
        for content in (bytes(flipped), whole[:place]):
            (tmp_path / "mine.npz").write_bytes(content)
            try:
                load_images("mine", data_home=tmp_path)
            except ValueError as error:
                assert "mine.npz' does not contain any images" in str(error)
