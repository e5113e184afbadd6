"""Topics of Chinese, Japanese and Thai texts: are their top words words, and are models saved?

    apt-get download manpages-zh manpages-ja libreoffice-l10n-th
    for package in *.deb; do dpkg -x "$package" unpacked; done
    python -m bench.studies.unspaced unpacked        # needs the extra asia

The Chinese and Japanese texts are translated manual pages, without their commands; the Thai texts
are the messages of LibreOffice, thirty in a text.  For each language the script prints the top
words of ten topics, the seconds of the fit, and whether the saved and loaded model gives the same
shares.
"""

from __future__ import annotations

import gettext
import gzip
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import annealvi
from annealvi import TopicModel
from annealvi.topics import TopicVectorizer
from bench import parser

#: Lines that are only a command, and what commands within a line look like.
_LINE, _COMMAND = re.compile(r"^['.].*$", re.MULTILINE), re.compile(r"\\(?:f.|\(..|\*.|.)")


def pages(folder: Path, language: str) -> Iterator[str]:
    for path in sorted(folder.glob(f"usr/share/man/{language}/man*/*.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            yield _COMMAND.sub("", _LINE.sub(" ", file.read()))


def messages(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("**/th/LC_MESSAGES/*.mo")):
        with open(path, "rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog
        texts = [text for text in catalog.values() if text]
        for start in range(0, len(texts), 30):
            yield " ".join(texts[start : start + 30])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folder", type=Path)
    folder = options.parse_args().folder
    corpora = {"zh": pages(folder, "zh_CN"), "ja": pages(folder, "ja"), "th": messages(folder)}
    for language, texts in corpora.items():
        documents = [text for text in texts if text.strip()]
        start = time.perf_counter()
        vectorizer = TopicVectorizer(language=language)
        model = TopicModel(10, vectorizer=vectorizer, random_state=0).fit(documents)
        seconds = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as saved:
            annealvi.save(model, Path(saved, "model.safetensors"))
            loaded = annealvi.load(Path(saved, "model.safetensors"))
        same = np.array_equal(loaded.transform(documents), model.transform(documents))
        print(f"{language}: {len(documents)} texts, {seconds:.0f} s, same shares: {same}")
        for words in model.top_words(10):
            print("   ", " ".join(words))


if __name__ == "__main__":
    main()
