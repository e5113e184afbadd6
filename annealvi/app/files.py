"""The files of a study, what its settings mean, and the script that repeats it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pandas

from annealvi._version import __version__
from annealvi.files import replacing
from annealvi.lda import TemperedLDA
from annealvi.topics import TopicModel, TopicVectorizer, drop_topics, merge_topics
from annealvi.topics.segmenters import LANGUAGES_WITHOUT_SPACES

#: Files in the folder of a study: its settings and edits, the documents, the model as it was
#: fitted, a finished fit that the server has not taken over, the checkpoints, and the output of the
#: fit.
STATE = "study.json"
DOCUMENTS = "documents.csv"
FITTED = "fit.safetensors"
NEXT = "next.safetensors"
CHECKPOINT = "checkpoint.safetensors"
CHOICE = "comparison"
LOG = "fit.log"
#: Numbers of topics that "auto" compares, with at least this number of documents for each topic.
NUMBERS = (5, 10, 20, 50, 100)
DOCUMENTS_EACH = 20
#: What a column of the documents can contain.
ROLES = ("text", "title", "time", "group")
#: The program that repeats a study, and its lines for the choice of a number of topics and for
#: edits.
SCRIPT = """\
# Repeats a study of annealvi open, with the same topics bit for bit (annealvi {version}).
# Needs the file documents.csv of the study in the same folder.
import pandas

from annealvi import TemperedLDA, TopicModel, save
from annealvi.topics import (
    TopicVectorizer,
    choose_n_topics,
    describe,
    drop_topics,
    merge_topics,
)

table = pandas.read_csv("documents.csv", dtype=str, keep_default_na=False)


def column(name, empty=""):
    return [cell or empty for cell in table[name]] if name else None


texts = column({text!r})
model = {model!r}
{choice}model.fit(texts)
{edits}save(model, "topics.safetensors")
summary = describe(model, texts, titles=column({title!r}))
times, groups = column({time!r}, None), column({group!r}, None)
summary.write_report("report.html", title={headline!r}, times=times, freq={freq!r}, groups=groups)
print("checksum of the topics:", summary.checksum)
"""
CHOOSE = """\
choice = choose_n_topics(texts, {numbers}, n_runs=2, model=model, random_state=0)
model.set_params(n_topics=choice.recommended)
"""
EDITS = {
    "label": "model.set_labels({{{topics[0]}: {label!r}}})\n",
    "merge": "model = merge_topics(model, [{topics}])\n",
    "drop": "model = drop_topics(model, {topics})\n",
}


def read_state(folder: Path) -> dict[str, Any]:
    """Return the name, settings and edits of a study; all are None or empty in a new study."""
    state: dict[str, Any] = {"name": None, "settings": None, "next": None, "edits": []}
    if (folder / STATE).is_file():
        state |= json.loads((folder / STATE).read_text(encoding="utf-8"))
    return state


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write the name, settings and edits of a study."""
    with replacing(folder / STATE) as partial:
        partial.write_text(json.dumps(state, indent=1), encoding="utf-8")


def read_documents(folder: Path) -> Any:
    """Read the documents of a study as a DataFrame of texts."""
    return pandas.read_csv(folder / DOCUMENTS, dtype=str, keep_default_na=False)


def column(table: Any, name: str, empty: str | None = "") -> Any:
    """Return a column of the documents, with another value of empty cells; None without a name."""
    return [cell or empty for cell in table[name]] if name else None


def topic_model(settings: dict[str, Any]) -> TopicModel:
    """Return the unfitted model that the settings describe."""
    language = settings["language"] or None
    is_unspaced = language in LANGUAGES_WITHOUT_SPACES
    return TopicModel(
        settings["n_topics"],
        vectorizer=TopicVectorizer(clean=True, language=language if is_unspaced else None),
        lda=TemperedLDA(n_jobs=-1),
        stop_words=None if is_unspaced else language,
        random_state=0,
    )


def candidates(n_documents: int) -> list[int]:
    """Return the numbers of topics that are compared if a person does not choose one."""
    return [k for k in NUMBERS if DOCUMENTS_EACH * k <= n_documents] or [2]


def edited(model: TopicModel, edits: list[dict[str, Any]]) -> TopicModel:
    """Return the model after all edits; `model` is not changed."""
    model = copy.copy(model)
    for edit in edits:
        kind = edit["kind"]
        topics = edit["topics"]
        if kind == "label":
            model.set_labels({topics[0]: edit["label"]})
        elif kind == "merge":
            model = merge_topics(model, [topics])
        elif kind == "drop":
            model = drop_topics(model, topics)
        else:
            raise ValueError(f"There is no edit {kind!r}.")
    return model


def script(state: dict[str, Any], n_documents: int) -> str:
    """Return the Python program that repeats a study."""
    settings = state["settings"]
    model = topic_model(settings)
    choice = ""
    if model.n_topics == "auto":
        numbers = candidates(n_documents)
        model.n_topics = numbers[0]
        choice = CHOOSE.format(numbers=numbers)
    edits = "".join(EDITS[edit["kind"]].format(**edit) for edit in state["edits"])
    return SCRIPT.format(
        version=__version__,
        model=model,
        choice=choice,
        edits=edits,
        headline=f"Topics of {state['name']}",
        **settings,
    )


def write_xlsx(tables: dict[str, Any], path: Path) -> None:
    """Write tables to the sheets of an Excel file, in which no text is a formula."""
    with replacing(path) as partial, pandas.ExcelWriter(partial, engine="openpyxl") as writer:
        for name, frame in tables.items():
            frame.to_excel(writer, sheet_name=name)
            for row in writer.sheets[name].iter_rows():
                for cell in row:
                    if cell.data_type == "f":
                        cell.data_type = "s"
