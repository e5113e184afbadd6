"""What may be the X of a fit on workers."""

from pathlib import Path

import numpy as np
from dask import array as da
from dask import delayed
from scipy import sparse

from annealvi.dask.sources import are_partitions, as_engine, is_array, sources_of
from annealvi.scale.engines import DaskEngine, SerialEngine
from tests.asserts import refusals


def test_sources(workers):
    X = da.ones((6, 4), chunks=(2, 4))
    assert is_array(X) and are_partitions(X)
    assert len(sources_of(X)) == 3
    several = [delayed(np.ones)(3), workers.submit(sum, [1, 2]), "path", Path("path")]
    assert are_partitions(several) and sources_of(tuple(several)) == several
    for other in (np.ones((2, 2)), sparse.eye(3), [], [[1, 2]], "path", 3):
        assert not is_array(other) and not are_partitions(other)


test_what_is_no_source = refusals(
    sources_of,
    (da.ones((6, 4), chunks=(2, 2)), r"documents only. .* Use X.rechunk\({1: -1}\)"),
    (da.ones(4), r"Expected 2D array as X, got 1D array"),
    ("path", "a dask array .* or a list of paths, .*Got 'path'"),
    (sparse.eye(3, format="csr"), "a dask array whose blocks are CSR matrices"),
    ([sparse.eye(3, format="csr")], "or a list of paths, delayed blocks or futures"),
)


def test_engines(workers):
    engine = SerialEngine()
    assert as_engine(engine) is engine and isinstance(as_engine(workers), DaskEngine)
