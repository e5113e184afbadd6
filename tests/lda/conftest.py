"""A corpus, and estimators that the tests of more than one file fit to it."""

import pytest

from annealvi.datasets import make_topic_corpus
from tests.lda import learned
from tests.lda.fits import mean_field, recommended


@pytest.fixture(scope="module")
def X():
    """Counts of 80 documents, 60 words and 4 planted topics."""
    return make_topic_corpus(80, 60, 4, document_length=40, random_state=0).data


@pytest.fixture(params=[mean_field, recommended], ids=["mean field", "recommended"])
def fit(request):
    """What must hold whatever parameters left open stand for."""
    return request.param


@pytest.fixture(params=[learned.mean_field, learned.point])
def make(request):
    """An estimator whose temperature is learned, topics a distribution or a point."""
    return request.param
