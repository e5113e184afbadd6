"""Corpora of gensim, there and back."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from annealvi import TemperedFMM, TemperedLDA, TemperedMultinomialMixture
from annealvi.corpus import from_gensim, to_gensim
from tests.asserts import refusals, refused
from tests.marks import cases

COUNTS = np.array([[4, 0, 1, 0], [0, 0, 0, 0], [0, 2, 0, 0]])
CORPUS = [[(0, 4), (2, 1)], [], [(1, 2)]]
WORDS = ["star", "gene", "proof", "field"]


def test_a_corpus_without_a_dictionary():
    corpus = from_gensim(iter([*CORPUS[:2], iter([(1, 1), (1, 1)])]))
    assert_array_equal(corpus.data.toarray(), COUNTS[:, :3])
    assert corpus.feature_names is None
    assert from_gensim([]).data.shape == (0, 0)
    assert from_gensim([[], []], {0: "star"}).data.shape == (2, 1)


def test_the_words_of_a_dictionary():
    corpus = from_gensim(CORPUS, dict(reversed(list(enumerate(WORDS)))))
    assert_array_equal(corpus.data.toarray(), COUNTS)
    assert corpus.feature_names.tolist() == WORDS
    gap = from_gensim(CORPUS, {0: "star", 2: "proof"})  # gensim leaves gaps if words are dropped
    assert gap.feature_names.tolist() == ["star", "1", "proof"]


test_what_is_no_corpus = refusals(
    lambda corpus: from_gensim(corpus, dict(enumerate(WORDS))),
    ([[(0, 1), (-1, 1)]], "must be integers >= 0 and less than 4, the number of words. Got -1"),
    ([[(0.5, 1)]], "must be integers >= 0 .* Got 0.5"),
    ([[(0, -1)]], "must be finite and non-negative. Got -1"),
    ([[(0, np.nan)]], "must be finite and non-negative. Got nan"),
    ([[(4, 1)]], "less than 4, the number of words. Got 4"),
)


def test_there_and_back():
    pytest.importorskip("gensim")
    corpus, dictionary = to_gensim(sparse.csr_matrix(COUNTS), WORDS)
    assert corpus == CORPUS and dictionary.num_docs == 3
    assert dictionary.doc2bow(["gene", "field", "gene"]) == [(1, 2), (3, 1)]
    back = from_gensim(corpus, dictionary)
    assert_array_equal(back.data.toarray(), COUNTS)
    assert back.feature_names.tolist() == WORDS
    assert to_gensim(COUNTS / 2, WORDS)[0][0] == [(0, 2.0), (2, 0.5)]
    refused(r"a word for each of the 4 columns of X. Got 2", to_gensim, COUNTS, WORDS[:2])
    refused("X must be finite and non-negative", to_gensim, -COUNTS, WORDS)


SINGLE = [(0, 2), (3, 1), (5, 4)]
ONE_DOCUMENT = [SINGLE, tuple(SINGLE), [[*pair] for pair in SINGLE], np.array(SINGLE), iter(SINGLE)]
MALFORMED = [[(0, 1, 2), (3, 4, 5)], [0, 1, 2, 3], np.arange(4), [[0, 1, 2, 3]], [0.0, 1.0], ["ab"]]
MALFORMED += [[(0, 1), (2,)], [("a", 1)], ["star", "gene"], 3]

test_what_are_no_arguments = refusals(
    lambda given: from_gensim(*given),
    *(((one,), "for document 0. Put a single document in a list") for one in ONE_DOCUMENT),
    *((([SINGLE, one],), r"a list of \(id, count\). Got .* for document 1") for one in MALFORMED),
    (([[(1e30, 1)]],), r"must be integers >= 0 and less than 2147483647. Got 1e\+30"),
    ((CORPUS, {"star": 0}), "Ids in 'dictionary' must be integers"),
    ((CORPUS, {-1: "star"}), "Ids in 'dictionary' must be >= 0"),
    ((CORPUS, {2**40: "star"}), "Ids in 'dictionary' must be less than 10000000"),
)


@cases("corpus", [SINGLE, [(1, 1)]] * 4, [SINGLE[:2], SINGLE[1:]] * 6, [[], SINGLE])
def test_a_corpus_of_gensim_in_the_place_of_counts(corpus):
    fitted = TemperedLDA(2, max_iter=1).fit(np.ones((4, 6)))
    models = TemperedLDA(2), TemperedMultinomialMixture(2), TemperedFMM(2)
    of_fitted = fitted.transform, fitted.perplexity, fitted.partial_fit, fitted.score
    for method in (*(model.fit for model in models), *of_fitted):
        refused(r"X must be a matrix .*from_gensim\(X\)", method, corpus)
