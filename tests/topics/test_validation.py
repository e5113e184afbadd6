"""Sheets of questions for people: who knows the truth is scored 1, who guesses is scored chance."""

import gzip

import numpy as np
import pandas as pd
import pytest

from annealvi.exceptions import BadParameter
from annealvi.topics import describe
from annealvi.topics.validation import (
    document_sample,
    score_answers,
    topic_intrusion,
    word_intrusion,
)
from tests.asserts import refused
from tests.marks import cases
from tests.topics.models import COUNTS, SHARES, Given

K, V, D = 8, 200, 400
WORDS = np.array([f"word{number}" for number in range(V)])


@pytest.fixture(scope="module")
def summary():
    rng = np.random.RandomState(0)
    topics, shares = rng.dirichlet(np.full(V, 0.1), K), rng.dirichlet(np.full(K, 0.3), D)
    counts = np.array([rng.multinomial(30, row @ topics) for row in shares])
    counts[0] = 0
    texts = [f"text {d} " + " ".join(WORDS.repeat(row)) for d, row in enumerate(counts)]
    return describe(Given(topics, shares), counts, WORDS, texts=texts)


def filled(sheet, answers):
    return sheet.questions.assign(answer=answers)


def options(sheet):
    return sheet.questions.filter(like="option_").to_numpy()


def test_an_intruder_is_none_of_the_topic_and_one_of_another(summary):
    sheet = word_intrusion(summary, 3)
    assert sheet.key.topic.value_counts().tolist() == [3] * K
    tops = [summary.words(k, 5) for k in range(K)]
    shown = {k: set() for k in range(K)}
    for words, row in zip(options(sheet), sheet.key.itertuples(), strict=True):
        assert words[row.answer - 1] == row.intruder
        own = set(words) - {row.intruder}
        assert own < set(summary.words(row.topic, 15)) and len(own) == 5
        assert row.intruder not in summary.words(row.topic, 15)
        assert any(row.intruder in top for k, top in enumerate(tops) if k != row.topic)
        p = summary.topics[row.topic]
        assert p[row.intruder == WORDS] < p[np.isin(WORDS, list(own))].min()
        shown[row.topic] |= own
    assert [shown[k] for k in range(K)] == [set(summary.words(k, 15)) for k in range(K)]
    assert len(set(sheet.key.answer)) == 6  # it is not always in one place


def test_the_topics_of_a_document_and_one_that_it_has_not(summary):
    sheet = topic_intrusion(summary, 4, n_words=6, n_characters=60)
    assert sheet.key.topic.value_counts().tolist() == [4] * K
    words = [", ".join(summary.words(k, 6)) for k in range(K)]
    for row, hidden in zip(sheet.questions.itertuples(), sheet.key.itertuples(), strict=True):
        shares = summary.shares[hidden.document]
        assert shares.argmax() == hidden.topic
        there = [words.index(option) for option in row[2:6]]
        assert there[hidden.answer - 1] == hidden.intruder
        largest = np.argsort(-shares)
        assert set(there) - {hidden.intruder} == set(largest[:3]) and hidden.intruder in largest[5:]
        assert row.text.startswith(f"text {hidden.document} word") and len(row.text) <= 64
        assert row.text.endswith(" ...") and row.text[:-4] in summary.texts[hidden.document]
    assert 0 not in set(sheet.key.document)  # it has no words


def test_samples_have_documents_of_each_stratum(summary):
    sheet = document_sample(summary, 3, bounds=(0.2, 0.6))
    assert (sheet.key.groupby(["topic", "stratum"]).size() == 3).all()
    bounds = sheet.key.stratum.str.split(" to ", expand=True).astype(float)
    assert (sheet.key.share >= bounds[0]).all() and (sheet.key.share < bounds[1]).all()
    expected = [summary.shares[row.document, row.topic] for row in sheet.key.itertuples()]
    assert sheet.key.share.tolist() == expected
    assert sheet.questions.columns.tolist() == ["text", "words", "answer"]
    answers = (sheet.key.stratum == "0.6 to 1").astype(int)
    table = score_answers(sheet.key, filled(sheet, answers)).table
    assert table.yes.tolist() == [0, 0, 1] * K and (table.answers == 3).all()


@pytest.mark.parametrize("make", [word_intrusion, topic_intrusion])
def test_who_knows_the_truth_is_scored_one(summary, make, tmp_path):
    sheet = make(summary)
    sheet.key.to_csv(tmp_path / "key.csv")
    filled(sheet, sheet.key.answer).to_csv(tmp_path / "ann.csv")
    found = score_answers(tmp_path / "key.csv", str(tmp_path / "ann.csv"))
    assert found.overall == 1 and found.n_coders == 1 and found.alpha is None
    assert found.table.index.tolist() == list(range(K)) and (found.table.precision == 1).all()
    assert found.table.label.tolist() == list(summary.labels)
    assert (found.table.high == 1).all() and (found.table.low < 0.4).all()  # of two answers


