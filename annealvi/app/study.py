"""A study: its documents, the process that fits its topics, and what people see of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import RLock, Thread
from typing import Any

import numpy as np
import pandas

from annealvi.app.files import (
    CHECKPOINT,
    CHOICE,
    DOCUMENTS,
    FITTED,
    LOG,
    NEXT,
    ROLES,
    column,
    edited,
    read_documents,
    read_state,
    script,
    write_state,
    write_xlsx,
)
from annealvi.exceptions import BadParameter
from annealvi.files import replacing
from annealvi.plot.notebook import document_html
from annealvi.storage import load, save
from annealvi.topics import describe, write_table
from annealvi.topics.segmenters import LANGUAGES_WITHOUT_SPACES
from annealvi.topics.times import read_times
from annealvi.topics.vectorizer import LANGUAGES

#: The largest file that can be uploaded, in bytes, and the endings of its name.
LARGEST = 500 * 2**20
ENDINGS = (".csv", ".tsv", ".xlsx", ".jsonl", ".txt", ".zip", ".docx")
#: Numbers of documents that the page gets to show and to guess the columns, and of a list.
N_FIRST = 50
N_LISTED = 25
#: The maximum number of characters of a text in a list.
N_CHARACTERS = 200
#: The tables of all studies, and the attributes of a summary that contain them.
TABLES = {"topics": "table", "trust": "trust", "document_topics": "document_table"}
#: The beginning of the page of a document.
HEAD = (
    '<meta name="color-scheme" content="light dark">'
    '<body style="font: 15px/1.5 system-ui, sans-serif">'
)
#: The folder of the results, in the folder of the study.
RESULTS = "results"


class Study:
    """The study in a folder.  Methods raise ValueError on bad input, which changes nothing.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.  The study in it is opened.
    read : function
        Reads a file of documents, and returns its columns by their names.
    """

    def __init__(self, folder: Path, read: Callable[[Path], Any]) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.read = read
        self.lock = RLock()
        self.version = 0
        self.saved = read_state(folder)
        self.table: Any = None
        self.process: Any = None
        self.busy = False
        self.problem = ""
        self.fitted: Any = None
        self.counts: Any = None
        self.summary: Any = None
        if (folder / DOCUMENTS).is_file():
            self.table = read_documents(folder)
            Thread(target=self._show_topics, daemon=True).start()

    def state(self) -> dict[str, Any]:
        """Return what the page shows of the study."""
        # read first: once there is no process, the problem is known
        line = None if self.process is None else self._last_line()
        page = {
            "version": self.version,
            "folder": str(self.folder),
            "busy": self.busy,
            "problem": self.problem,
            "line": line,
            "fits": len(list((self.folder / CHOICE).glob("*.safetensors"))),
            "languages": sorted(LANGUAGES.union(LANGUAGES_WITHOUT_SPACES)),
            "largest": LARGEST,
            "endings": ENDINGS,
            **self.saved,
        }
        if self.table is not None:
            page |= {
                "documents": len(self.table),
                "columns": list(self.table),
                "first": self.table.head(N_FIRST).map(_start).to_numpy().tolist(),
            }
        if self.summary is not None:
            topics = self.summary.table.assign(weak=self.summary.trust["reason"])
            topics = topics.sort_values("share", ascending=False, kind="stable").reset_index()
            page |= {
                "groups": sorted(set(self._column("group") or []) - {""}),
                "topics": json.loads(topics.to_json(orient="records")),
            }
        return page

    # ----------------------------------------------------------------- documents, fit

    def take(self, path: Path, name: str) -> None:
        """Read a file, whose name on the page is `name`; its documents replace the study."""
        with self.lock:
            self._check_idle()
            try:
                table = pandas.DataFrame(dict(self.read(path)), dtype=object)
            except (ValueError, OSError) as error:
                raise ValueError(str(error).replace(str(path), name)) from error
            if len(table) < 2:
                raise ValueError(f"{name!r} must contain at least two documents.")
            self._forget_fit()
            (self.folder / FITTED).unlink(missing_ok=True)
            table = table.where(table.notna(), "").astype(str).replace("\0", " ", regex=True)
            with replacing(self.folder / DOCUMENTS) as partial:
                table.to_csv(partial, index=False, lineterminator="\n", errors="replace")
            self.table = read_documents(self.folder)
            self.summary = None
            self.problem = ""
            self._keep(name=name, settings=None, next=None, edits=[])

    def fit(self, **settings: Any) -> None:
        """Start a fit.  An error in a column would come late after the fit, so it comes now."""
        with self.lock:
            self._check_idle()
            for role in ROLES:
                if settings[role] not in ("", *self.table) or not settings["text"]:
                    raise ValueError(f"The {role} must be a column. Got {settings[role]!r}.")
            if settings["time"]:
                try:
                    read_times(column(self.table, settings["time"], None), pandas)
                except BadParameter as error:
                    raise ValueError(
                        "The column of dates must contain dates, such as 2020-01-31, or years. "
                        f"Got {error.got!r} in the column {settings['time']!r}. {error.hint}"
                    ) from error
            self._forget_fit()
            self._keep(next=settings)
            self.resume()

    def resume(self) -> None:
        """Start the process of a fit, which continues from a checkpoint if there is one."""
        command = [sys.executable, "-P", "-m", "annealvi.app.fitting", str(self.folder)]
        with self.lock, (self.folder / LOG).open("wb") as log:
            self._check_idle()
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
            self.problem = ""
            self.version += 1
        Thread(target=self._wait, daemon=True).start()

    def cancel(self) -> None:
        """Stop the fit; it writes a checkpoint first."""
        if self.process is not None:
            self.process.stdin.close()

    def _wait(self) -> None:
        """Wait for the end of the fit, and show its topics or its error."""
        status = self.process.wait()
        is_cancelled = self.process.stdin.closed  # then Windows has a positive status too
        self.process.stdin.close()
        with self.lock:
            # in this order, because `state` reads both without the lock
            if status > 0 and not is_cancelled:
                self.problem = self._last_line()
            self.process = None
            self._show_topics()

    def _last_line(self) -> str:
        """Return the last line that the fit has printed."""
        text = (self.folder / LOG).read_bytes()[-5000:].decode("utf-8", "replace")
        return re.split(r"[\r\n]+", text.strip())[-1]

    # ------------------------------------------------------------------------- topics

    def edit(self, version: int, kind: str, topics: list[int], label: str = "") -> None:
        """Label, merge or drop topics, or undo the last edit, if the topics are of this version."""
        with self.lock:
            if version != self.version:
                raise ValueError("The topics have changed meanwhile, perhaps in another tab.")
            edits = [*self.saved["edits"], {"kind": kind, "topics": topics, "label": label}]
            if kind == "undo":
                edits = self.saved["edits"][:-1]
            model = edited(self.fitted, edits)
            if kind == "label":
                self.summary.labels[topics[0]] = label
            else:
                self.summary = self._described(model)
            self._keep(edits=edits)

    def _show_topics(self) -> None:
        """Take over a finished fit if there is one, and summarise the topics."""
        fitted = self.folder / FITTED
        with self.lock:
            self.busy = True
            try:
                if (self.folder / NEXT).exists():
                    (self.folder / NEXT).replace(fitted)
                    self._forget_fit()
                    self._keep(settings=self.saved["next"], next=None, edits=[])
                    self.summary = None
                if self.summary is None and fitted.exists():
                    self.fitted = load(fitted)
                    self.counts = self.fitted.counts(self._column("text"))
                    self.summary = self._described(edited(self.fitted, self.saved["edits"]))
            except (ValueError, TypeError, OSError) as error:
                self.problem = str(error)
            self.busy = False
            self.version += 1

    def _described(self, model: Any) -> Any:
        return describe(
            model, self.counts, texts=self._column("text"), titles=self._column("title")
        )

    def _column(self, role: str, empty: str | None = "") -> list[Any] | None:
        """Return the column of the documents with a role; None if no column has it."""
        return column(self.table, self.saved["settings"][role], empty)

    def compare(self, role: str) -> list[Any]:
        """Return the shares of topics by group or over time, and their standard errors."""
        frames = [self._shares(role, value) for value in ("share", "std_error")]
        options = {"orient": "split", "date_format": "iso", "double_precision": 15}
        return [json.loads(frame.to_json(**options)) for frame in frames]

    def _shares(self, role: str, value: str = "share") -> Any:
        cells = self._column(role, None)
        if role == "group":
            return self.summary.by_group(cells, value=value)
        return self.summary.over_time(cells, self.saved["settings"]["freq"], value=value)

    def documents(self, query: str, topic: int | None, group: str, start: int) -> dict[str, Any]:
        """Find documents by a word or label, a topic and a group; return 25 from `start` on."""
        summary = self.summary
        n_documents = len(summary.shares)
        topics = summary.document_topics if topic is None else np.full(n_documents, topic)
        table = pandas.DataFrame({"share": summary.shares[range(n_documents), topics]})
        table["label"] = np.array(list(summary.labels))[topics]
        for role in ("title", "text", "group"):
            table[role] = self._column(role) or ""
        searched = table["label"] + "\n" + table["title"] + "\n" + table["text"]
        table = table[searched.str.contains(query, case=False, regex=False)]
        if group:
            table = table[table["group"] == group]
        if topic is not None:
            table = table.sort_values("share", ascending=False, kind="stable")
        rows = table.iloc[start : start + N_LISTED].reset_index(names="number")
        rows["text"] = rows["text"].map(_start)
        return {"n": len(table), "rows": rows.to_dict("records")}

    def document(self, number: int) -> str:
        """Return a document as HTML, its words in the colours of their topics."""
        return HEAD + document_html(self.summary.document(number))

    # ----------------------------------------------------------------------- downloads

    def result(self, name: str) -> bytes:
        """Write one of the results to the folder of the study, and return it."""
        path = self.folder / RESULTS / name
        path.parent.mkdir(exist_ok=True)
        if name == "report.html":
            self.summary.write_report(
                path,
                title=f"Topics of {self.saved['name']}",
                freq=self.saved["settings"]["freq"],
                times=self._column("time", None),
                groups=self._column("group", None),
            )
        elif name == "topics.safetensors":
            save(edited(self.fitted, self.saved["edits"]), path)
        elif name == "study.py":
            path.write_text(script(self.saved, len(self.table)), encoding="utf-8")
        elif name == DOCUMENTS:
            shutil.copyfile(self.folder / DOCUMENTS, path)
        elif name == "tables.xlsx":
            roles = [role for role in ("group", "time") if self.saved["settings"][role]]
            names = [f"by_{role}{value}" for role in roles for value in ("", "_std_error")]
            write_xlsx({name: self._table(name) for name in (*TABLES, *names)}, path)
        else:
            write_table(self._table(name.removesuffix(".csv")), path)
        return path.read_bytes()

    def _table(self, name: str) -> Any:
        """Return a table of the study."""
        if name in TABLES:
            return getattr(self.summary, TABLES[name])
        _, role, *value = name.split("_", 2)
        return self._shares(role, *value)

    # ------------------------------------------------------------------------- details

    def _forget_fit(self) -> None:
        """Remove what a fit needs to go on."""
        for file in (NEXT, CHECKPOINT):
            (self.folder / file).unlink(missing_ok=True)
        shutil.rmtree(self.folder / CHOICE, ignore_errors=True)

    def _keep(self, **changed: Any) -> None:
        self.saved = self.saved | changed
        write_state(self.folder, self.saved)
        self.version += 1

    def _check_idle(self) -> None:
        if self.process is not None:
            raise ValueError("A fit is running. Cancel it first.")


def _start(text: str) -> str:
    return text[:N_CHARACTERS]
