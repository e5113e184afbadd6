"""The command ``annealvi``: which command was called, and how its errors are told."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from annealvi._kernels import instruction_set, openmp_enabled
from annealvi._version import __version__
from annealvi.cli.demo import demo
from annealvi.cli.fit import fit
from annealvi.cli.inputs import FORMATS
from annealvi.cli.results import compare, label, show
from annealvi.cli.temperatures import temperatures

_DOCUMENTS = """\
documents (PATH):
  a folder              one document in each file, also in folders within; columns: text, name,
                        folder
  .csv .tsv             one in each row; the first line names the columns
  .jsonl .ndjson        a JSON object on each line
  .parquet              needs pyarrow: pip install 'annealvi[parquet]'
  .txt                  one on each line
  .npz .mtx             counts of words: a sparse matrix, documents x words
  docword.*.txt         counts in UCI's bag-of-words format
  .ldac                 counts in the format of LDA-C
  All but folders, .npz and .parquet may be packed by gzip (.gz).  The words of counts are read
  from --vocabulary, or from a file vocab.txt (UCI: vocab.*.txt) beside them.
"""
FIT = f"""\
{_DOCUMENTS}
examples:
  annealvi fit letters/                         20 topics of a folder of text files
  annealvi fit papers.csv --text abstract --topics 50 --model topics.safetensors
  annealvi fit papers.jsonl.gz --text title --text abstract --time created --class category \\
      --topics 50 --report topics.html --model topics.safetensors
  annealvi fit docword.kos.txt.gz --vocabulary vocab.kos.txt
  annealvi fit papers.csv --seeds '{{"space": ["nasa", "orbit"], "networks": ["wireless"]}}'

The topics are printed, largest first.  The report is one HTML file for a browser.  The model is
for annealvi label, show and compare, and for annealvi.load in Python.
"""
LABEL = f"""\
{_DOCUMENTS}
examples:
  annealvi label topics.safetensors papers.csv --text abstract > labels.csv
  annealvi label topics.safetensors letters/ --name name --shares --output labels.csv

