"""Files of every format that there was are read, and answer as they did."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import annealvi
from annealvi.files.container import FORMAT
from tests.files import formats

FILES = [
    pytest.param(path, id=f"{path.parent.name}, {path.stem}", marks=marks)
    for path in sorted(formats.FOLDER.glob("format-*/*.safetensors"))
    for marks in [(pytest.mark.deep,) if path.stem.startswith("deep") else ()]
]


@pytest.mark.parametrize("path", FILES)
def test_a_file_answers_as_it_did(path):
    # between machines and libraries roundings differ, in float32 more than in float64, and
    # iterations that end by a tolerance enlarge the differences
    tolerance = 1e-3 if path.stem.startswith("deep") or "float32" in path.stem else 1e-5
    with np.load(path.with_suffix(".npz")) as kept, warnings.catch_warnings():
        warnings.simplefilter("error")
        found = formats.answers(annealvi.load(path, **formats.given(path.stem)), kept["X"])
        assert found.keys() == set(kept) - {"X"}
        if path.stem == "deep-poisson":  # other processors draw other gamma variables
            assert found["score"] == pytest.approx(float(kept["score"]), rel=0.05)
            return
        for name, value in found.items():
            assert_allclose(value, kept[name], rtol=tolerance, err_msg=name)


def test_each_kind_has_a_file():
    there = {path.stem for path in formats.FOLDER.glob(f"format-{FORMAT}/*.safetensors")}
    assert set(formats.ESTIMATORS) <= there
    assert len({name for name in there if name.startswith("deep")}) == 4
