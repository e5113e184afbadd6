"""The command ``annealvi``: which command was called, and how its errors are told."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from annealvi._kernels import instruction_set, openmp_enabled
from annealvi._version import __version__
from annealvi.cli import options
from annealvi.cli.demo import demo
from annealvi.cli.fit import fit
from annealvi.cli.results import compare, label, show
from annealvi.cli.temperatures import temperatures

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
    parser = options.Parser(
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
        dest="command", required=True, metavar="COMMAND", parser_class=options.Parser
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
    "fit": (fit, options.add_fit, "find topics, write a report and a model", options.FIT),
    "label": (label, options.add_label, "tell the topics of documents", options.LABEL),
    "show": (show, options.add_show, "print the topics of a model", options.SHOW),
    "compare": (
        compare,
        options.add_compare,
        "match the topics of two models",
        options.COMPARE,
    ),
    "demo": (_demo, options.add_demo, "find topics of 3,000 abstracts, write a report", ""),
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
