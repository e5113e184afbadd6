"""The command ``annealvi``: its options, which command was called, and how its errors are told."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from annealvi._kernels import instruction_set, openmp_enabled
from annealvi._version import __version__
from annealvi.cli.fit import demo, fit
from annealvi.cli.inputs import FORMATS
from annealvi.cli.models import compare, label, label_topics, show
from annealvi.cli.paper import paper
from annealvi.exceptions import BadParameter

_DOCUMENTS = """\
documents (PATH):
  a folder              one document in each file, also in folders within; columns: text, name,
                        folder
  .csv .tsv             one in each row; the first line names the columns
  .jsonl .ndjson        a JSON object on each line
  .parquet              one in each row; needs pandas and pyarrow: pip install pandas pyarrow
  .txt                  one on each line
  .npz .mtx             counts of words: a sparse matrix, documents x words
  .h5ad                 counts of cells by genes or regions, as AnnData keeps them (pip install
                        anndata); columns: those of obs
  a folder of 10x       the same: matrix.mtx, features.tsv and barcodes.tsv
  docword.*.txt         counts in UCI's bag-of-words format
  .ldac                 counts in the format of LDA-C
  Texts and counts, except .npz and .parquet, may be packed by gzip (.gz).  Tables (.csv to
  .parquet) need pandas (pip install pandas).  The words of counts are read from --vocabulary, or
  from a file vocab.txt (UCI: vocab.*.txt) beside them.
"""
FIT = f"""\
{_DOCUMENTS}
examples:
  annealvi fit letters/                         20 topics of a folder of text files
  annealvi fit papers.csv --text abstract --topics 50 --model topics.safetensors
  annealvi fit papers.jsonl.gz --text title --text abstract --time created --group category \\
      --topics 50 --report topics.html --model topics.safetensors
  annealvi fit docword.kos.txt.gz --vocabulary vocab.kos.txt
  annealvi fit papers.csv --seed-words '{{"space": ["nasa", "orbit"], "networks": ["wireless"]}}'

The topics are printed, largest first.  The report is one HTML file for a browser.  The model is
for annealvi label, show and compare, and for annealvi.load in Python.
"""
LABEL = f"""\
{_DOCUMENTS}
examples:
  annealvi label topics.safetensors papers.csv --text abstract > labels.csv
  annealvi label topics.safetensors letters/ --name name --shares --output labels.csv
  annealvi label topics.safetensors cells.h5ad --output with_topics.h5ad

The table has a row for each document: its number or name, the topic that it belongs to if it
belongs to one only, that topic's label and share.  A document without a word of the model has no
topic.  An --output whose name ends in .h5ad gets an AnnData with the shares, topics and labels.
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

The folder gets the topics, their shares by group and over time, and the effects of --formula, as
.csv (all digits) and .tex (for the LaTeX package booktabs), figures as .pdf, and methods.txt: how
the topics were found, and what to cite.  All this needs pandas and matplotlib, and --formula needs
formulaic: pip install pandas matplotlib formulaic
"""
LABEL_TOPICS = """\
example:
  annealvi label-topics topics.safetensors 3=robots "7=black holes"

The labels are written into the file of the model.  label, show and the report show them.
"""
COMPARE = """\
example:
  annealvi fit papers.csv --random-state 1 --model one.safetensors
  annealvi fit papers.csv --random-state 2 --model two.safetensors
  annealvi compare one.safetensors two.safetensors

Each topic of one model is matched with a topic of the other.  The similarity is the cosine of
their probabilities of words: 1 if they are the same.  A topic that recurs only weakly depends on
the random state: do not build on it.
"""


# ---------------------------------------------------------------------------- options


def at_least(least: int) -> Callable[[str], int]:
    """A type of whole numbers that are not smaller than `least`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            wanted = f"must be an integer of at least {least}, got {text!r}"
            raise argparse.ArgumentTypeError(wanted)
        return int(text)

    return number


def topics(text: str) -> int | str:
    """A number of topics, or auto."""
    return text if text == "auto" else at_least(1)(text)


def refits(text: str) -> int:
    """A number of refits: none, or enough to tell how they differ."""
    return at_least(0)(text) if text == "0" else at_least(2)(text)


