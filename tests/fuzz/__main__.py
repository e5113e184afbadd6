"""The command: search, or run one case again."""

from __future__ import annotations

import argparse
import io
import random
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tests.fuzz.run import EXAMPLES, schedule, search
from tests.fuzz.targets import OFTEN, all_targets


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments, by default those of the command line; 1 if there is a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, help="time of the search, by default 60")
    parser.add_argument("--cases", type=int, help="number of cases")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="of each case")
    parser.add_argument("--seed", type=int, help="by default another one each time")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of an example, at most")
    parser.add_argument("--target", action="append", help="only this one; may be repeated")
    parser.add_argument("--deep", action="store_true", help="the deep models too")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="NumPy raises, warnings of other libraries are errors, and arrays are read-only",
    )
    parser.add_argument("--case", metavar="SEED:TARGET:NUMBER", help="run and shrink one case")
    args = parser.parse_args(arguments)
    deep = args.deep or "deep." in (args.case or "")
    seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
    if args.case:
        seed, name, number = args.case.split(":")
        cases: Iterator[Any] = iter([(name, int(number))])
    else:
        targets = all_targets(deep)
        chosen = {name: targets[name] for name in args.target or targets}
        cases = islice(schedule(chosen, OFTEN), args.cases)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a finding may have signs that it cannot encode
        sys.stdout.reconfigure(errors="backslashreplace")
    print(f"seed {seed}", flush=True)
    start = time.monotonic()
    options = dict(jobs=args.jobs, limit=args.limit, examples=args.examples, strict=args.strict)
    options["seconds"] = args.seconds or (1e9 if args.cases else 60.0)
    report = search(cases, seed=int(seed), deep=deep, shrink=bool(args.case), **options)
    for alike in report.distinct().values():
        again = f"--case {alike[0].case} --examples {args.examples}"
        again += " --strict" if args.strict else ""
        print(f"\n{alike[0]}\n    again: python -m tests.fuzz {again}")
        print(f"    and {len(alike) - 1} like it")
    print(f"\n{report.table()}\n\n{time.monotonic() - start:.0f} s, ", end="")
    print(f"{len(report.findings)} failures, {len(report.distinct())} of them different")
    return int(bool(report.findings))


if __name__ == "__main__":
    sys.exit(main())
