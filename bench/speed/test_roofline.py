"""The arithmetic rate of the local step, compared with the machine's limits; see roofline.py.

make bench
"""

from __future__ import annotations

import time

import pytest

from bench.speed import roofline

DTYPES = ("float64", "float32")


@pytest.fixture(scope="module")
def limits():
    try:
        return roofline.measure_machine()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("n_topics", [20, 100, 500])
@pytest.mark.parametrize("corpus", ["bbc_news", "debian_desc"])
@pytest.mark.benchmark(timer=time.perf_counter, group="roofline")
def test_roofline(benchmark, limits, corpus, n_topics):
    def rates():
        try:
            return {dtype: roofline.kernel_rate(corpus, n_topics, dtype) for dtype in DTYPES}
        except FileNotFoundError as error:
            pytest.skip(str(error))

    benchmark.extra_info |= {
        "row": f"{corpus}, {n_topics}",
        "rates": benchmark.pedantic(rates, rounds=1),
        "bounds": {dtype: limits.bound(dtype) for dtype in DTYPES},
        "limits": limits._asdict(),
    }
