"""UCI's bag of words and LDA-C."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.corpus import read_lda_c, read_uci

COUNTS = np.array([[4, 0, 1, 0], [0, 0, 0, 0], [0, 2.5, 0, 0]])
UCI = "3\n4\n3\n1 1 4\n1 3 1\n3 2 2.5\n"
LDA_C = "2 0:4 2:1\n0\n1 1:2.5\n"


def written(tmp_path, text, packed=False):
    path = tmp_path / ("corpus.gz" if packed else "corpus.txt")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("read", "text"), [(read_uci, UCI), (read_lda_c, LDA_C)])
def test_counts_and_words(tmp_path, read, text, packed):
    (tmp_path / "vocab.txt").write_text("stjärna\ngene\nproof\nfield\n", encoding="utf-8")
    corpus = read(written(tmp_path, text, packed), tmp_path / "vocab.txt")
    assert_array_equal(corpus.data.toarray(), COUNTS)
    assert corpus.feature_names.tolist() == ["stjärna", "gene", "proof", "field"]
    alone = read(written(tmp_path, text))
    assert alone.feature_names is None and alone.data.dtype == np.float64
    n_words = 4 if read is read_uci else 3  # LDA-C does not say how many there are
    assert_array_equal(alone.data.toarray(), COUNTS[:, :n_words])


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_uci, "2\n3\n", "cannot be read as UCI bag of words"),
        (read_uci, "1\n1\n1\n1 2 1\n", "Words must be numbered from 1 to 1. Got 2"),
        (read_uci, "1\n1\n1\n0 1 1\n", "Documents must be numbered from 1 to 1. Got 0"),
        (read_uci, "1\n1\n2\n1 1 1\n", "must have 2 lines .*Got 1 lines of 3 numbers"),
        (read_uci, "1\n1\n1\n", "must have 1 lines"),
        (read_uci, "1\n1\n1\n1 1\n", "Got 1 lines of 2 numbers"),
        (read_uci, "1\n1\n1\n1 1 word\n", "could not convert string 'word'"),
        (read_uci, "-1\n1\n0\n", "cannot be read as UCI bag of words"),
        (read_uci, "1\n1\n1\n1 1 -2\n", "must be finite and not negative. Got -2"),
        (read_uci, "1\n1\n1\n1 1 nan\n", "must be finite and not negative. Got nan"),
        (read_uci, "", "cannot be read as UCI bag of words"),
        (read_lda_c, "2 0:4\n", "document 0 says that it has 2 different words. It has 1"),
        (read_lda_c, "1 word:4\n", "cannot be read as LDA-C counts"),
        (read_lda_c, "1 0:-4\n", "must be finite and not negative. Got -4"),
    ],
)
def test_wrong_files(tmp_path, read, text, message):
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert repr(str(path)) in str(caught.value)


def test_no_line_of_a_file_of_uci_can_crash_its_reader(tmp_path):
    """SciPy's reader of such lines, which once stood here, reads past them and then crashes."""
    path = written(
        tmp_path, "3\n4\n4\n1 1 4\n1 3 1\n2 2 5\n3 4 1 1 1 4\n1 3 1\n2 2 5\n3 4 1\n" * 50
    )
    with pytest.raises(ValueError, match="cannot be read as UCI bag of words"):
        read_uci(path)


def test_a_corpus_without_words(tmp_path):
    assert read_uci(written(tmp_path, "2\n3\n0\n")).data.toarray().tolist() == [[0] * 3] * 2


def test_a_damaged_archive_and_a_short_vocabulary(tmp_path):
    path = written(tmp_path, UCI, packed=True)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(ValueError, match="cannot be read as UCI"):
        read_uci(path)
    short = written(tmp_path, "star\n")
    with pytest.raises(ValueError, match=r"a vocabulary: it has 1 words, and the counts have 4"):
        read_uci(written(tmp_path, UCI, packed=True), short)
    with pytest.raises(FileNotFoundError):
        read_lda_c(tmp_path / "missing.dat")
