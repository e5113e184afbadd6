"""Texts and counts in files: what is read, and what is said of files that cannot be."""

import bz2
import codecs
import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

import annealvi
from annealvi import TopicModel
from annealvi.cli.commands import make_parser
from annealvi.cli.inputs import read_corpus, read_text
from annealvi.topics import document_sample, word_intrusion, write_table
from tests.asserts import refused
from tests.corpus.test_files import lda_c, uci
from tests.marks import cases

pytest.importorskip("pandas")


def read(path, *options):
    return read_corpus(make_parser().parse_args(["fit", str(path), *map(str, options)]))


@pytest.fixture
def write(tmp_path):
    def made(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return made


def test_columns(table, jsonl, rows):
    for path in (table, jsonl):
        corpus = read(path, "--time", "date", "--group", "kind")
        assert corpus.texts == [row["text"] for row in rows]
        names = {"title": "title", "time": "date", "group": "kind"}
        assert corpus.columns == {name: [row[own] for row in rows] for name, own in names.items()}


def test_a_folder(folder, rows):
    (folder / ".hidden").write_bytes(b"\xff")
    (folder / "more.txt.gz").write_bytes(gzip.compress(b"packed"))
    corpus = read(folder, "--group", "folder", "--title", "name", "--files", "*.txt*")
    found = zip(corpus.columns["title"], corpus.texts, corpus.columns["group"], strict=True)
    expected = [(f"{row['kind']}/{row['id']}.txt", row["text"], row["kind"]) for row in rows]
    assert list(found) == sorted([*expected, ("more.txt.gz", "packed", ".")])


def test_outputs_are_no_documents(call, folder):
    pytest.importorskip("plotly")
    outputs = ("--report", folder / "r.html", "--model", folder / "m.safetensors")
    first = call("fit", folder, "--n-topics", 3, *outputs)
    call("label", folder / "m.safetensors", folder, "--output", folder / "labels.csv")
    model = folder / "m.safetensors"
    printed = {
        "topics": first.out,
        "log": first.err,
        "compare.txt": call("compare", model, model).out,
        "show.txt": call("show", model).out,
        "topic.txt": call("show", model, "--topic", 1).out,
        "labels.log": call("label", model, folder).err,
        "excel.csv": (folder / "labels.csv").read_text(encoding="utf-8").replace(",", ";"),
    }
    for name, text in printed.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "utf-16.txt").write_text(printed["topic.txt"], encoding="utf-16")
    paper = folder / "paper"
    paper.mkdir()
    for name in ("methods.txt", "topics.tex", "trust.tex", "topics.pdf"):
        (paper / name).write_bytes(b"\0")
    again = call("fit", folder, "--n-topics", 3, *outputs)
    assert again.status == 0 and again.out == first.out
    written = ("r.html", "m.safetensors", "labels.csv", "paper/topics.pdf", "utf-16.txt", *printed)
    for name in written:
        assert name in again.err.split("because annealvi wrote them: ")[1]
    assert "read 36 documents" in again.err


def test_what_python_writes_is_no_document(folder, rows):
    texts = [row["text"] for row in rows]
    summary = TopicModel(3, random_state=0).fit(texts).describe(texts)
    tables = {
        "topics": summary.table,
        "documents": summary.document_table,
        "trust": summary.trust,
        "kinds": summary.by_group([row["kind"] for row in rows]),
        "years": summary.over_time([row["date"] for row in rows]),
    }
    for name, table in tables.items():
        write_table(table, folder / f"{name}.csv")
        write_table(table, folder / f"{name}.tex")
    for sheet in (word_intrusion(summary), document_sample(summary)):
        for table in sheet:
            table.to_csv(folder / f"{'_'.join(table.columns)}.csv", sep=";")
    summary.write_mallet_state(folder / "state.gz")
    (folder / "paragraph.txt").write_text(summary.methods(), encoding="utf-8")
    (folder / "prompt.txt").write_text(summary.prompt(), encoding="utf-8")
    (folder / "prose.txt").write_text("topic, label, share and n_documents\nof a group", "utf-8")
    with pytest.warns(UserWarning, match="because annealvi wrote them"):
        assert len(read(folder)) == len(rows) + 1


def test_a_damaged_file_in_a_folder(write, tmp_path):
    write("a.txt", "stars")
    write("damaged.gz", gzip.compress(b"stars" * 100)[:-9])
    refused("damaged.gz' cannot be read as text: .* 1 of 2 files", read, tmp_path)


