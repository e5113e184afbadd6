"""The program ``annealvi``: its commands and options, and how it reports errors."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import warnings
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from typing import Any, NoReturn
from warnings import catch_warnings, simplefilter

from annealvi._kernels import instruction_set, openmp_enabled
from annealvi._optional import import_optional
from annealvi._version import __version__
from annealvi.cli.fit import demo, fit
from annealvi.cli.inputs import FORMATS, read_columns
from annealvi.cli.models import compare, label, label_topics, show
from annealvi.cli.paper import paper
from annealvi.exceptions import BadParameter

_DOCUMENTS = """\
documents (PATH):
  a folder              each file is a document, also in subfolders; the columns are text, name
                        and folder
  .csv .tsv             each row is a document; the first line contains the names of the columns
  .jsonl .ndjson        each line is a document, as a JSON object
  .parquet              each row is a document; needs pip install pandas pyarrow
  .xlsx                 each row of the first sheet is a document; needs pip install openpyxl
  .txt                  each line is a document
  .docx                 each paragraph is a document; needs pip install python-docx
  .zip                  each .txt or .docx file in it is a document, as in a folder
  .npz .mtx             word counts, as a sparse matrix of documents x words
  .h5ad                 counts of genes or regions in cells, in the format of AnnData; needs
                        pip install anndata; the columns are the columns of obs
  a folder of 10x       counts of genes or regions in cells, as matrix.mtx, features.tsv and
                        barcodes.tsv
  docword.*.txt         word counts in UCI's bag-of-words format
  .ldac                 word counts in the format of LDA-C
  Files can be compressed by gzip (.gz), except .npz, .parquet, .h5ad, .xlsx, .docx and .zip.
  Tables (.csv to .xlsx) need pandas (pip install pandas).  The words of counts are read from the
  file --vocabulary, or from a file vocab.txt (UCI: vocab.*.txt) in the same folder.
"""
FIT = f"""\
{_DOCUMENTS}
examples:
  annealvi fit letters/                         find 20 topics in a folder of text files
  annealvi fit papers.csv --text abstract --n-topics 50 --model topics.safetensors
  annealvi fit papers.jsonl.gz --text title --text abstract --time created --group category \\
      --n-topics 50 --report topics.html --model topics.safetensors
  annealvi fit docword.kos.txt.gz --vocabulary vocab.kos.txt
  annealvi fit papers.csv --seed-words '{{"space": ["nasa", "orbit"], "networks": ["wireless"]}}'

The topics are printed, the largest topic first.  The report is an HTML file, which a browser can
open.  The model can be used by annealvi label, show and compare, and by annealvi.load in Python.
"""
LABEL = f"""\
{_DOCUMENTS}
examples:
  annealvi label topics.safetensors papers.csv --text abstract > labels.csv
  annealvi label topics.safetensors letters/ --name name --shares --output labels.csv
  annealvi label topics.safetensors cells.h5ad --output with_topics.h5ad

Each row of the table contains the number or name of a document, the one topic to which the document
is assigned, and the label and share of that topic.  A document without words of the model has no
topic.  If the name of --output ends in .h5ad, an AnnData with the shares, topics and labels is
written instead of a table.
"""
SHOW = """\
examples:
  annealvi show topics.safetensors
  annealvi show topics.safetensors --topic 3 --words 30
"""
PAPER = f"""\
{_DOCUMENTS}
example:
  annealvi paper topics.safetensors papers.csv --text abstract --group field --time year \\
      --formula '~ field + bs(year, df=4)' --refits 10 --folder paper

These tables are written to the folder, as .csv (with all digits) and .tex (for the LaTeX package
booktabs, and for longtable if a table has more than 40 rows): the topics, their shares by group and
over time, and the effects of --formula.  Figures are written as .pdf.  The file methods.txt
describes how the topics were found, with references.  The command needs pandas and matplotlib, and
--formula needs formulaic:
pip install pandas matplotlib formulaic
"""
LABEL_TOPICS = """\
example:
  annealvi label-topics topics.safetensors 3=robots "7=black holes"

The labels are written to the file of the model.  annealvi label, annealvi show and reports use the
labels.
"""
OPEN = """\
examples:
  annealvi open                                 choose a file on the page
  annealvi open reviews.xlsx

