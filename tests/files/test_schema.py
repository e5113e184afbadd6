"""A schema writes a state as a tree, and checks each value of a tree that is read."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.files import read, schema, write
from tests.asserts import refused

#: Of each field its part of the schema, and a value.
FIELDS = {
    "flag": (schema.Flag(), True),
    "text": (schema.Text("a", "b"), "a"),
    "n": (schema.Integer(1, 9), 3),
    "share": (schema.Number(0, 1), 0.5),
    "any": (schema.Number(finite=False), np.nan),
    "dtype": (schema.Text("float32", "float64"), "float32"),
    "rows": (schema.Array(("n", None), "dtype", positive=True), np.ones((3, 2), np.float32)),
    "bad": (schema.Array((2,), finite=False), np.array([1.0, np.inf])),
    "words": (schema.Strings("n"), np.array(["a", "b", "c"], dtype=object)),
    "part": (schema.Schema(deep=schema.Integer(0, "n")), {"deep": 1}),
    "parts": (schema.Listed(schema.Schema(deep=schema.Integer()), 3), [{"deep": 1}]),
    "named": (schema.Named(schema.Number()), {"x": 1}),
    "free": (schema.Tree(), {}),
    "none": (schema.Optional(schema.Integer()), None),
    "rng": (schema.Generator(), None),
}
STATE = schema.Schema(**{name: field for name, (field, _) in FIELDS.items()})
GOOD = {name: value for name, (_, value) in FIELDS.items()}


def test_what_is_written_is_read(tmp_path):
    """Of an object or of a dict; a generator goes on where it was."""
    rng = np.random.RandomState(0)
    rng.standard_normal(3)  # keeps a second normal number for later
    given = SimpleNamespace(**GOOD | {"n": np.int64(3), "rng": rng})
    write(tmp_path / "a", "test", STATE.dump(given))
    found = STATE.load(read(tmp_path / "a", "test")["tree"])
    assert_array_equal(found.pop("rng").standard_normal(9), rng.standard_normal(9))
    for name, value in found.items():
        assert_array_equal(value, GOOD[name])
    target = SimpleNamespace(n=0)
    STATE.restore(target, STATE.dump(GOOD))
    assert target.n == 3
    with pytest.raises(TypeError, match="PCG64 cannot be written"):
        STATE.dump(GOOD | {"rng": np.random.RandomState(np.random.PCG64(0))})


BAD = [
    *(("flag", 1), ("text", 3), ("text", "c"), ("n", True), ("n", 2.0), ("n", 0), ("n", 10**400)),
    *(("share", "x"), ("share", np.nan), ("share", 10**400), ("share", True), ("share", 1.5)),
    *(("any", 10**400), ("rows", np.ones((2, 2), np.float32)), ("rows", np.ones((3, 2)))),
    *(("rows", np.ones(3, np.float32)), ("rows", 0.5), ("rows", np.zeros((3, 2), np.float32))),
    *(("words", np.ones(3)), ("words", np.array(["a"])), ("part", []), ("part.deep", 4)),
    *(("parts", {}), ("parts", [{"deep": 1}] * 4), ("parts.0", 1), ("named.x", "a")),
    *(("free", 3), ("none", "a"), ("rng.key", np.zeros(3, np.uint32))),
]


@pytest.mark.parametrize(("way", "value"), BAD)
def test_anything_else_is_an_error_that_says_where(way, value):
    name, _, inner = way.partition(".")
    rng = STATE.dump(GOOD | {"rng": np.random.RandomState(0)})["rng"]
    parts = {"part": {"deep": value}, "parts": [value], "named": {"x": value}}
    parts["rng"] = rng | {"key": value}
    tree = GOOD | {name: parts[name] if inner else value}
    refused(rf"The file is damaged: 'top\.{re.escape(way)}' must be", STATE.load, tree, "top")
    del tree[name]
    if name == "none":  # what may be None may be left out, as it is by older files
        assert STATE.load(tree, "top")["none"] is None
        return
    refused(rf"'top\.{name}' is missing", STATE.load, tree, "top")