def test_the_file_of_the_output_is_no_document(folder):
    (folder / "of.txt").write_text("star moon", encoding="utf-8")
    command = [sys.executable, "-m", "annealvi", "fit", ".", "--n-topics", "3", "--quiet"]
    with (folder / "topics.txt").open("w") as output, (folder / "log.txt").open("w") as log:
        subprocess.run([*command, "--model", "../m"], cwd=folder, stdout=output, stderr=log)
    assert annealvi.load(folder.parent / "m").vocabulary_.n_documents == 37


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
def test_separators_follow_from_the_rows(write, content):
    texts = read(write("t.csv", content), "--text", TABLES[content]).texts
    assert len(texts) >= 2 and all(len(text) > 5 for text in texts)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["t.txt", "t.csv"])
def test_blank_lines_are_documents_without_words(write, name, end):
    lines = ["sea warm", "", "hotel noisy", "", "warm sea"]
    path = write(name, end.join([*["answer"] * (name == "t.csv"), *lines, ""]))
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
def test_what_is_no_text(write, kind, name, tmp_path):
    path = write(name, BINARY[kind])
    refused("is not a text file in the encoding", read, path, "--encoding", "latin-1")
    write("a.txt", "stars and planets")
    refused(f"{name}.* use --files", read, tmp_path, "--encoding", "latin-1")


def test_a_state_of_mallet_is_no_text(write):
    state = "#doc source pos typeindex type topic\n#alpha : 0.5\n#beta : 0.01\n0 a 0 0 star 0\n"
    message = "is a state file of MALLET, not a text. .*read_mallet_state"
    refused(message, read_text, write("state.txt", state), "utf-8")


def test_texts_over_several_lines_and_long_ones(write):
    long = "word " * 50_000
    path = write("a.csv", f'text,n\r\n"one\ntwo, ""three""",1\r\n\r\nfour,2\r\n{long},3\r\n')
    with pytest.warns(UserWarning, match="1 lines between rows are blank"):
        corpus = read(path, "--time", "n")
    assert corpus.texts == ['one\ntwo, "three"', "four", long]
    assert corpus.columns["time"] == ["1", "2", "3"]


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_encodings(write, name):
    head = {"a.txt": "Käse\n", "a.csv": "text\nKäse\n", "a.jsonl": '{"text": "Käse"}\n'}[name]
    assert read(write(name, codecs.BOM_UTF8 + head.encode())).texts == ["Käse"]
    for encoding in ("latin-1", "utf-16"):
        path = write(name, head.encode(encoding))
        refused(rf"{name}' cannot be read as .*'utf-8.* can't decode", read, path)
        assert read(path, "--encoding", encoding).texts == ["Käse"]


def test_files_of_a_folder_in_several_encodings(write, tmp_path):
    for name, encoding in {"a.txt": "utf-8", "b.txt": "cp1252", "c.txt": "utf-8"}.items():
        write(name, "Käse".encode(encoding))
    message = r"b.txt' .*1 of 3 files cannot be read: b.txt. .*--encoding utf-8,cp1252 .*"
    refused(message + "--files to read only", read, tmp_path)
    refused(message + "narrower pattern", read, tmp_path, "--files", "*.txt")
    with pytest.warns(UserWarning, match="not in the encoding utf-8 is read in cp1252"):
        assert read(tmp_path, "--encoding", "utf-8,cp1252").texts == ["Käse"] * 3


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl"])
def test_texts_from_a_pipe(name, tmp_path):
    content = {"a.txt": b"moon\n", "a.csv": b"text\nmoon\n", "a.jsonl": b'{"text": "moon"}\n'}[name]
    for packed in (content, gzip.compress(content)):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_bytes, args=(packed,))
        writer.start()
        assert read(tmp_path / name).texts == ["moon"]
        writer.join()
        (tmp_path / name).unlink()
    for kind in ("npz", "docx", "zip", "xlsx"):
        os.mkfifo(tmp_path / f"a.{kind}")
        refused(f"a.{kind}' is a pipe. Write it to a file first", read, tmp_path / f"a.{kind}")