FILE can be .csv, .tsv, .xlsx, .jsonl, .txt (a document on each line), .docx (a document in each
paragraph), or a .zip file of .txt or .docx files.  The page can be opened only on this computer, by
the link that is printed.  The study is kept in --folder: the same command opens it again.
"""
COMPARE = """\
example:
  annealvi fit papers.csv --random-state 1 --model one.safetensors
  annealvi fit papers.csv --random-state 2 --model two.safetensors
  annealvi compare one.safetensors two.safetensors

Each topic of one model is matched with a topic of the other model.  The similarity is the cosine
of their word probabilities, which is 1 if the topics are equal.  A topic of low similarity depends
on the random state: do not rely on it.
"""


# ---------------------------------------------------------------------------- options


def at_least(minimum: int) -> Callable[[str], int]:
    """Return a function that converts a text to an integer of at least `minimum`."""

    def number(text: str) -> int:
        """Convert a text, or raise the error that argparse reports."""
        if not text.isdecimal() or int(text) < minimum:
            raise ArgumentTypeError(f"must be an integer of at least {minimum}. Got {text!r}")
        return int(text)

    return number


def n_topics(text: str) -> int | str:
    """Convert a text to a number of topics, or auto."""
    return text if text == "auto" else at_least(1)(text)


def refits(text: str) -> int:
    """Convert a text to a number of refits: 0, or at least 2, so that they can be compared."""
    return at_least(0)(text) if text == "0" else at_least(2)(text)


def documents(text: str) -> int | float | str:
    """Convert a text to a number of documents (5), a fraction of them (0.2), or auto."""
    try:
        return text if text == "auto" else int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise ArgumentTypeError(
            "must be a number of documents, such as 5, a fraction of the documents, such as 0.2, "
            f"or auto. Got {text!r}"
        ) from None


def encoding(text: str) -> str:
    """Convert the names of encodings, separated by commas, to the names that Python uses."""
    try:
        names = [codecs.lookup(name).name for name in text.split(",")]
    except LookupError:
        raise ArgumentTypeError(
            "must be the name of an encoding, such as utf-8, cp1252, latin-1 or utf-16. "
            f"Got {text!r}"
        ) from None
    # without the byte-order mark
    return ",".join("utf-8-sig" if name == "utf-8" else name for name in names)


def open_page(chosen: Namespace) -> None:
    """Serve the page of a study."""
    import_optional(
        "starlette",
        "annealvi open",
        "uvicorn",
        "openpyxl",
        "docx",
        "stop_words",
        "plotly",
        "pandas",
    )
    from annealvi.app import serve

    # a reader of files as an argument, because the page must not import the command line
    serve(chosen.file, chosen.folder, read_columns, chosen.port, not chosen.no_browser)


def value(metavar: str, text: str, type: Any = str, default: Any = None) -> dict[str, Any]:
    """Return the settings of an option with a value, for argparse; `text` is its help."""
    return {"metavar": metavar, "help": text, "type": type, "default": default}


def flag(text: str) -> dict[str, Any]:
    """Return the settings of an option without a value, for argparse; `text` is its help."""
    return {"action": "store_true", "help": text}


QUIET = {"--quiet": flag("write only errors to stderr")}
MODEL = {"model": value("MODEL", "a file that annealvi fit --model wrote")}
PATH = {"path": value("PATH", "a file or folder of documents, see below")}
READING = {
    "--text": value(
        "COLUMN",
        "column of the texts (default: text, or the only column); use it twice to join two",
        default=[],
    )
    | {"action": "append"},
    "--format": {"choices": FORMATS, "help": "format, if the name of the file does not show it"},
    "--encoding": value("ENCODING", "encoding of texts (default: utf-8)", encoding, "utf-8"),
    "--files": value("PATTERN", "pattern of the files to read in a folder, such as '*.txt'"),
    "--vocabulary": value("FILE", "file with the words of counts, one word on each line"),
    "--layer": value("NAME", "layer of a .h5ad file that contains the counts, or raw (default: X)"),
}
COPIES = flag("leave out texts that repeat an earlier text exactly")
SEEDS = """topics that you look for, as names with some words of each topic: a JSON file, or JSON
such as '{"space": ["nasa", "orbit"]}'"""
PERIODS = """length of periods of time: year, quarter, month, week, day, or a multiple such as
'5 years' (default: year)"""
FORMULA = """estimate effects of columns on topic shares, such as '~ party + bs(day, df=5)', where
bs is a spline; party * day includes the interaction of both columns"""
REFITS = "fit N more models, so that intervals allow for uncertain topics (default: 0)"
STOP_WORDS = """english, none, another language such as german or de (needs pip install
stop-words), several languages such as german,english, or a file with a word on each line (default:
english)"""
RARE = "exclude words in fewer documents (default: from the number of documents)"
FREQUENT = "exclude words in more documents (default: a fifth, or half of short documents)"
SINGLE = """each document has one topic: for texts of few words, such as answers to a question or
titles"""
#: The options of each command, in groups that its help shows; the first group has no headline.
OPTIONS: dict[str, dict[str, dict[str, dict[str, Any]]]] = {
    "fit": {
        "": {
            **PATH,
            "--n-topics": value(
                "K", "how many; auto compares several numbers (default: 20)", n_topics, 20
            ),
            "--seed-words": value("SEEDS", SEEDS),
            "--single-topic": flag(SINGLE),
            "--model": value("FILE", "write the model to this .safetensors file"),
            "--words": value("N", "number of words to print (default: 8)", at_least(1), 8),
            **QUIET,
        },
        "how to read the documents": READING,
        "report (needs pip install plotly pandas)": {
            "--report": value("FILE", "write a report to this .html file"),
            "--title": value("COLUMN", "column of titles (default: title, if it exists)"),
            "--time": value("COLUMN", "column of dates or years, to show shares over time"),
            "--group": value("COLUMN", "column of groups, to compare the groups"),
            "--freq": value("PERIOD", PERIODS, default="year"),
            "--second-fit": flag("fit a second model, to show which topics both fits found"),
        },
        "which words are counted": {
            "--stop-words": value("WORDS", STOP_WORDS, default="english"),
            "--min-df": value("N", RARE, documents, "auto"),
            "--max-df": value("N", FREQUENT, documents, "auto"),
            "--drop-copies": COPIES,
            "--clean": flag("remove links, @-mentions, HTML tags and entities, LaTeX commands"),
        },
        "how to fit": {
            "--passes": value(
                "N", "passes of each run (default: from the number of documents)", at_least(1)
            ),
            "--random-state": value("N", "random seed (default: 0)", at_least(0), 0),
            "--jobs": value("N", "number of threads; -1 means all processors (default: 1)", int),
        },
    },
    "label": {
        "": {
            **MODEL,
            **PATH,
            "--name": value("COLUMN", "column of document names (default: numbers from 0)"),
            "--shares": flag("add columns with the shares of all topics"),
            "--output": value("FILE", "write to this file instead of stdout"),
            **QUIET,
        },
        "how to read the documents": READING,
    },
    "show": {
        "": {
            **MODEL,
            "--topic": value("K", "show only this topic, in more detail", at_least(0)),
            "--words": value("N", "number of words of a topic", at_least(1)),
        }
    },
    "paper": {
        "": {
            **MODEL,
            **PATH,
            "--folder": value("FOLDER", "folder to write to (default: paper)", default="paper"),
            "--time": value("COLUMN", "column of dates or years, for shares over time"),
            "--group": value("COLUMN", "column of groups, for shares in each group"),
            "--freq": value("PERIOD", PERIODS, default="year"),
            "--formula": value("FORMULA", FORMULA),
            "--refits": value("N", REFITS, refits, 0),
            "--drop-copies": COPIES,
            **QUIET,
        },
        "how to read the documents": READING,
    },
    "label-topics": {
        "": {
            **MODEL,
            "assignment": value("TOPIC=LABEL", "number of a topic and its label") | {"nargs": "+"},
            "--words": value("N", "number of words to print (default: 8)", at_least(1), 8),
        }
    },
    "compare": {
        "": {
            **MODEL,
            "other": value("MODEL", "another such file"),
            "--words": value("N", "number of words of each topic (default: 4)", at_least(1), 4),
        }
    },
    "open": {
        "": {
            "file": value("FILE", "a file of documents, see below (default: chosen on the page)")
            | {"nargs": "?"},
            "--folder": value(
                "FOLDER",
                "folder of the study (default: annealvi-study beside FILE, or in this folder)",
            ),
            "--port": value("N", "port of this computer (default: a free port)", at_least(0), 0),
            "--no-browser": flag("only print the link of the page"),
        }
    },
    "demo": {
        "": {
            "--output": value(
                "FILE", "report (default: annealvi_demo.html)", default="annealvi_demo.html"
            ),
            **QUIET,
        }
    },
}
#: The function of each command, and the texts of its help.
COMMANDS: dict[str, tuple[Callable[[Namespace], None], str, str]] = {
    "fit": (fit, "find topics, and write a report and a model", FIT),
    "label": (label, "assign topics to documents", LABEL),
    "show": (show, "print the topics of a model", SHOW),
    "paper": (paper, "write tables, figures and methods for a paper", PAPER),
    "label-topics": (label_topics, "set labels of topics in the file of a model", LABEL_TOPICS),
    "compare": (compare, "match the topics of two models", COMPARE),
    "open": (open_page, "find topics on a page in the browser, without code", OPEN),
    "demo": (demo, "find topics in 3,000 abstracts, and write a report", ""),
}
#: Parameters of the library and the options that set them, if their names differ.
PARAMETERS = {
    "n_components": "n_topics",
    "max_iter": "passes",
    "n_jobs": "jobs",
    "words": "vocabulary",
    "times": "time",
    "groups": "group",
}


class Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """Write the message and exit with status 2; argparse calls this method."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def make_parser() -> Parser:
    """Return the parser of all commands and their options."""
    # keeps the line breaks of help texts
    plain = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="annealvi",
        description="Find topics in texts by annealed variational inference.",
        epilog="examples:\n"
        "  annealvi demo                              show the topics of 3,000 abstracts\n"
        "  annealvi fit letters/ --report topics.html --model topics.safetensors\n"
        "  annealvi label topics.safetensors more_letters/ > labels.csv\n\n"
        "annealvi fit --help lists the kinds of files that can be read.",
        formatter_class=plain,
        allow_abbrev=False,
    )
    threads = "OpenMP" if openmp_enabled() else "no OpenMP, one thread"
    version = f"annealvi {__version__} ({instruction_set()} kernels, {threads})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, text, examples) in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=examples,
            formatter_class=plain,
            allow_abbrev=False,
        )
        for headline, options in OPTIONS[name].items():
            # a headline in the help; options without one belong to the command itself
            group = command.add_argument_group(headline) if headline else command
            for option, settings in options.items():
                group.add_argument(option, **settings)
    return parser


