"""Tables of Excel, documents of Word, and zip files, as the commands read them."""

import io
import zipfile

import pandas
import pytest

from annealvi.cli import main
from annealvi.cli.commands import make_parser
from annealvi.cli.inputs import read_corpus
from annealvi.corpus import office
from annealvi.corpus.office import read_docx, read_xlsx, read_zip

docx = pytest.importorskip("docx", reason="needs python-docx, the extra 'app'")
pytest.importorskip("openpyxl", reason="needs openpyxl, the extra 'app'")


def read(path, *options):
    return read_corpus(make_parser().parse_args(["fit", str(path), *options]))


def word_file(path, *paragraphs, table=()):
    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    for text in table:
        document.add_table(1, 2).cell(0, 1).text = text
    document.save(path)
    return path


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "letters.zip"
    word_file(tmp_path / "b.docx", "Dear all,", "bye")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("1900/a.txt", "Käse".encode())
        file.write(tmp_path / "b.docx", "b.docx")
        for hidden in ("1900/.a.txt", "~$b.docx", "__MACOSX/a.txt"):
            file.writestr(hidden, b"\xff")
    (tmp_path / "b.docx").unlink()
    return path


def test_cells_of_excel_are_texts_and_empty_cells_are_empty(tmp_path):
    dates = pandas.to_datetime(["2020-01-31", "2021-02-28"])
    frame = pandas.DataFrame({"text": ["one", "=1+1"], "year": [2020, 2021], "day": dates})
    frame.assign(note=[None, "NA"]).to_excel(tmp_path / "a.xlsx", index=False)
    table = read_xlsx(tmp_path / "a.xlsx")
    assert table["year"].tolist() == ["2020", "2021"]
    assert table["note"].tolist() == ["", "NA"]
    assert table["day"].str[:10].tolist() == ["2020-01-31", "2021-02-28"]
    corpus = read(tmp_path / "a.xlsx", "--time", "day", "--group", "note")
    assert corpus.texts[0] == "one"
    assert corpus.columns["group"] == [None, "NA"]


def test_paragraphs_of_word_and_those_in_tables(tmp_path):
    path = word_file(tmp_path / "a.docx", "one", " ", "two\nlines", table=["in a cell"])
    assert read_docx(path) == ["one", "two\nlines", "in a cell"]
    assert read(path).texts == ["one", "two\nlines", "in a cell"]


def test_files_in_a_zip_file_are_documents(archive):
    wanted = {"text": ["Käse", "Dear all,\nbye"], "name": ["1900/a.txt", "b.docx"]}
    assert read_zip(archive) == wanted | {"folder": ["1900", "."]}
    corpus = read(archive, "--group", "folder")
    assert corpus.texts == wanted["text"]
    assert corpus.columns["group"] == ["1900", "."]


def test_a_folder_may_contain_documents_of_word(tmp_path):
    folder = tmp_path / "letters"
    folder.mkdir()
    word_file(folder / "a.docx", "one", "two")
    (folder / "b.txt").write_text("three")
    (folder / "~$a.docx").write_bytes(b"a lock file of Word")
    assert read(folder).texts == ["one\ntwo", "three"]


@pytest.mark.parametrize("name", ["a.xlsx", "a.docx", "a.zip", "folder/a.docx"])
@pytest.mark.parametrize("content", [b"", b"no zip file", b"PK\x05\x06" + b"\0" * 18])
def test_broken_files_are_named(tmp_path, capsys, name, content):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    place = path.parent if "/" in name else path
    assert main(["fit", str(place)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and path.parent.name in error
    assert ("Save it as a new" in error) == (name in ("a.xlsx", "a.docx"))


def test_a_file_that_unpacks_to_very_much_is_not_unpacked(archive, monkeypatch):
    monkeypatch.setattr(office, "LARGEST_UNPACKED", 100)
    with pytest.raises(ValueError, match=r"unpacks to .* more than 4 GB"):
        read_zip(archive)
    with pytest.raises(ValueError, match="unpacks"):
        read_docx(io.BytesIO(archive.read_bytes()))
