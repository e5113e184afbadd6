"""Texts in files: what is read, and what is said of files that cannot be."""

import codecs
import gzip

import pytest

from annealvi.cli.inputs import Roles, read_corpus

#: The same in every process that collects the tests.
CUT_OFF = gzip.compress(b"text\n" * 999, mtime=0)[:30]


def read(path, **roles):
    options = {name: roles.pop(name) for name in ("format", "encoding", "files") if name in roles}
    return read_corpus(str(path), Roles(**roles), **options)


@pytest.fixture
def write(tmp_path):
    def made(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return made


def test_columns(table, jsonl, rows):
    for path in (table, jsonl):
        corpus = read(path, time="date", group="kind", name="id")
        assert corpus.texts == [row["text"] for row in rows]
        assert corpus.titles == [row["title"] for row in rows]
        assert corpus.times == [row["date"] for row in rows]
        assert corpus.groups == [row["kind"] for row in rows]
        assert corpus.names == [row["id"] for row in rows]


@pytest.mark.parametrize("pack", [True, False])
def test_a_folder(folder, rows, write, pack):
    (folder / ".hidden").write_bytes(b"\xff")
    if pack:
        (folder / "more.txt.gz").write_bytes(gzip.compress(b"packed"))
    corpus = read(folder, group="folder", name="name", files="*.txt*")
    named = {row["kind"] + "/" + row["id"] + ".txt": row for row in rows}
    expected = [(name, row["text"], row["kind"]) for name, row in named.items()]
    if pack:
        expected.append(("more.txt.gz", "packed", "."))
    found = zip(corpus.names, corpus.texts, corpus.groups, strict=True)
    assert list(found) == sorted(expected)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators(write, separator):
    lines = [("text", "year"), ("a b", "1999"), ("c d", "2000")]
    path = write("a.csv", "\r\n".join(separator.join(line) for line in lines))
    assert read(path, time="year").times == ["1999", "2000"]


def test_a_text_over_several_lines(write):
    path = write("a.csv", 'text,n\n"one\ntwo, ""three""",1\n\nfour,2\n')
    assert read(path).texts == ['one\ntwo, "three"', "four"]


def test_a_long_text(write):
    path = write("a.csv", "text,n\n" + "word " * 50_000 + ",1\n")
    assert len(read(path).texts[0]) == 250_000


def test_encodings(write):
    text = "Käse\nÖl\n"
    assert read(write("a.txt", codecs.BOM_UTF8 + text.encode())).texts == ["Käse", "Öl"]
    for encoding in ("latin-1", "utf-16"):
        path = write("b.txt", text.encode(encoding))
        with pytest.raises(ValueError, match=r"b.txt' is not utf-8 \(byte 0x.. at position \d"):
            read(path)
        assert read(path, encoding=encoding).texts == ["Käse", "Öl"]
    with pytest.raises(ValueError, match="for example --encoding utf-16"):
        read(path)
    with pytest.raises(ValueError, match="there is no encoding 'klingon'"):
        read(path, encoding="klingon")


def test_missing_texts(write):
    corpus = read(write("a.jsonl", '{"text": "a"}\n{"text": null}\n{"n": 3, "text": ""}\n{}\n'))
    assert corpus.texts == ["a", "", "", ""]
    assert corpus.note == "3 of them have no text"


def test_missing_times_and_classes(write):
    path = write("a.csv", "text,year,kind\na,,\nb,2000,x\n")
    corpus = read(path, time="year", group="kind")
    assert corpus.times == [None, "2000"] and corpus.groups == [None, "x"]


def test_parquet(tmp_path, rows):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    parquet.write_table(arrow.table(columns | {"year": [2000] * len(rows)}), path)
    corpus = read(path, time="year", group="kind")
    assert corpus.texts == columns["text"] and corpus.times == [2000] * len(rows)
    with pytest.raises(ValueError, match=r"no column 'x' for --text. Its columns are: id, title"):
        read(path, text=("x",))
    with pytest.raises(ValueError, match=r"row 0: 'year' must be a text. Got 2000"):
        read(path, text=("year",))


def test_a_damaged_parquet_file(write):
    pytest.importorskip("pyarrow.parquet")
    with pytest.raises(ValueError, match=r"a.parquet' is no .parquet file, or it is damaged"):
        read(write("a.parquet", b"abc"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", "", "has no documents"),
        ("a.txt", "\n\n", "has no documents"),
        ("a.csv", "", "is empty: its first line must name the columns"),
        ("a.csv", "text,n\n", "has no documents"),
        ("a.csv", "title,body\na,b\n", "no column 'text'. Its columns are: title, body"),
        ("a.csv", "text,n\na,1,2\n", "line 2: 3 values for 2 columns"),
        ("a.csv", "text,n\n ,1\n,2\n", "has no text in its column 'text'"),
        ("a.jsonl", '{"text": "a"}\n{"text": 3}\n', "line 2: 'text' must be a text. Got 3"),
        ("a.jsonl", '{"text": "a"}\n{"text":\n', r"line 2: no JSON \(Expecting value"),
        ("a.jsonl", '["a"]\n', "line 1: each line must be a JSON object"),
        ("a.jsonl", "[" * 100_000 + "\n", "line 1: no JSON"),
        ("a.xyz", "text", "does not tell its format: choose one by --format {csv,"),
        ("a.csv.gz", b"text", "is no .gz file, or it is damaged"),
        (
            "a.csv.gz",
            gzip.compress(b"text\n" * 999, mtime=0)[:30],
            "is no .gz file, or it is damaged",
        ),
    ],
)
def test_files_that_cannot_be_read(write, name, content, words):
    with pytest.raises(ValueError, match=words):
        read(write(name, content))


def test_columns_that_are_not_there(jsonl):
    listed = "has no column 'x' for {}. Its columns are: id, title, text, date, kind."
    for role, option in {"title": "--title", "time": "--time", "group": "--class"}.items():
        with pytest.raises(ValueError, match=listed.format(option)):
            read(jsonl, **{role: "x"})


def test_values_of_the_wrong_kind(write):
    path = write("a.jsonl", '{"text": "a", "kind": ["x"]}\n')
    with pytest.raises(ValueError, match="line 1: 'kind' must be a text or a number"):
        read(path, group="kind")


def test_a_folder_without_texts(tmp_path):
    with pytest.raises(ValueError, match="there are no files in it"):
        read(tmp_path)
    (tmp_path / "a").write_bytes(b"a\0b")
    with pytest.raises(ValueError, match="a' is no text: it has zero bytes"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"no files named \*.md in it"):
        read(tmp_path, files="*.md")
    (tmp_path / "a").write_bytes(b"\xff\x00")
    with pytest.raises(ValueError, match=r"a' is not utf-8 .*, or leave it out by --files"):
        read(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file or folder '.*nothing'"):
        read(tmp_path / "nothing")


def test_another_format_than_the_name(write):
    path = write("a.data", "text\na\nb\n")
    assert read(path, format="csv").texts == ["a", "b"]
    assert read(path, format="lines").texts == ["text", "a", "b"]
