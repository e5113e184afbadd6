"""Readers of office files: tables of Excel, documents of Word, and zip files of documents."""

from __future__ import annotations

import re
import zipfile
from os import PathLike, fspath
from pathlib import PurePath, PurePosixPath
from typing import IO, Any

from annealvi._optional import import_optional
from annealvi.corpus.files import checked_text, decoded, is_hidden, naming
from annealvi.exceptions import warn_user

#: A zip file (also a .xlsx or .docx file) that unpacks to more bytes is refused.
LARGEST_UNPACKED = 4 * 2**30
#: The paragraphs of a Word document, and what is text in them, without text that is deleted, moved
#: away or a phonetic guide, and without the copies of text boxes for old programs.
WORDS = """
(.//w:p | .//w:r/w:t | .//w:r/w:tab | .//w:r/w:ptab | .//w:r/w:br | .//w:r/w:cr
    | .//w:r/w:noBreakHyphen)
[not(ancestor::w:del or ancestor::w:moveFrom or ancestor::w:rt
    or ancestor::*[local-name() = 'Fallback'])]
"""
#: The first sheet of an Excel file, and a formula without a result in it.
SHEET = "xl/worksheets/sheet1.xml"
NO_RESULT = re.compile(rb'<c (?![^>]*t="str")[^>]*><f[^>]*>[^<]*</f>(?:<v ?/>|<v></v>)?</c>')


def read_xlsx(path: str | PathLike) -> Any:
    """Read the first sheet of an Excel file as a DataFrame of texts; the first row is the header.

    Empty cells are empty texts.
    """
    pandas = import_optional("pandas", "Reading a .xlsx file", "openpyxl")
    escape = import_optional("openpyxl.utils.escape", "Reading a .xlsx file")
    check_size(path)
    with zipfile.ZipFile(path) as archive:
        sheet = archive.read(SHEET) if SHEET in archive.namelist() else b""
    n_formulas = len(NO_RESULT.findall(sheet))
    if n_formulas:
        warn_user(
            f"{fspath(path)!r} contains {n_formulas} formulas without results, which are read as "
            "empty cells. Open the file in Excel and save it, so that it contains the results."
        )
    table = pandas.read_excel(path, dtype=str, keep_default_na=False, engine="openpyxl")
    # Excel writes control characters as, for example, _x000D_
    return table.map(escape.unescape, na_action="ignore")


def read_docx(file: str | PathLike | IO[bytes]) -> list[str]:
    """Return the paragraphs of a Word document, also those in tables, without empty ones.

    Tracked changes are accepted: inserted text is a part of its paragraph, deleted text is not.
    """
    docx = import_optional("docx", "Reading a .docx file")
    check_size(file)
    document = docx.Document(file if hasattr(file, "read") else fspath(file))
    tag = docx.oxml.ns.qn("w:p")
    texts: dict[Any, str] = {}  # by the elements of paragraphs
    for element in document.element.body.xpath(WORDS):
        if element.tag == tag:
            texts[element] = ""
        else:  # it belongs to the innermost paragraph, for example of a text box
            texts[next(element.iterancestors(tag))] += str(element)
    return [text for text in texts.values() if text.strip()]


def read_zip(path: str | PathLike, encoding: str = "utf-8") -> dict[str, list[str]]:
    """Read the .txt and .docx files in a zip file; each file is a document.

    Returns the columns `text`, `name` and `folder`.  Files of other kinds are an error.
    """
    check_size(path)
    documents: dict[PurePath, str] = {}
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            inside = PurePosixPath(name)  # the path of the file in the archive
            # a folder, or a file that is no document
            if name.endswith("/") or is_hidden(inside):
                continue
            ending = inside.suffix.lower()
            with archive.open(name) as file:
                if ending == ".docx":
                    documents[inside] = "\n".join(read_docx(file))
                elif ending == ".txt":
                    with naming(inside, "text"):
                        text = decoded(file.read(), encoding)
                    documents[inside] = checked_text(text, inside, encoding)
                else:
                    raise ValueError(f"it must contain only .txt and .docx files. Got {name!r}.")
    return columns_of(documents)


def columns_of(documents: dict[PurePath, str]) -> dict[str, list[str]]:
    """Return the columns `text`, `name` and `folder` of documents in files."""
    return {
        "text": list(documents.values()),
        "name": [path.as_posix() for path in documents],
        "folder": [path.parent.as_posix() for path in documents],
    }


def check_size(file: Any) -> None:
    """Raise ValueError if a zip file is damaged, or would unpack to more than 4 GB."""
    with zipfile.ZipFile(file) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > LARGEST_UNPACKED:
        raise ValueError(f"it unpacks to {size / 2**30:,.1f} GB, which is more than 4 GB.")