@pytest.mark.parametrize("name", ["a.txt.zip", "a.csv.zip"])
def test_a_compressed_file_as_macos_makes_it(tmp_path, name):
    members = {"papers/": "", "papers/a": "text\nmoon", "__MACOSX/papers/._a": "x"}
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    assert read(tmp_path / name).texts[-1] == "moon"
    with zipfile.ZipFile(tmp_path / name, "a") as archive:
        archive.writestr("papers/b", "text")
    refused(f"{name}' cannot be read as .*must contain one file. Got 2", read, tmp_path / name)


def test_a_file_that_is_compressed_by_zstd(write):
    path = write("a.txt.zst", b"\x28\xb5\x2f\xfd\x04\x00")
    refused("a.txt.zst' cannot be read as text: it is compressed by zstd", read, path)


MARKS = {
    'id\ttext\n1\t"a moon\n2\tb\n3\t"c sun\n4\td\n': ['"a moon', "b", '"c sun', "d"],
    'text\n"a moon\nb\n"c" sun\n': ['"a moon', "b", '"c" sun'],
    'id,text\n1,"a moon\n2,b\n': ['"a moon', "b"],
    'id,text\n1,"a ""moon"", x"\n2,"b\nc"\n': ['a "moon", x', "b\nc"],
    'text\n"a\nb"\nc\n': ["a\nb", "c"],
    "sep=;\nid;text\n1;a,b,c\n2;d\n": ["a,b,c", "d"],
    '"text","n"\n"1","a",3\n"2","b",4\n': ["a", "b"],
}


@pytest.mark.parametrize("content", MARKS)
def test_quotation_marks_separators_and_names_of_rows(write, content):
    name = "a.tsv" if "\t" in content else "a.csv"
    assert read(write(name, content), "--text", "text").texts == MARKS[content]


def test_what_is_odd_in_a_table_is_told(write):
    with pytest.warns(UserWarning, match="fewer columns than the header.*1 rows, .* line 3"):
        read(write("a.tsv", "text\tn\na\t1\nb2\nc\t3\n"))
    with pytest.warns(UserWarning, match="2 lines between rows are blank"):
        assert read(write("a.tsv", "text\tn\na\t1\n\n\nc\t3\n\n")).texts == ["a", "c"]
    for name in ("a.tsv", "a.csv"):
        with pytest.warns(UserWarning, match="'a first text', is read as the header"):
            assert read(write(name, "a first text\n\nb\n")).texts == ["", "b"]


def test_blank_lines_of_json_and_lines_of_spaces_are_told(write):
    with pytest.warns(UserWarning, match="1 lines between rows are blank"):
        assert read(write("a.jsonl", '{"text": "a"}\n \n{"text": "b"}\n\n')).texts == ["a", "b"]
    with pytest.warns(UserWarning, match="1 lines between rows are blank"):
        assert read(write("a.tsv", "text\tn\na\t1\n   \nc\t3\n")).texts == ["a", "c"]


@pytest.mark.parametrize("start", ["\ntext\n", "\n\nid,text\n", "  \nid,text\n"])
def test_a_blank_line_above_the_header(write, start):
    message = "a.csv' cannot be read .* line 1 is blank, but must contain the names of the columns"
    refused(message, read, write("a.csv", start + "1,a\n2,b\n"))


def test_blank_cells_after_the_last_column(write):
    """Numbers in the first column do not make them the names of rows that R writes."""
    for rows in ("1,a,\n2,b,\n", "5,a\n6,b,,\n"):
        assert read(write("a.csv", "id,text\n" + rows)).texts == ["a", "b"]
    refused("line 2 has 3 columns", read, write("a.csv", "id,text\n1,a, b\n2,c, d\n"))


@pytest.mark.parametrize("names", [("1", "2"), ("3", "12"), ("b", "a")])
def test_names_of_rows_without_quotation_marks(write, names):
    """Rows that were chosen in R keep their numbers."""
    first, second = names
    with pytest.warns(UserWarning, match="a.tsv', all rows have one more column than the header"):
        path = write("a.tsv", f"n\ttext\n{first}\t7\ta\n{second}\t8\tb\n")
        assert read(path).texts == ["a", "b"]


def test_a_missing_tab_in_a_table_of_r(write):
    rows = [f"{n}\t7\ta" for n in range(1, 9)]
    rows[4] = "5\t7 a"
    path = write("a.tsv", "\n".join(["n\ttext", *rows]))
    refused("line 6 has 2 columns, but most rows have 3", read, path)


