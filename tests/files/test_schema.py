"""A schema writes a state as a tree, and checks each value of a tree that is read."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.files import read, write
from annealvi.files.schema import (
    Array,
    Flag,
    Generator,
    Integer,
    Listed,
    Named,
    Number,
    Optional,
    Schema,
    Strings,
    Text,
    Tree,
)
from tests.asserts import refused

STATE = Schema(
    flag=Flag(),
    text=Text("a", "b"),
    n=Integer(1, 9),
    share=Number(0, 1),
    any=Number(finite=False),
    dtype=Text("float32", "float64"),
    rows=Array(("n", None), "dtype", positive=True),
    bad=Array((2,), finite=False),
    words=Strings("n"),
    part=Schema(deep=Integer(0, "n")),
    parts=Listed(Schema(deep=Integer()), 3),
    named=Named(Number()),
    free=Tree(),
    none=Optional(Integer()),
    rng=Generator(),
)
GOOD = {
    "flag": True,
    "text": "a",
    "n": 3,
    "share": 0.5,
    "any": np.nan,
    "dtype": "float32",
    "rows": np.ones((3, 2), np.float32),
    "bad": np.array([1.0, np.inf]),
    "words": np.array(["a", "b", "c"], dtype=object),
    "part": {"deep": 1},
    "parts": [{"deep": 1}],
    "named": {"x": 1},
    "free": {},
    "none": None,
    "rng": None,
}


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
