"""Texts as spreadsheets, editors and scanners leave them."""

import pytest

from annealvi.cli.inputs import read_text
from tests.asserts import refused
from tests.cli.test_inputs import read

QUESTION = "What did you like, or not like, and why?"
TABLES = {
    f"id;{QUESTION};stars\n" + "1;the sea, the sun;4\n2;the room, the noise;5\n" * 3: QUESTION,
    "id\ttext, or not\tn\n1\tthe sea, the sun\t4\n2\tthe room\t5\n": "text, or not",
    'id,"a; b; c",n\n1,the sea,4\n2,the room,5\n': "a; b; c",
    "text\nthe sea, the sun; the beach\nthe room, the noise\n": "text",
    'text\n"the sea, ""the sun"""\nthe | room\n': "text",
    "a|text\n1|the sea; the sun, the\n2|the room\n": "text",
    "\ufefftext;n\nmañana, sí;1\nнебо, море;2\n": "text",
    'text;n\n"two\nlines; and more";1\nthe room;2\n': "text",
}


@pytest.mark.parametrize("content", TABLES)
def test_separators_follow_from_the_rows(content, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    texts = read(path, "--text", TABLES[content]).texts
    assert len(texts) >= 2 and all(len(text) > 5 for text in texts)


def test_a_row_with_more_columns_than_the_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,text\n1,sea\n2,the room, the noise\n" + "3,sky\n" * 5)
    refused("line 3 has 3 columns, but the header has 2 columns.* quotation marks", read, path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
def test_blank_lines_are_documents_without_words(name, end, tmp_path):
    path = tmp_path / name
    lines = ["sea warm", "", "hotel noisy", "", "warm sea"]
    path.write_bytes(end.join([*(["answer"] if name == "t.csv" else []), *lines, ""]).encode())
    assert [text.strip() for text in read(path).texts] == lines


BINARY = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)),
    "zip": b"PK\x03\x04\x14\0\0\0\x08\0abc",
    "pdf": b"%PDF-1.4\n1 0 obj\0\x01\xff stream",
    "utf-16": "sterne und planeten".encode("utf-16-le"),
    "utf-8 with zeros": b"stars\0planets",
}


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("name", ["scan.txt", "scan.csv", "scan.tsv"])
def test_what_is_no_text(kind, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(BINARY[kind])
    refused("is not a text file in the encoding", read, path, "--encoding", "latin-1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("stars and planets")
    (tmp_path / "folder" / name).write_bytes(BINARY[kind])
    refused(f"{name}.* use --files", read, tmp_path / "folder", "--encoding", "latin-1")


def test_a_state_of_mallet_is_no_text(tmp_path):
    path = tmp_path / "state.txt"
    path.write_text(
        "#doc source pos typeindex type topic\n#alpha : 0.5\n#beta : 0.01\n0 a 0 0 star 0\n"
    )
    refused("is a state file of MALLET, not a text. .*read_mallet_state", read_text, path, "utf-8")
