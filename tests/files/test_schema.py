"""Values of a file are checked when they are asked for."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from annealvi.files import Node, generator_state, read, restore_generator, write

NODE = Node(
    {
        "flag": True,
        "text": "a",
        "count": 3,
        "share": 0.5,
        "nan": np.nan,
        "huge": 10**400,
        "rows": np.ones((2, 3)),
        "bad": np.array([1.0, np.inf]),
        "zero": np.zeros(2),
        "words": np.array(["a", "b"], dtype=object),
        "part": {"deep": 1},
        "parts": [{"deep": 1}, {}],
        "mixed": [1],
        "none": None,
    },
    "top",
)


def test_what_is_asked_for():
    assert NODE.boolean("flag") is True and NODE.string("text", ["a", "b"]) == "a"
    assert NODE.integer("count", 3, 3) == 3 and NODE.number("count") == 3.0
    assert NODE.number("share", 0, 1) == 0.5 and np.isnan(NODE.number("nan", finite=False))
    assert NODE.array("rows", (2, None), float, positive=True).shape == (2, 3)
    assert NODE.array("bad", (2,), float, finite=False)[1] == np.inf
    assert list(NODE.strings("words", 2)) == ["a", "b"]
    assert NODE.node("part").integer("deep") == 1 and len(NODE.nodes("parts")) == 2
    assert NODE.is_none("none") and "none" in NODE and "other" not in NODE


@pytest.mark.parametrize(
    "ask",
    [
        lambda node: node.integer("other"),
        lambda node: node.boolean("count"),
        lambda node: node.integer("flag"),
        lambda node: node.integer("share"),
        lambda node: node.integer("count", 4),
        lambda node: node.string("count"),
        lambda node: node.string("text", ["b"]),
        lambda node: node.number("text"),
        lambda node: node.number("nan"),
        lambda node: node.number("huge"),
        lambda node: node.number("flag"),
        lambda node: node.number("share", 1),
        lambda node: node.array("rows", (2, 2), float),
        lambda node: node.array("rows", (6,), float),
        lambda node: node.array("rows", (2, 3), np.float32),
        lambda node: node.array("share", (), float),
        lambda node: node.array("bad", (2,), float),
        lambda node: node.array("zero", (2,), float, positive=True),
        lambda node: node.strings("rows"),
        lambda node: node.strings("words", 3),
        lambda node: node.node("parts"),
        lambda node: node.nodes("part"),
        lambda node: node.nodes("parts", 1),
        lambda node: node.nodes("mixed"),
        lambda node: node.items("part"),
        lambda node: node.node("part").integer("deep", 2),
    ],
)
def test_anything_else_is_an_error_that_says_where(ask):
    with pytest.raises(ValueError, match=r"The file is damaged: 'top\.[a-z.]+'"):
        ask(NODE)


def test_a_generator_goes_on(tmp_path):
    rng = np.random.RandomState(0)
    rng.standard_normal(3)  # keeps a second normal number for later
    write(tmp_path / "a", "test", {"rng": generator_state(rng)})
    again = restore_generator(Node(read(tmp_path / "a", "test")["tree"]).node("rng"))
    assert_array_equal(again.standard_normal(9), rng.standard_normal(9))
    assert generator_state(None) is None


def test_only_numpys_default_generator():
    with pytest.raises(TypeError, match="PCG64 cannot be written"):
        generator_state(np.random.RandomState(np.random.PCG64(0)))
