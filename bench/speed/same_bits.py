"""Check that fits are identical, bit for bit: with two commits, or with a commit and a file.

    python -m bench.speed.same_bits BASE HEAD       build both commits and compare them
    python -m bench.speed.same_bits --write FILE    write the digests of the package imported
    python -m bench.speed.same_bits --against FILE  compare the package imported with a file
    python -m bench.speed.same_bits --golden        write the golden values that a test checks

The fits are those of fits.py.  A digest is the SHA-256 of the attributes of a fit (topics,
components, temperatures, history) and of the results of its methods (transform, score).  The script
prints the names of fits that differ, and how many arrays and numbers it compared.  The exit status
is 1 if a fit differs.  Names that have changed since BASE, or since the file was written, stand in
renames.py.  Fits of annealvi.deep are left out if PyTorch is not installed.  They are not in the
golden values, because their results depend on the machine.  All other fits are identical on every
processor (docs/look_up/promises.md).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import CHECKOUT, parser
from bench.speed.builds import install, output, run_module
from bench.speed.renames import RESULTS

#: The file of the digests of fits that are identical on every machine.
GOLDEN = CHECKOUT / "tests" / "project" / "golden_fits.json"
#: Entries of a history that differ between two identical fits.
NOT_REPEATED = {"seconds"}


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays, numbers and strings of a nested value, each with its place."""
    if isinstance(value, dict):
        for key in value:
            if key not in NOT_REPEATED:
                yield from leaves(value[key], f"{name}.{RESULTS.get(key, key)}")
    elif isinstance(value, (list, tuple)):
        for number, element in enumerate(value):
            yield from leaves(element, f"{name}.{number}")
    else:
        yield name, value


def digest(value: Any) -> str:
    """Compute the SHA-256 of a nested value, including the dtype and shape of each array."""
    total = hashlib.sha256()
    for name, leaf in leaves(value):
        total.update(name.encode())
        if isinstance(leaf, (np.ndarray, np.generic, float, int)):
            array = np.ascontiguousarray(leaf)
            total.update(f"{array.dtype}{array.shape}".encode())
            total.update(array.tobytes())
        else:
            total.update(repr(leaf).encode())
    return total.hexdigest()


def digests_and_sizes(deep: bool = True) -> tuple[dict[str, str], dict[str, int]]:
    """Make every fit with the imported package; return their digests and numbers of arrays."""
    from bench.speed.fits import deep_fits, portable_fits

    fits = portable_fits()
    if deep:
        fits |= deep_fits()
    table = {}
    sizes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in fits.items():
            result = fit()
            table[name] = digest(result)
            sizes[name] = len(list(leaves(result)))
    return table, sizes


def digests(deep: bool = True) -> dict[str, str]:
    """Compute the digest of every fit with the imported package."""
    return digests_and_sizes(deep)[0]


def digests_of(revision: str) -> tuple[dict[str, str], dict[str, int]]:
    """Compute the digest and the size of every fit with the package of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        site = install(revision, Path(folder))
        printed = output(run_module(site, "bench.speed.same_bits", "--json"))
    table, sizes = json.loads(printed.splitlines()[-1])
    return table, sizes


def compare(before: dict[str, str], after: dict[str, str], sizes: dict[str, int]) -> int:
    """Print which fits differ, and return the exit status; `sizes` are the numbers of arrays."""
    common = before.keys() & after.keys()
    differing = [name for name in common if before[name] != after[name]]
    for name in sorted(before.keys() ^ after.keys()):
        print(f"only on one side: {name}")
    for name in sorted(differing):
        print(f"DIFFERS: {name}")
    n_same = len(common) - len(differing)
    n_arrays = sum(sizes[name] for name in common)
    print(f"{n_same} fits are the same to the last bit, {len(differing)} differ")
    print(f"{n_arrays} arrays and numbers were compared, {len(RESULTS)} under another name")
    return int(bool(differing or not n_same))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("revisions", nargs="*", metavar="BASE HEAD")
    options.add_argument("--write", type=Path, metavar="FILE")
    options.add_argument("--against", type=Path, metavar="FILE")
    options.add_argument("--golden", action="store_true")
    options.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.json:
        print(json.dumps(digests_and_sizes()))
        return 0
    if arguments.write or arguments.golden:
        text = json.dumps(digests(deep=not arguments.golden), indent=1)
        (arguments.write or GOLDEN).write_text(f"{text}\n", "utf-8")
        return 0
    if arguments.against:
        return compare(json.loads(arguments.against.read_text("utf-8")), *digests_and_sizes())
    if len(arguments.revisions) != 2:
        options.error("give two revisions, --write or --against")
    base, head = arguments.revisions
    before, sizes = digests_of(base)
    after, _ = digests_of(head)
    return compare(before, after, sizes)


if __name__ == "__main__":
    sys.exit(main())