@pytest.mark.parametrize(
    "name, head, separator, last",
    [("a.csv", "text", "", "a"), ("a.csv", "n,text", "0,", '9,"one, two"')],
)
def test_quotation_marks_that_join_rows_are_told(write, name, head, separator, last):
    rows = [f"{separator}star {n}" for n in range(9)]
    rows[2] = f'{separator}"star'
    rows[5] = f'{separator}moon"' if not separator else f'{separator}"moon'
    with pytest.warns(UserWarning, match="several lines that look like rows.*1 texts, .* line 7"):
        assert len(read(write(name, "\n".join([head, *rows, last]))).texts) == 7


def test_a_row_that_does_not_end(write):
    path = write("a.csv", 'n,text\n1,a\n2,"b\n3\n4,d\n')
    with pytest.warns(UserWarning, match="look like rows"):
        refused("EOF inside string", read, path)


def test_texts_of_several_lines_are_not_told(write):
    texts = ["one, two\n\nthree, four\n", "five\nsix, seven"]
    table = "".join(f'{n},"{text}"\n' for n, text in enumerate(texts))
    assert read(write("a.csv", "id,text\n" + table + '3,"a, b, c"\n')).texts[:2] == texts
    table = "".join(f'"{text}"\n' for text in texts)
    assert read(write("a.csv", "text\n" + table)).texts == texts


def test_line_breaks_of_databases_are_told(write):
    path = write("a.tsv", "id\ttext\n1\tthe day\\nThe star\\n\\nAnd\n2\t$\\nu$ is \\tau\n")
    with pytest.warns(UserWarning, match=r"3 line breaks or tabs are written as .n or .t"):
        assert len(read(path).texts) == 2


def test_files_of_a_folder_that_are_no_plain_texts_are_told(write, tmp_path):
    write("a.txt", "star")
    write("b.HTML", "<html>star</html>")
    write("c.mtx.gz", gzip.compress(b"%%MatrixMarket"))
    (tmp_path / "more").mkdir()
    (tmp_path / "c.mtx.gz").rename(tmp_path / "more" / "c.mtx.gz")
    with pytest.warns(UserWarning, match="that end in .html, .mtx are read as plain texts"):
        assert len(read(tmp_path).texts) == 3
    assert len(read(tmp_path, "--files", "*.txt").texts) == 1


def test_lines_of_json_are_named(write):
    path = write("a.jsonl", '{"text": "a"}\n\n{"text": "b"\n{"text": "c"}\n')
    refused(r"line 3, .*text.*, is not JSON", read, path)
    refused("line 1 must be a JSON object", read, write("b.jsonl", '[{"text": "a"}]\n'))


def test_long_numbers_keep_their_digits(write):
    number = 1344800117571260417
    path = write("a.jsonl", f'{{"text": "a", "id": {number}}}\n{{"text": "b"}}\n')
    assert read(path, "--title", "id").columns["title"] == [str(number), ""]


def test_packed_tables(write):
    table = b"text,n\na,1\n"
    assert read(write("a.csv.gz", gzip.compress(table))).texts == ["a"]
    assert read(write("a.csv.bz2", bz2.compress(table))).texts == ["a"]
    assert read(write("a.txt.gz", gzip.compress(b"a\n"))).texts == ["a"]


def test_what_is_missing(write):
    path = write("a.jsonl", '{"text": "a", "y": 2000}\n{"text": null}\n{"n": 3, "text": ""}\n{}\n')
    corpus = read(path, "--time", "y")
    assert corpus.texts == ["a", "", "", ""] and corpus.columns["time"] == [2000, None, None, None]
    corpus = read(write("a.csv", "text,y,k\na,,\nb,2000,x\n"), "--time", "y", "--group", "k")
    assert corpus.columns == {"time": [None, "2000"], "group": [None, "x"]}


def test_parquet(tmp_path, write, rows):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    pandas.DataFrame(rows).assign(year=2000).to_parquet(path)
    corpus = read(path, "--time", "year", "--group", "kind")
    assert corpus.texts == [row["text"] for row in rows]
    assert corpus.columns["time"] == [2000] * len(rows)
    refused(r"document 0: 'year' must be a text. Got 2000", read, path, "--text", "year")
    refused(r"a.parquet' cannot be read as a .parquet file", read, write("a.parquet", b"abc"))


