"""The fingerprint of a fit: which data and parameters are the same."""

import numpy as np
import pytest
from numpy.random import RandomState
from scipy import sparse

from annealvi import Annealed, TemperedLDA
from annealvi.files import read, write
from annealvi.inference.starts import (
    Fingerprint,
    begin_generator,
    described,
    read_checkpoint,
)
from annealvi.matrices import digest

X = sparse.csr_matrix(np.arange(12.0).reshape(3, 4))


def test_digests_of_data():
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert digest(wide) == digest(X)
    assert digest(np.asfortranarray(X.toarray())) == digest(X.toarray())
    others = [X[::-1], X.astype(np.float32), 2 * X, X[:2], X.toarray(), X.toarray().astype("f4")]
    assert len({digest(other) for other in [X, *others]}) == 7


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (np.nan, np.nan, True),
        (None, 0, False),
        (["a", [2]], ["a", [2]], True),
        ([1, 2], [1], False),
        ({"a": 1}, {"b": 1}, False),
        (np.full(2, np.nan), np.full(2, np.nan), True),
        (np.ones(2), np.ones(2, np.float32), False),
        (np.ones(2), [1.0, 1.0], False),
    ],
)
def test_equal_parameters_have_the_same_text(one, other, expected):
    assert (described(one) == described(other)) is expected


def test_a_fingerprint_is_of_the_parameters_at_the_beginning(tmp_path):
    lda = TemperedLDA(3, temperature=Annealed(2.0), random_state=RandomState(0))
    fingerprint = Fingerprint(lda, X)
    lda.set_params(n_components=5, n_jobs=2, random_state=RandomState(1))
    write(tmp_path / "a", "checkpoint", fingerprint.state_dict())
    node = read(tmp_path / "a", "checkpoint")["tree"]
    fingerprint.check(node, "a")
    with pytest.raises(ValueError, match=r"resume='a' is a .* another 'n_components': it has 3"):
        Fingerprint(lda, X).check(node, "a")
    lda.set_params(n_components=3, temperature=Annealed(2.5))
    with pytest.raises(ValueError, match=r"Annealed\(.*start=2\), .*start=2\.5\)"):
        Fingerprint(lda, X).check(node, "a")
    for damage in ({"parameters": {}}, {"parameters": 3}, {"X": 3}, {"shape": None}):
        with pytest.raises(ValueError, match=r"'a' is a checkpoint|is damaged"):
            fingerprint.check(fingerprint.state_dict() | damage, "a")


def test_the_generator_of_a_fit(tmp_path):
    saved = RandomState(3)
    expected = RandomState(3).randint(1000, size=3).tolist()
    given = RandomState(9)
    assert begin_generator(given, saved) is given
    for generator in (given, begin_generator(None, saved), begin_generator(3, None)):
        assert generator.randint(1000, size=3).tolist() == expected
    assert begin_generator(None, None) is np.random.mtrand._rand


def test_another_kind_of_file(tmp_path):
    write(tmp_path / "a", "estimator", {})
    with pytest.raises(ValueError, match="must be a file of kind 'checkpoint'"):
        read_checkpoint(tmp_path / "a", "TemperedLDA")
