"""Files of a TopicModel that are damaged or forged."""

import numpy as np
import pytest

from annealvi import TemperedLDA, TopicModel, storage
from tests.asserts import refused
from tests.files.mutations import changed, outcomes
from tests.marks import cases
from tests.topics.corpus import make_texts

TEXTS = make_texts(20)
NO_COUNTS = "its vectorizer cannot count words"


@pytest.fixture(scope="module")
def tree():
    lda = TemperedLDA(max_iter=2)
    model = TopicModel(3, lda=lda, seed_words={"sea": ["ship"]}, random_state=0).fit(TEXTS)
    model.set_labels({1: "food", 2: "the sky"})
    return storage.tree_of(model)


@cases(
    "way, value, message",
    ("parameters.n_topics", 0, "'n_topics' parameter of TopicModel must be an int"),
    ("parameters.lda.parameters", {"a": 1}, "must be a parameter of TemperedLDA"),
    ("state.vocabulary.words", np.array(["a", "b"]), "must be 24 different words"),
    ("state.vocabulary.words", np.array(["a"] * 24), "must be 24 different words"),
    ("state.vocabulary.limits.min_df", -1, "must be an int in the range"),
    ("state.vocabulary.dropped.min_df", [1], "must be a str"),
    ("state.vectorizer.type", "Popen", "must be one of"),
    ("state.vectorizer.type", "TemperedLDA", f"{NO_COUNTS}|must be a parameter"),
    ("state.vectorizer.parameters.ngram_range", 3, f"{NO_COUNTS}: .*ngram"),
    ("state.vectorizer.parameters.token_pattern", "(", NO_COUNTS),
    ("state.vectorizer.parameters.input", "filename", "with input='content'. Got 'filename'"),
    ("state.lda.estimator", "TopicModel", "must be one of"),
    ("state.seed_topics", [3], "must be topics, one for each name"),
    ("state.seed_topics", [], "must be topics, one for each name"),
    ("state.labels", ["a"], "must be labels of topics"),
    ("state.labelled", [3], "must be labels of topics"),
    ("state.labels", ["a", "a"], "must be labels of topics"),
)
def test_forged_values(tree, way, value, message):
    refused(message, storage.estimator_of, changed(tree, way, value))


def test_a_file_without_words_that_were_left_out(tree):
    model = storage.estimator_of(changed(tree, "state.vocabulary.dropped", {}))
    assert model.vocabulary_note_.startswith("24 words") and not model.dropped_words_


def test_arrays_without_elements_take_no_memory(tree):
    tree = changed(tree, "parameters.stop_words", np.empty((2**40, 0), dtype=np.int64))
    with pytest.raises(ValueError, match="'stop_words' parameter must be 'english'"):
        storage.estimator_of(changed(tree, "state.vectorizer", None))


@pytest.fixture(scope="module")
def chosen():
    return storage.tree_of(TopicModel("auto", lda=TemperedLDA(max_iter=2)).fit(make_texts(40)))


@cases(
    "way, value, message",
    ("choice", 5, "must be a dict"),
    ("choice.n_topics", np.array([5.0, 2.0]), "must be an array of int64"),
    ("choice.measures", {}, "held_out_log_likelihood' is missing"),
    ("choice.recommended", 0, "must be an int in the range"),
    ("choice.criterion", "best", "must be one of"),
    ("choice.rule", None, "must be a str"),
    *(("topic_similarity", np.ones(shape), "must be") for shape in ((2,), (2, 1))),
)
def test_forged_choices(chosen, way, value, message):
    forged = changed(chosen, f"state.{way}", value)
    refused(rf"'state\.{way}.*{message}", storage.estimator_of, forged)


def use(model):
    model.top_words(), model.vocabulary_note_, model.get_params()
    return [model.transform(TEXTS[:3])]


def test_forged_trees(tree):
    assert {"refused", "sound"} <= outcomes(tree, 60, storage.estimator_of, use).keys()


def test_a_vectorizer_that_opens_files_is_not_written(tmp_path):
    for number, text in enumerate(TEXTS):
        (tmp_path / f"{number}.txt").write_text(text)
    names = [str(path) for path in sorted(tmp_path.iterdir())]
    model = TopicModel(3, lda=TemperedLDA(max_iter=2)).set_params(vectorizer__input="filename")
    with pytest.raises(
        TypeError, match=r"A model whose vectorizer has input='filename' cannot be saved"
    ):
        storage.save(model.fit(names), tmp_path / "model")
    assert not (tmp_path / "model").exists()
