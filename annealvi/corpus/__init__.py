"""Word counts and topics of other programs: files of UCI, LDA-C and MALLET, gensim's corpora."""

from annealvi.corpus.files import read_lda_c, read_uci
from annealvi.corpus.gensim import from_gensim, to_gensim
from annealvi.corpus.mallet import (
    read_mallet_doc_topics,
    read_mallet_state,
    read_mallet_topic_keys,
    read_mallet_weights,
)

__all__ = [
    "from_gensim",
    "read_lda_c",
    "read_mallet_doc_topics",
    "read_mallet_state",
    "read_mallet_topic_keys",
    "read_mallet_weights",
    "read_uci",
    "to_gensim",
]
