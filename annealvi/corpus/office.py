"""Readers of office files: tables of Excel, documents of Word, and zip files of documents."""

from __future__ import annotations

import zipfile
from os import PathLike, fspath
from pathlib import PurePath, PurePosixPath
from typing import IO, Any

from annealvi._optional import import_optional
from annealvi.corpus.files import decoded, naming

#: A zip file (also a .xlsx or .docx file) that unpacks to more bytes is refused.
LARGEST_UNPACKED = 4 * 2**30
#: Beginnings of names that are not documents: hidden files, and lock files of Word.
NO_DOCUMENT = (".", "~$", "__MACOSX")


def read_xlsx(path: str | PathLike) -> Any:
    """Read the first sheet of an Excel file as a DataFrame of texts; the first row is the header.

    Empty cells are empty texts.
    """
    pandas = import_optional("pandas", "Reading a .xlsx file", "openpyxl")
    check_size(path)
    return pandas.read_excel(path, dtype=str, keep_default_na=False, engine="openpyxl")


def read_docx(file: str | PathLike | IO[bytes]) -> list[str]:
    """Return the paragraphs of a Word document, also those in tables, without empty ones."""
    docx = import_optional("docx", "Reading a .docx file")
    check_size(file)
    document = docx.Document(file if hasattr(file, "read") else fspath(file))
    # all elements of the body that are paragraphs; `document.paragraphs` lacks those in tables
    elements = document.element.body.iter(docx.oxml.ns.qn("w:p"))
    paragraphs = [docx.text.paragraph.Paragraph(element, document).text for element in elements]
    return [paragraph for paragraph in paragraphs if paragraph.strip()]


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
                        documents[inside] = decoded(file.read(), encoding)
                else:
                    raise ValueError(f"it must contain only .txt and .docx files. Got {name!r}.")
    return columns_of(documents)


def is_hidden(path: PurePath) -> bool:
    """Whether a file or one of its folders is none of a user's documents, by its name."""
    return any(name.startswith(NO_DOCUMENT) for name in path.parts)


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