def documents(text: str) -> int | float | str:
    """A number of documents, a share of them, or auto: 5 or 0.2."""
    try:
        return text if text == "auto" else int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a number of documents, such as 5, or a fraction of them, such as 0.2, got "
            f"{text!r}"
        ) from None


def encoding(text: str) -> str:
    """The name of an encoding, for Python."""
    try:
        name = codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(
            f"unknown encoding {text!r}; common ones are utf-8, cp1252, latin-1, utf-16"
        ) from None
    return "utf-8-sig" if name == "utf-8" else name  # a mark at the beginning is no text


Options = dict[str, dict[str, Any]]


def value(metavar: str, text: str, type: Any = str, default: Any = None) -> dict[str, Any]:
    """An option with a value."""
    return {"metavar": metavar, "help": text, "type": type, "default": default}


def flag(text: str) -> dict[str, Any]:
    """An option without a value."""
    return {"action": "store_true", "help": text}


QUIET: Options = {"--quiet": flag("write only errors to stderr")}
MODEL: Options = {"model": value("MODEL", "file that annealvi fit --model wrote")}
PATH: Options = {"path": value("PATH", "file or folder of documents, see below")}
READING: Options = {
    "--text": value(
        "COLUMN",
        "column of the texts (default: text, or the only column); give it twice to join two",
        default=[],
    )
    | {"action": "append"},
    "--format": {"choices": FORMATS, "help": "if the file's name does not tell"},
    "--encoding": value("ENCODING", "of texts (default: utf-8)", encoding, "utf-8"),
    "--files": value("PATTERN", "files of a folder, such as '*.txt'"),
    "--vocabulary": value("FILE", "words of counts, one on each line"),
    "--layer": value("NAME", "layer of a .h5ad file that has the counts, or raw (default: X)"),
}
SEEDS = """topics to be found, each by a name and some of its words: a file of JSON, or JSON such as
'{"space": ["nasa", "orbit"]}'"""
PERIODS = """periods of time: year, quarter, month, week or day, or several of them, such as
'5 years' (default: year)"""
FORMULA = """effects of columns on shares, such as '~ party + bs(day, df=5)': bs is a spline, and
party * day has their interaction too"""
REFITS = "fit N more times, so that intervals allow for it; 10 are enough (default: 0)"
STOP_WORDS = """english, none, another language such as german (needs pip install stop-words),
or a file with a word on each line (default: english)"""
RARE = "leave out words in fewer documents (default: by the size of the corpus)"
FREQUENT = "leave out words in more documents (default: a fifth of them)"
#: The options of each command, in groups that its help shows; the first has no headline.
OPTIONS: dict[str, dict[str, Options]] = {
    "fit": {
        "": {
            **PATH,
            "--topics": value("K", "how many; auto compares several (default: 20)", topics, 20),
            "--seed-words": value("SEEDS", SEEDS),
            "--model": value("FILE", "write the model, as .safetensors"),
            "--words": value("N", "words to print (default: 8)", at_least(1), 8),
            **QUIET,
        },
        "how to read the documents": READING,
        "report (needs pip install plotly pandas)": {
            "--report": value("FILE", "write a report, as .html"),
            "--title": value("COLUMN", "titles (default: title, if it is there)"),
            "--time": value("COLUMN", "dates or years, for the course over time"),
            "--group": value("COLUMN", "groups, to compare them"),
            "--freq": value("PERIOD", PERIODS, default="year"),
            "--second-fit": flag("fit twice, to show which topics recur"),
        },
        "which words are counted": {
            "--stop-words": value("WORDS", STOP_WORDS, default="english"),
            "--min-df": value("N", RARE, documents, "auto"),
            "--max-df": value("N", FREQUENT, documents, "auto"),
            "--clean": flag("remove links, @-mentions, HTML tags and entities, LaTeX commands"),
        },
        "how to fit": {
            "--passes": value(
                "N", "over the documents, from one run (default: by their number)", at_least(1)
            ),
            "--random-state": value("N", "seed (default: 0)", at_least(0), 0),
            "--jobs": value("N", "threads; -1 means all (default: 1)", int),
        },
    },
    "label": {
        "": {
            **MODEL,
            **PATH,
            "--name": value("COLUMN", "names of the documents (default: numbers from 0)"),
            "--shares": flag("add the shares of all topics"),
            "--output": value("FILE", "write there and not to stdout"),
            **QUIET,
        },
        "how to read the documents": READING,
    },
    "show": {
        "": {
            **MODEL,
            "--topic": value("K", "one topic, in more detail", at_least(0)),
            "--words": value("N", "how many words of a topic", at_least(1)),
        }
    },
    "paper": {
        "": {
            **MODEL,
            **PATH,
            "--folder": value("FOLDER", "where to write (default: paper)", default="paper"),
            "--time": value("COLUMN", "dates or years, for shares over time"),
            "--group": value("COLUMN", "groups, for shares of each"),
            "--freq": value("PERIOD", PERIODS, default="year"),
            "--formula": value("FORMULA", FORMULA),
            "--refits": value("N", REFITS, refits, 0),
            **QUIET,
        },
        "how to read the documents": READING,
    },
    "label-topics": {
        "": {
            **MODEL,
            "assignment": value("TOPIC=LABEL", "number of a topic and its label") | {"nargs": "+"},
            "--words": value("N", "words to print (default: 8)", at_least(1), 8),
        }
    },
    "compare": {
        "": {
            **MODEL,
            "other": value("MODEL", "another"),
            "--words": value("N", "of each topic (default: 4)", at_least(1), 4),
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
#: What each command runs, and what its help says.
COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], None], str, str]] = {
    "fit": (fit, "find topics, write a report and a model", FIT),
    "label": (label, "assign topics to documents", LABEL),
    "show": (show, "print the topics of a model", SHOW),
    "paper": (paper, "write tables, figures and methods for a paper", PAPER),
    "label-topics": (label_topics, "set labels of topics, in the file of a model", LABEL_TOPICS),
    "compare": (compare, "match the topics of two models", COMPARE),
    "demo": (demo, "find topics of 3,000 abstracts, write a report", ""),
}
#: The options that are parameters of the library under another name.
PARAMETERS = {
    "n_topics": "topics",
    "n_components": "topics",
    "max_iter": "passes",
    "n_jobs": "jobs",
    "words": "vocabulary",
    "times": "time",
    "groups": "group",
}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def make_parser() -> Parser:
    """Return the parser of the command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog="annealvi",
        description="Find the topics of texts, by annealed variational inference.",
        epilog="examples:\n"
        "  annealvi demo                              3,000 abstracts, to see what comes out\n"
        "  annealvi fit letters/ --report topics.html --model topics.safetensors\n"
        "  annealvi label topics.safetensors more_letters/ > labels.csv\n\n"
        "annealvi fit --help tells which files can be read.",
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
            group = command.add_argument_group(headline) if headline else command
            for option, settings in options.items():
                group.add_argument(option, **settings)
    return parser


# ------------------------------------------------------------------------ the command

#: Exit statuses: of wrong input, and of an interrupt.
WRONG, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    chosen = make_parser().parse_args(arguments)
    name = f"annealvi {chosen.command}"

    def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"{name}: warning: {_in_a_line(message)}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as deprecations, for those who write Python
            if not vars(chosen).get("quiet"):
                warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show_warning
            COMMANDS[chosen.command][0](chosen)
        sys.stdout.flush()
    except BrokenPipeError:  # as in annealvi show MODEL | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ImportError, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        if isinstance(error, BadParameter):
            parameter, *place = error.name.partition("[")  # of texts[3] it is texts
            option = PARAMETERS.get(parameter, parameter)
            if option in vars(chosen):
                option = option.replace("_", "-")
                error.name, error.owner = f"--{option}{''.join(place)}", name
        print(f"{name}: {_in_a_line(error)}", file=sys.stderr)
        return WRONG
    return 0


def _in_a_line(error: Any) -> str:
    """An error or a warning in one line."""
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{os.fsdecode(error.filename)!r}: {error.strerror}"
    elif isinstance(error, MemoryError):
        message = f"there is not enough memory. {error}"
    elif isinstance(error, ValueError) and isinstance(error.__cause__, UnicodeError):
        message = f"{message}. Pass its encoding by --encoding, such as cp1252 or utf-16."
    return " ".join(message.split())
