"""The command: search, or run one case again."""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence

from tests.fuzz.run import search
from tests.fuzz.worker import all_targets, limited_memory, run_case


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments; 1 if there is a failure.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, help="time of the search")
    parser.add_argument("--cases", type=int, help="number of cases")
    parser.add_argument("--seed", type=int, help="by default another one each time")
    parser.add_argument("--first", type=int, default=0, help="number of each target's first case")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a case may take")
    parser.add_argument("--most", type=int, default=50, help="end after so many failures")
    parser.add_argument("--target", action="append", help="only this one; may be repeated")
    parser.add_argument("--deep", action="store_true", help="the deep models too")
    parser.add_argument("--case", metavar="SEED:TARGET:NUMBER", help="run one case in this process")
    args = parser.parse_args(arguments)
    targets = all_targets(args.deep or "deep." in (args.case or ""))
    if args.case:
        seed, name, number = args.case.split(":")
        with warnings.catch_warnings(), limited_memory():
            warnings.simplefilter("ignore")
            result = run_case(targets[name], int(seed), int(number), print)
        print(*([result["kind"], result["text"]] if "kind" in result else ["no failure"]), sep=": ")
        return int("kind" in result)
    if args.target:
        targets = {name: targets[name] for name in args.target}
    seed = random.SystemRandom().randrange(10**6) if args.seed is None else args.seed
    if args.seconds is None and args.cases is None:
        args.seconds = 60.0
    print(f"seed {seed}", flush=True)
    start = time.monotonic()
    report = search(
        targets,
        seed=seed,
        seconds=args.seconds,
        cases=args.cases,
        jobs=args.jobs,
        limit=args.limit,
        deep=args.deep,
        first=args.first,
        most=args.most,
    )
    for alike in report.distinct().values():
        print(f"\n{alike[0]}\n    again: python -m tests.fuzz --case {alike[0].case}")
        if len(alike) > 1:
            more = " ".join(finding.case for finding in alike[1:4])
            print(f"    and {len(alike) - 1} like it: {more}{' ...' * (len(alike) > 4)}")
    kinds = Counter(finding.kind for finding in report.findings)
    print(f"\n{report.table()}\n")
    print(
        f"{report.cases.total()} cases in {time.monotonic() - start:.0f} s, "
        f"{len(report.findings)} failures, {len(report.distinct())} of them different"
        + "".join(f", {count} {kind}" for kind, count in kinds.most_common())
    )
    return int(bool(report.findings))


if __name__ == "__main__":
    sys.exit(main())
