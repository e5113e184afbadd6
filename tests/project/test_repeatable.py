"""A run of the tests draws the same random examples as any other run."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(autouse=True)
def default_profile(request):
    if request.config.getoption("--hypothesis-profile"):
        pytest.skip("another profile than that of make test is asked for")


def examples():
    """What a test of integers is given."""
    drawn = []

    @given(st.integers(0, 10**9))
    def collect(number):
        drawn.append(number)

    collect()
    return drawn


def test_examples_are_the_same_in_every_run():
    assert settings.default.derandomize and settings.default.database is None
    first = examples()
    assert len(set(first)) > 20
    assert examples() == first


def test_examples_do_not_depend_on_the_modules_loaded(tmp_path, monkeypatch):
    """Which modules are loaded depends on the tests that the process has run before."""
    constants = [10**6 + 1009 * number for number in range(1000)]
    (tmp_path / "has_constants.py").write_text(f"CONSTANTS = {constants}\n")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("has_constants")
    try:

        @settings(max_examples=1000)
        @given(st.integers(0, 2 * 10**9))  # Hypothesis keeps the constants of each range
        def collect(number):
            assert number not in constants

        collect()
    finally:
        del sys.modules["has_constants"]