@pytest.mark.parametrize("make, chance", [(word_intrusion, 1 / 6), (topic_intrusion, 1 / 4)])
def test_who_guesses_is_scored_chance(summary, make, chance):
    pytest.importorskip("krippendorff")
    sheet, rng = make(summary), np.random.RandomState(0)
    n = options(sheet).shape[1]
    tables = [filled(sheet, rng.randint(1, n + 1, len(sheet.key))) for _ in range(60)]
    found = score_answers(sheet.key, tables)
    n_answers = 60 * len(sheet.key)
    assert abs(found.overall - chance) < 3 * np.sqrt(chance * (1 - chance) / n_answers)
    assert found.table.chance.to_numpy() == pytest.approx(chance)
    assert found.table.answers.sum() == n_answers and abs(found.alpha) < 0.02
    assert ((found.table.low < chance) & (chance < found.table.high)).mean() >= 0.75


def test_agreement_is_that_of_the_library(summary):
    krippendorff = pytest.importorskip("krippendorff")
    sheet = word_intrusion(summary)
    second = sheet.key.answer.astype(float)
    second.iloc[:5], second.iloc[5] = 1, np.nan
    tables = [filled(sheet, sheet.key.answer), filled(sheet, second).sample(frac=1)]
    found = score_answers(sheet.key, tables)
    answers = np.array([sheet.key.answer, second])
    expected = krippendorff.alpha(answers, level_of_measurement="nominal")
    assert found.alpha == pytest.approx(expected) and 0.5 < found.alpha < 1
    same = score_answers(sheet.key, [sheet.key, filled(sheet, sheet.key.answer)])
    assert same.alpha == 1 and same.n_coders == 2


def test_missing_answers_and_texts_as_from_a_csv_file(summary):
    sheet = word_intrusion(summary)
    answers = sheet.key.answer.astype(str)
    answers[sheet.key.topic == 3] = " "
    found = score_answers(sheet.key, filled(sheet, answers).iloc[::-1]).table
    assert found.answers[3] == 0 and np.isnan(found.precision[3]) and np.isnan(found.low[3])
    assert (found.precision.drop(3) == 1).all()


def saved(sheet, path, separator, encoding, head="", tail=""):
    text = sheet.to_csv(sep=separator, lineterminator="\r\n")
    path.write_bytes(f"{head}{text}{tail}".encode(encoding))
    return path


@cases(
    "separator, encoding, head, tail",
    (";", "cp1252", "", ";;;\r\n;;;\r\n"),
    (";", "utf-8-sig", "sep=;\r\n", ""),
    ("\t", "utf-16", "", ""),
    (",", "mac-roman", "", ",,,\r\n"),
    (";", "utf-8", '"sep=;"\r\n;;;\r\n', ""),
)
def test_sheets_that_other_programs_saved(summary, tmp_path, separator, encoding, head, tail):
    sheet = document_sample(summary, 1)
    texts = [f"œuvre; d'été, {number}" for number in range(len(sheet.questions))]
    filled = sheet.questions.assign(text=texts, answer=sheet.key["share"].gt(0.5).astype(int))
    path = saved(filled, tmp_path / "coder.csv", separator, encoding, head, tail)
    pd.testing.assert_frame_equal(
        score_answers(sheet.key, path).table, score_answers(sheet.key, filled).table
    )


def test_a_sheet_of_a_workbook(summary, tmp_path):
    pytest.importorskip("openpyxl")
    sheet = word_intrusion(summary)
    right = filled(sheet, sheet.key.answer).rename(columns={"answer": "answer "})
    with pd.ExcelWriter(tmp_path / "coder.xlsx") as file:
        pd.DataFrame({"note": ["for coders"]}).to_excel(file, sheet_name="Instructions")
        right.to_excel(file, sheet_name="Questions", startrow=1)
    assert score_answers(sheet.key, tmp_path / "coder.xlsx").overall == 1


def test_rows_longer_than_the_header_and_compressed_sheets(summary, tmp_path):
    sheet = word_intrusion(summary)
    head, *rows = filled(sheet, sheet.key.answer).to_csv(sep=";", lineterminator="\n").split()
    path = tmp_path / "coder.csv.gz"
    for form in ("{};", "{};;", "name;{}"):  # the latter as R writes it
        lines = [head, *map(form.format, rows)]
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
        assert score_answers(sheet.key, path).overall == 1
    path.write_text("\n".join([head, *rows, "1;a;b;c;d;e;f;g;h;i"]))
    refused("coder.csv.gz' cannot be read as a table: .* as many", score_answers, sheet.key, path)


