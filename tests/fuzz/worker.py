"""The child process: runs cases and reports each on a pipe."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from typing import Any

from tests.fuzz.judge import Failure
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial, to_stderr

#: The address space of a child, so that a huge allocation is a MemoryError.
MEMORY = 4 << 30


@contextmanager
def limited_memory(size: int = MEMORY) -> Iterator[None]:
    """Limit the address space.  A sanitizer reserves terabytes, and has limits of its own.

    Parameters
    ----------
    size : int
        Bytes; 0 means no limit.
    """
    before = resource.getrlimit(resource.RLIMIT_AS)
    if size and "ASAN_OPTIONS" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def all_targets(deep: bool) -> Mapping[str, Target]:
    """The targets; imported here, because a test has targets of its own.

    Parameters
    ----------
    deep : bool
        Whether those of the deep models are included.
    """
    from tests.fuzz.targets import TARGETS, deep_targets

    return TARGETS | (deep_targets() if deep else {})


def run_case(
    target: Target, seed: int, number: int, log: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Run a case, and return what came of it.

    It runs in a folder of its own, because a random string may be the name of a file to write.

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
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            target.run(trial)
    except Failure as failure:
        result = {"kind": failure.kind, "text": failure.text}
    except Exception:  # of the target, between two calls
        result = {"kind": "error of the fuzzer", "text": traceback.format_exc()}
    return {"outcomes": dict(trial.outcomes), **result}


def main(given: Mapping[str, Target] | None = None) -> None:
    """Run the cases that stdin asks for, one line of JSON each.

    Parameters
    ----------
    given : dict of str to Target, optional
        By default all targets.
    """
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
    targets = all_targets(args.deep) if given is None else given
    with limited_memory(0 if args.deep else MEMORY):
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
