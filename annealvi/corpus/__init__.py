"""Readers of word counts from other programs (UCI, LDA-C, Matrix Market, MALLET, AnnData, gensim),
readers of texts in blocks, and corpora on disk that are larger than memory."""

from annealvi.corpus.cells import open_corpus, read_cells
from annealvi.corpus.files import read_lda_c, read_uci
from annealvi.corpus.gensim import from_gensim, to_gensim
from annealvi.corpus.mallet import (
    read_mallet_doc_topics,
    read_mallet_state,
    read_mallet_topic_keys,
    read_mallet_weights,
)
from annealvi.corpus.mapped import write_corpus
from annealvi.corpus.streams import (
    stream_gensim,
    stream_lda_c,
    stream_matrix_market,
    stream_texts,
    stream_uci,
)

__all__ = [
    "from_gensim",
    "open_corpus",
    "read_cells",
    "read_lda_c",
    "read_mallet_doc_topics",
    "read_mallet_state",
    "read_mallet_topic_keys",
    "read_mallet_weights",
    "read_uci",
    "stream_gensim",
    "stream_lda_c",
    "stream_matrix_market",
    "stream_texts",
    "stream_uci",
    "to_gensim",
    "write_corpus",
]