@cases("remark", "Question 5 is unclear;;;;;;;", ";Question 5 is unclear;;;;;;")
def test_a_remark_below_the_questions(summary, tmp_path, remark):
    sheet = word_intrusion(summary)
    table = filled(sheet, sheet.key.answer)
    path = saved(table, tmp_path / "coder.csv", ";", "utf-8", tail=remark + "\r\n")
    with pytest.warns(UserWarning, match="coder.csv' has 1 rows without .*'Question 5 is unclear'"):
        assert score_answers(sheet.key, path).overall == 1


@cases("content", *(b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
def test_a_workbook_of_another_program(summary, tmp_path, content):
    pytest.importorskip("openpyxl")
    path = tmp_path / "coder.numbers"
    path.write_bytes(content)
    message = "coder.numbers' cannot be read as a workbook. Save it as .xlsx or 'CSV UTF-8'"
    refused(message, score_answers, word_intrusion(summary).key, path)


@cases("separator, encoding", ("|", "utf-8"), (";", "utf-32"), (";", "utf-16-le"))
def test_what_a_sheet_must_be_saved_as_is_told(summary, tmp_path, separator, encoding):
    sheet = document_sample(summary, 1)
    path = saved(sheet.questions.assign(answer=1), tmp_path / "coder.csv", separator, encoding)
    advice = r"(?i)(semicolons or tabs;|UTF-8\.) save it as 'CSV UTF-8'"
    with pytest.raises(ValueError, match=advice):
        score_answers(sheet.key, path)
    path.write_text("")
    with pytest.raises(ValueError, match=r"coder.csv' is empty"):
        score_answers(sheet.key, path)


def test_a_key_in_another_encoding(summary, tmp_path):
    sheet = document_sample(summary, 1)
    key = sheet.key.assign(label="étoile")
    path = saved(key, tmp_path / "key.csv", ";", "cp1252")
    filled = sheet.questions.assign(answer=1)
    with pytest.warns(UserWarning, match="not in the encoding UTF-8. It is read as cp1252"):
        assert set(score_answers(path, filled).table["label"]) == {"étoile"}


@pytest.mark.parametrize("make", [word_intrusion, topic_intrusion, document_sample])
def test_the_same_seed_makes_the_same_sheet(summary, make):
    one, two, other = make(summary), make(summary, random_state=0), make(summary, random_state=1)
    pd.testing.assert_frame_equal(one.questions, two.questions)
    pd.testing.assert_frame_equal(one.key, two.key)
    assert not one.questions.equals(other.questions)
    assert one.questions.index.tolist() == list(range(1, len(one.key) + 1))
    assert (one.questions.answer == "").all()
    assert not set(one.questions.columns) & {"topic", "label", "share", "intruder"}


@cases(
    "change, message",
    (lambda t: t.assign(answer=7), r"answers\[1\]'.*from 1 to 6, or empty. Got 7"),
    (lambda t: t.assign(answer=1.5), "an integer from 1 to 6"),
    (lambda t: t.assign(answer="word3"), "Got 'word3'"),
    (lambda t: t.assign(answer=""), "tables with at least one answer"),
    (lambda t: t.drop(columns="answer"), "Got 'a table without answer'"),
    (lambda t: pd.concat([t, t[:1]]), "question 1 twice"),
    (lambda t: t.rename(index={1: 99}), "Got 'question 99'"),
    (lambda t: t.to_dict(), "a DataFrame or the path"),
    (lambda t: [], "a list of tables"),
)
def test_bad_answers(summary, change, message):
    sheet = word_intrusion(summary)
    with pytest.raises(BadParameter, match=message):
        score_answers(sheet.key, change(filled(sheet, sheet.key.answer)))


def test_bad_keys_and_sheets(summary):
    sheet = word_intrusion(summary)
    with pytest.raises(BadParameter, match=r"'key'.*Got 'a table without label, topic'"):
        score_answers(sheet.questions, sheet.key)
    few = describe(Given(), COUNTS)
    refused("n_questions", word_intrusion, few, 2)
    refused("with texts", document_sample, few)
    three = describe(Given(), COUNTS, texts=["a"] * len(SHARES))
    refused("at least 4 topics", topic_intrusion, three)
    alike = describe(Given(np.ones((2, 8)), SHARES[:, :2] + SHARES[:, 2:] / 2), COUNTS)
    refused("differ from those of topic 0", word_intrusion, alike, 1)
    for bounds in ([0.5, 0.2], [0, 0.5], ["a"], [1.5]):
        refused("bounds", document_sample, summary, bounds=bounds)
    refused("the result of describe", word_intrusion, Given())
