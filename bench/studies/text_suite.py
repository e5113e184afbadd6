"""Run scikit-learn's own tests of CountVectorizer with TopicVectorizer in its place.

    python -m bench.studies.text_suite

The script prints how many tests pass, and the first line of the error of each test that fails.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from sklearn.feature_extraction.tests import test_text

from bench import parser

IMPORT = "from annealvi.topics import TopicVectorizer as CountVectorizer\n"


class Failures:
    """The tests that fail."""

    def __init__(self) -> None:
        self.n = 0
        self.messages: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.n += report.when == "call"
        if report.failed:
            self.messages[report.nodeid.split("::")[-1]] = report.longrepr.reprcrash.message


def main() -> None:
    parser(__doc__).parse_args()
    source = Path(test_text.__file__).read_text(encoding="utf-8")
    failures = Failures()
    before, after = source.split("    CountVectorizer,\n", maxsplit=1)
    end = after.index(")\n") + 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "test_text_suite.py")
        path.write_text(before + after[:end] + IMPORT + after[end:], encoding="utf-8")
        pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", str(path)], [failures])
    for name, message in failures.messages.items():
        print(f"{name}: {message.splitlines()[0][:120]}")
    print(f"{failures.n - len(failures.messages)} of {failures.n} hold")
    sys.exit(failures.n - len(failures.messages) < 124)


if __name__ == "__main__":
    main()
