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
    frame = pandas.DataFrame({"text": ["one", "two"], "year": [2020, 2021], "day": dates})
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


def test_changes_and_fields_in_a_document_of_word(tmp_path):
    def run(text):
        return f"<w:r><w:t>{text}</w:t></w:r>"

    def box(text):
        return f"<w:r><w:pict><w:txbxContent><w:p>{run(text)}</w:p></w:txbxContent></w:pict></w:r>"

    inside = [
        "<w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>",
        run("a"),
        f"<w:ins>{run('b')}</w:ins><w:moveTo>{run('c')}</w:moveTo>",
        f"<w:del><w:r><w:delText>x</w:delText></w:r></w:del><w:moveFrom>{run('y')}</w:moveFrom>",
        f"<w:smartTag>{run('d')}</w:smartTag><w:fldSimple>{run('e')}</w:fldSimple>",
        f"<w:sdt><w:sdtContent>{run('f')}</w:sdtContent></w:sdt><w:r><w:tab/></w:r>",
        f"<mc:AlternateContent><mc:Choice>{box('in a box')}</mc:Choice>",
        f"<mc:Fallback>{box('in a box')}</mc:Fallback></mc:AlternateContent>",
        f"<w:hyperlink>{run('g')}</w:hyperlink>",
    ]
    spaces = f'{docx.oxml.ns.nsdecls("w")} xmlns:mc="http://example.org"'
    document = docx.Document()
    paragraph = docx.oxml.parse_xml(f"<w:p {spaces}>{''.join(inside)}</w:p>")
    document.element.body.insert(0, paragraph)
    document.save(tmp_path / "a.docx")
    assert read_docx(tmp_path / "a.docx") == ["abcdef\tg", "in a box"]


def test_carriage_returns_of_excel(tmp_path):
    frame = pandas.DataFrame({"text": ["star_x000D_planet", "#N/A"]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    assert read_xlsx(tmp_path / "a.xlsx")["text"][0] == "star\rplanet"


def test_formulas_of_excel_without_results_are_told(tmp_path):
    pandas.DataFrame({"text": ["=1+1", "two"]}).to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.warns(UserWarning, match=r"a\.xlsx' contains 1 formulas without results"):
        assert read_xlsx(tmp_path / "a.xlsx")["text"].tolist() == ["", "two"]


def test_a_first_text_of_excel_that_is_read_as_a_header_is_told(tmp_path):
    frame = pandas.DataFrame({"first text": ["second text", "third text"]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.warns(UserWarning, match=r"The first line of .*'first text', is read as the hea"):
        assert len(read(tmp_path / "a.xlsx")) == 2


def test_a_file_in_a_zip_file_that_is_no_text_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("scan.txt", "star".encode("utf-16-le"))
    with pytest.raises(ValueError, match=r"'scan.txt' is not a text file in the encoding utf-8"):
        read(tmp_path / "a.zip")


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


def test_a_file_in_a_zip_that_is_in_another_encoding_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b/c.txt", "Käse".encode("latin-1"))
    with pytest.raises(ValueError, match=r"b/c\.txt' cannot be read as text"):
        read_zip(tmp_path / "a.zip")
    with pytest.warns(UserWarning, match="not in the encoding utf-8 is read in cp1252"):
        assert read_zip(tmp_path / "a.zip", "utf-8,cp1252")["text"] == ["Käse"]