@cases(
    "name, content, words",
    ("a.jsonl", "", "must contain documents"),
    ("a.txt", "\n\n", "must contain documents"),
    ("a.csv", "", "cannot be read as a .csv file: No columns"),
    ("a.csv", "text,n\n", "must contain documents"),
    ("a.csv", "title,body\na,b\n", "no column 'text'. .* Its columns are: title, body"),
    (
        "a.csv",
        "text,n\na,1\na,1,2\n",
        "line 3 has 3 columns, but the header has 2 columns.* quotation m",
    ),
    ("a.csv", "text,n\na,1,2\n", "the row that ends on line 2 has 3 columns"),
    ("a.jsonl", '{"text": "a"}\n{"text": 3}\n', "document 1: 'text' must be a text. Got 3"),
    (
        "a.jsonl",
        '{"text": "a"}\n{"text":\n',
        "cannot be read as a .jsonl file: line 2, .* is not JSON",
    ),
    ("a.jsonl", "[" * 100_000 + "\n", "cannot be read as a .jsonl file"),
    ("a.xyz", "text", "is not clear from its name. Save .* or set its format with --format {csv,"),
    ("a.json", "[]", "is not clear from its name. Save the file as .csv, .xlsx or .jsonl, or set"),
    ("a.csv.gz", b"text", "cannot be read as a .csv file: Not a gzipped file"),
    ("a.csv.gz", gzip.compress(b"text\n" * 999, mtime=0)[:30], "cannot be read as a .csv"),
    ("x.mtx", "abc", "cannot be read as Matrix Market counts"),
    ("x.npz", "abc", "does not contain any word counts: it is not an archive"),
)
def test_files_that_cannot_be_read(write, name, content, words):
    path = write(name, content)
    with pytest.raises(ValueError, match=words) as caught:
        read(path)
    assert repr(str(path)) in str(caught.value)


def test_lists_in_json_lines(write):
    rows = [{"text": "a"}, {"text": "b"}]
    for content in (json.dumps(rows, indent=1), "[" + ",\n".join(map(json.dumps, rows)) + "]"):
        refused("line 1 begins a list.* Save the file as .csv", read, write("a.jsonl", content))


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.txt.gz"])
def test_compressed_files_are_known_by_their_contents(write, name, compress):
    content = '{"text": "star"}\n' if "jsonl" in name else "star\n"
    assert read(write(name, compress(content.encode()))).texts == ["star"]


def test_quotation_marks_of_texts_in_a_table_with_a_short_row(write):
    rows = [f"{n}\tstar moon" for n in range(20)]
    rows[3] = '3\t"Star wars'
    rows[7] = '7\tthe end"'
    path = write("a.tsv", "\n".join(["id\ttext", *rows]))
    assert len(read(path).texts) == 20
    rows[5] = "5"  # between the marks
    rows[12] = "12"
    with pytest.warns(UserWarning, match="rows have fewer columns"):
        assert len(read(write("b.tsv", "\n".join(["id\ttext", *rows]))).texts) == 20
    # quoted texts with line breaks are one text each
    rows[3] = '3\t"Star\nwars"'
    rows[7] = "7\tthe end"
    rows[5] = "5\tmoon"
    rows[12] = "12\tmoon"
    assert "Star\nwars" in read(write("c.tsv", "\n".join(["id\ttext", *rows]))).texts


def test_advice_on_encodings_that_are_in_use(write, tmp_path):
    write("a.txt", b"star")
    write("b.txt", b"K\xe4se \x81")
    refused("--encoding utf-8,cp1252 reads each file", read, tmp_path)
    refused("name it in --encoding too", read, tmp_path, "--encoding", "utf-8,cp1252")


def test_columns_that_are_not_there(jsonl):
    listed = "Got 'x'. Its columns are: id, title, text, date, kind."
    for option in ("--text", "--title", "--time", "--group"):
        refused(re.escape(listed.format(option)), read, jsonl, option, "x")


def test_folders_and_files_that_are_not_there(tmp_path):
    refused("must contain documents", read, tmp_path)
    (tmp_path / "a").write_bytes(b"\xff\x00")
    refused(r"a' cannot be read as text: 'utf-8", read, tmp_path)
    refused("must contain documents", read, tmp_path, "--files", "*.md")
    with pytest.raises(FileNotFoundError, match=r"There is no file or folder '.*nothing'"):
        read(tmp_path / "nothing")