The table has a row for each document: its number or name, its largest topic, that topic's label
and share.  A document without a word of the model has no topic.
"""
SHOW = """\
examples:
  annealvi show topics.safetensors
  annealvi show topics.safetensors --topic 3 --words 30
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


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {
            "formatter_class": argparse.RawDescriptionHelpFormatter,
            "allow_abbrev": False,
        }
        super().__init__(**defaults | options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def at_least(least: int) -> Any:
    """A type of whole numbers that are not smaller than `least`."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"must be a whole number, at least {least}, got {text!r}"
            )
        return value

    return number


def _topics(text: str) -> int | str:
    return text if text == "auto" else at_least(1)(text)


def _documents_in(text: str) -> int | float:
    """A number of documents, or a share of them: 5 or 0.2."""
    try:
        value = float(text)
        share = "." in text or "e" in text.lower()
        if value >= 0 and (not share or value <= 1):
            return value if share else int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(
        f"must be a number of documents, such as 5, or a share of them, such as 0.2, got {text!r}"
    )


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that read documents."""
    parser.add_argument("path", metavar="PATH", help="file or folder of documents, see below")
    group = parser.add_argument_group("how to read the documents")
    group.add_argument(
        "--text",
        metavar="COLUMN",
        action="append",
        default=[],
        help="column of the texts (default: text, or the only column); give it twice to join two",
    )
    group.add_argument("--format", choices=list(FORMATS), help="if the file's name does not tell")
    group.add_argument("--encoding", default="utf-8", help="of texts (default: utf-8)")
    group.add_argument("--files", metavar="PATTERN", help="files of a folder, such as '*.txt'")
    group.add_argument("--vocabulary", metavar="FILE", help="words of counts, one on each line")


def add_fit(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``annealvi fit``."""
    add_documents(parser)
    parser.add_argument(
        "--topics",
        type=_topics,
        default=20,
        metavar="K",
        help="how many (default: 20); auto compares several numbers first",
    )
    parser.add_argument(
        "--seeds",
        metavar="SEEDS",
        help="topics to be found, each by a name and some of its words: a file of JSON, or JSON "
        'such as \'{"space": ["nasa", "orbit"]}\'',
    )
    parser.add_argument("--model", metavar="FILE", help="write the model, as .safetensors")
    parser.add_argument(
        "--words", type=at_least(1), default=8, metavar="N", help="words to print (default: 8)"
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing on stderr but errors")
    report = parser.add_argument_group("report (needs pip install 'annealvi[report]')")
    report.add_argument("--report", metavar="FILE", help="write a report, as .html")
    report.add_argument("--title", metavar="COLUMN", help="titles (default: title, if it is there)")
    report.add_argument("--time", metavar="COLUMN", help="dates or years, for the course over time")
    report.add_argument("--class", metavar="COLUMN", dest="group", help="classes, to compare them")
    report.add_argument(
        "--freq",
        default="YE",
        metavar="PERIOD",
        help="periods of time: YE years, QE quarters, ME months, W weeks, D days, or several of "
        "them, such as 5YE or 30ME (default: YE)",
    )
    report.add_argument(
        "--second-fit", action="store_true", help="fit twice, to show which topics recur"
    )
    words = parser.add_argument_group("which words are counted")
    words.add_argument(
        "--stop-words",
        default="english",
        metavar="WORDS",
        help="english, none, or a file with a word on each line (default: english)",
    )
    words.add_argument(
        "--min-df",
        type=_documents_in,
        metavar="N",
        help="leave out words in fewer documents (default: by the size of the corpus)",
    )
    words.add_argument(
        "--max-df",
        type=_documents_in,
        metavar="N",
        help="leave out words in more documents (default: a fifth of them)",
    )
    how = parser.add_argument_group("how to fit")
    how.add_argument(
        "--passes",
        type=at_least(1),
        metavar="N",
        help="over the documents (default: by their number)",
    )
    how.add_argument(
        "--random-state", type=at_least(0), default=0, metavar="N", help="seed (default: 0)"
    )
    how.add_argument("--jobs", type=int, metavar="N", help="threads; -1 means all (default: 1)")
    parser.set_defaults(name=None)


def add_label(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``annealvi label``."""
    parser.add_argument("model", metavar="MODEL", help="file that annealvi fit --model wrote")
    add_documents(parser)
    parser.add_argument(
        "--name", metavar="COLUMN", help="names of the documents (default: numbers from 0)"
    )
    parser.add_argument("--shares", action="store_true", help="add the shares of all topics")
    parser.add_argument("--output", metavar="FILE", help="write there and not to stdout")
    parser.add_argument("--quiet", action="store_true", help="say nothing on stderr but errors")
    parser.set_defaults(title=None, time=None, group=None)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``annealvi show``."""
    parser.add_argument("model", metavar="MODEL", help="file that annealvi fit --model wrote")
    parser.add_argument("--topic", type=at_least(0), metavar="K", help="one topic, in more detail")
    parser.add_argument("--words", type=at_least(1), metavar="N", help="how many words of a topic")


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``annealvi compare``."""
    parser.add_argument("model", metavar="MODEL", help="file that annealvi fit --model wrote")
    parser.add_argument("other", metavar="MODEL", help="another")
    parser.add_argument(
        "--words", type=at_least(1), default=4, metavar="N", help="of each topic (default: 4)"
    )


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``annealvi demo``."""
    parser.add_argument(
        "--temperatures",
        action="store_true",
        help="compare fits with and without cooling, and draw a figure",
    )
    parser.add_argument(
        "--seeds", type=at_least(1), help="with --temperatures: fits of each method (default: 3)"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="report or figure (default: annealvi_demo.html, or annealvi_demo.png)",
    )


#: Exit statuses: of wrong input, and of an interrupt.
WRONG, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    chosen = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], None] = chosen.run
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are for those who write Python
            run(chosen)
        sys.stdout.flush()
    except BrokenPipeError:  # as in annealvi show MODEL | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(f"\nannealvi {chosen.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ImportError, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        print(f"annealvi {chosen.command}: {_in_a_line(error)}", file=sys.stderr)
        return WRONG
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="annealvi",
        description="Find the topics of texts, by annealed variational inference.",
        epilog="examples:\n"
        "  annealvi demo                              3,000 abstracts, to see what comes out\n"
        "  annealvi fit letters/ --report topics.html --model topics.safetensors\n"
        "  annealvi label topics.safetensors more_letters/ > labels.csv\n\n"
        "annealvi fit --help tells which files can be read.",
    )
    threads = "OpenMP" if openmp_enabled() else "no OpenMP, one thread"
    version = f"annealvi {__version__} ({instruction_set()} kernels, {threads})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )
    for name, (run, add, text, examples) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=examples
        )
        add(command)
        command.set_defaults(run=run)
    return parser


def _demo(chosen: argparse.Namespace) -> None:
    if chosen.temperatures:
        temperatures(chosen.seeds or 3, chosen.output or "annealvi_demo.png")
    elif chosen.seeds is not None:
        raise ValueError("--seeds is for --temperatures.")
    else:
        demo(chosen.output or "annealvi_demo.html")


#: What each command runs, its options, and what its help says.
_COMMANDS: dict[str, tuple[Callable, Callable, str, str]] = {
    "fit": (fit, add_fit, "find topics, write a report and a model", FIT),
    "label": (label, add_label, "tell the topics of documents", LABEL),
    "show": (show, add_show, "print the topics of a model", SHOW),
    "compare": (
        compare,
        add_compare,
        "match the topics of two models",
        COMPARE,
    ),
    "demo": (_demo, add_demo, "find topics of 3,000 abstracts, write a report", ""),
}


def _in_a_line(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        message = f"{os.fsdecode(error.filename)!r}: {error.strerror}"
    elif isinstance(error, MemoryError):
        message = f"there is not enough memory. {error}"
    else:
        message = str(error) or type(error).__name__
    return " ".join(message.split())
