"""The child process: runs cases and reports each on a pipe."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from tests.fuzz.judge import Failure
from tests.fuzz.targets import TARGETS, deep_targets
from tests.fuzz.targets.target import Target
from tests.fuzz.trial import Trial, to_stderr

#: The address space of a child, so that a huge allocation is a MemoryError.
MEMORY = 4 << 30


def limit_memory(size: int = MEMORY) -> None:
    """Limit the address space.  A sanitizer reserves terabytes, and has limits of its own.

    Parameters
    ----------
    size : int
        Bytes; 0 means no limit.
    """
    if size and "ASAN_OPTIONS" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def run_case(
    target: Target, seed: int, number: int, log: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Run a case, and return what came of it.

    Parameters
    ----------
    target : Target
    seed, number : int
    log : callable, optional
        Called with a line for each call.

    Returns
    -------
    dict
        ``outcomes``, and ``kind`` and ``text`` of the failure, if there is one.
    """
    trial = Trial(seed, target.name, number, log)
    result: dict[str, Any] = {}
    try:
        target.run(trial)
    except Failure as failure:
        result = {"kind": failure.kind, "text": failure.text}
    except Exception:  # of the target, between two calls
        result = {"kind": "error of the fuzzer", "text": traceback.format_exc()}
    return {"outcomes": dict(trial.outcomes), **result}


def main() -> None:
    """Run the cases that stdin asks for, one line of JSON each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--deep", action="store_true")
    args = parser.parse_args()
    report = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # estimators print if they are verbose
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    warnings.simplefilter("ignore")
    targets = TARGETS | (deep_targets() if args.deep else {})
    limit_memory(0 if args.deep else MEMORY)
    for line in sys.stdin:
        name, number = json.loads(line)
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)  # what is written now is of this case
        faulthandler.dump_traceback_later(args.limit, exit=True)
        result = run_case(targets[name], args.seed, number, to_stderr)
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps(result), file=report)


if __name__ == "__main__":
    main()