# ------------------------------------------------------------------------ the command

#: Exit statuses after wrong input, and after an interrupt.
WRONG = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed by the program that calls this one
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            # a letter that the encoding of the output lacks is written as its number
            stream.reconfigure(errors="backslashreplace")
    chosen = make_parser().parse_args(arguments)
    name = f"annealvi {chosen.command}"

    printed_lines = set()

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        """Print a warning in one line; replaces `warnings.showwarning`."""
        line = f"{name}: warning: {_in_a_line(message)}"
        if line not in printed_lines:  # several figures can give the same warning
            print(line, file=sys.stderr)
        printed_lines.add(line)

    try:
        with catch_warnings():
            simplefilter("ignore")  # warnings for programmers, such as deprecations
            if not vars(chosen).get("quiet"):
                simplefilter("always", UserWarning)
            warnings.showwarning = show_warning
            COMMANDS[chosen.command][0](chosen)
        sys.stdout.flush()  # here, so that an error of it is handled below
    except BrokenPipeError:  # for example in annealvi show MODEL | head
        # Python flushes stdout again at its end, which would print an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ImportError, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        if isinstance(error, BadParameter):
            parameter, *index = error.name.partition("[")  # "texts" if the error is about texts[3]
            option = PARAMETERS.get(parameter, parameter)
            if option in vars(chosen):  # the message names the option instead of the parameter
                error.name = f"--{option.replace('_', '-')}{''.join(index)}"
                error.owner = name
        print(f"{name}: {_in_a_line(error)}", file=sys.stderr)
        return WRONG
    return 0


def _in_a_line(error: Any) -> str:
    """Return the message of an error or a warning in one line."""
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{os.fsdecode(error.filename)!r}: {error.strerror}"
    elif isinstance(error, MemoryError):
        message = f"there is not enough memory. {error}"
    elif isinstance(error, ValueError) and isinstance(error.__cause__, UnicodeError):
        message = f"{message}. Set the encoding with --encoding, for example to cp1252 or utf-16."
    return " ".join(message.split())  # without line breaks