def test_another_format_than_the_name(write):
    path = write("a.data", "text\na\nb\n")
    assert read(path, "--format", "csv").texts == ["a", "b"]
    assert read(path, "--format", "lines").texts == ["text", "a", "b"]


X = sparse.csr_matrix(np.array([[2, 0, 1, 0], [0, 3, 0, 0], [1, 1, 0, 4]], dtype=float))
WORDS = ["star", "bread", "ship", "moon"]


def written(folder, kind, packed=False):
    """X in a file of a kind."""
    names = {"npz": "x.npz", "mtx": "x.mtx", "uci": "docword.x.txt", "lda-c": "x.ldac"}
    path = folder / names[kind]
    if kind == "npz":
        sparse.save_npz(path, X)
    elif kind == "mtx":
        mmwrite(path, X)
    else:
        path.write_text({"uci": uci, "lda-c": lda_c}[kind](X))
    if packed:
        file = path.with_name(path.name + ".gz")
        file.write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
        return file
    return path


@cases(
    "kind, packed",
    ("npz", False),
    *((kind, packed) for kind in ("mtx", "uci", "lda-c") for packed in (0, 1)),
)
def test_counts(tmp_path, kind, packed):
    path = written(tmp_path, kind, packed)
    corpus = read(path)
    np.testing.assert_array_equal(corpus.counts.toarray(), X.toarray())
    assert corpus.words is None and corpus.texts is None and len(corpus) == 3
    words = tmp_path / "words.txt"
    words.write_text("\n".join([*WORDS, "more"]) + "\n")
    if kind == "lda-c":  # which does not say how many words there are
        corpus = read(path, "--vocabulary", words)
        assert list(corpus.words) == [*WORDS, "more"] and corpus.counts.shape == (3, 5)
    else:
        refused("it has 5 words, but the counts have 4", read, path, "--vocabulary", words)
    refused(r"--text can only be used with texts. Got '.*x", read, path, "--text", "a")


def test_words_beside_the_counts(tmp_path):
    path = written(tmp_path, "uci", packed=True)
    (tmp_path / "vocab.txt").write_text("wrong\n" * 9)
    (tmp_path / "vocab.x.txt").write_text("\n".join(WORDS))
    assert list(read(path).words) == WORDS
    (tmp_path / "w").write_text("star\nbread\n")
    refused("it has 2 words, but the counts have 4", read, path, "--vocabulary", tmp_path / "w")


def test_arrays_of_an_archive(tmp_path):
    path = tmp_path / "x.npz"
    csr = dict(data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape)
    np.savez(path, **csr, vocab=np.array(WORDS), year=[1999, 2000, 2001], other=[1, 2])
    corpus = read(path, "--time", "year")
    assert corpus.columns["time"] == [1999, 2000, 2001] and list(corpus.words) == WORDS
    refused(
        r"--time must be a column of .* Got 'other'. Its columns are: year.",
        read,
        path,
        "--time",
        "other",
    )
    np.savez(path, a=[1])
    refused(r"it has no arrays \['data', 'indices', 'indptr', 'shape'\]", read, path)
    sparse.save_npz(path, sparse.coo_matrix(X))
    refused("does not contain any word counts", read, path)


def test_a_fit_of_counts(call, tmp_path):
    path = written(tmp_path, "lda-c")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    assert call("fit", path, "--n-topics", 2, "--model", "m").status == 0
    # texts and counts of the same words
    (tmp_path / "t.txt").write_text("star ship star\nbread bread bread\nstar bread moon\n")
    labels = call("label", "m", path, "--shares").out.splitlines()
    assert len(labels) == 4
    assert call("label", "m", tmp_path / "t.txt", "--shares").out.splitlines()[:3] == labels[:3]
    (tmp_path / "vocab.txt").write_text("a\nb\nb\nc\n")
    failed = call("fit", path, "--n-topics", 2)
    assert "'--vocabulary[2]'" in failed.err and "differs from the words of all other" in failed.err
    assert "Got 'b' instead" in failed.err
    (tmp_path / "vocab.txt").unlink()
    assert "the words are unknown" in call("fit", path, "--n-topics", 2, "--model", "bare").err
    assert call("label", "bare", path).status == 0
    failed = call("label", "bare", tmp_path / "t.txt")
    assert failed.status == 2 and "fitted to counts without a vocabulary" in failed.err
