"""The format of files: what is written is read again, and damage is noticed."""

import errno
import json
import os
import random
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pprint import pformat
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse

from annealvi.corpus import open_corpus, write_corpus
from annealvi.files import container, read, replacing, write
from tests.asserts import refused
from tests.marks import cases

TREE = {
    "none": None,
    "flags": [True, False],
    "numbers": {"small": -3, "large": 2**60, "float": 0.1, "nan": np.nan, "inf": [-np.inf, np.inf]},
    "text": 'naïve \u2028 "quoted"',
    "array": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.empty((0, 4)),
    "point": np.array(3.5),
    "dtypes": [np.arange(3).astype(dtype) for dtype in container.DTYPES.values()],
    "bools": np.array([True, False]),
    "column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "words": np.array(["größer", "", "b"], dtype=object),
    "scalar": np.float64(2.5),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.safetensors"
    write(path, "test", TREE)
    return path


def test_what_is_written_is_read(path):
    tree = read(path, "test")["tree"]
    assert pformat(tree) == pformat(TREE | {"scalar": 2.5})  # with types, dtypes and shapes
    assert not tree["array"].flags.writeable


@cases("value", object(), {1: 2}, {"$": 1}, np.array([1j]), np.array([object()]), b"bytes", {1, 2})
def test_nothing_else_is_written(tmp_path, value):
    refused("cannot be written", write, tmp_path / "a", "test", {"value": value}, error=TypeError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError, container.SafetensorError])
def test_an_old_file_stays_until_the_new_one_is_complete(path, monkeypatch, error):
    def fail(*args, **options):
        raise error("No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(container, "save_file", fail)
    refused("No space", write, path, "test", {}, error=OSError)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_permissions_are_the_usual_ones(path):
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    write(path, "test", TREE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@cases(
    "name, error",
    ("chmod", errno.EPERM),
    ("fsync", errno.EINVAL),
    ("fsync", errno.ENOTSUP),
    ("replace", errno.EBUSY),
)
def test_what_a_share_refuses_is_not_lost(path, monkeypatch, name, error):
    monkeypatch.setattr(os, name, Mock(side_effect=OSError(error, os.strerror(error))))
    write(path, "test", {"a": 2})
    assert read(path, "test")["tree"] == {"a": 2} and list(path.parent.iterdir()) == [path]
    write_corpus(path.parent / "corpus", [sparse.csr_matrix([[1.0, 2.0]])])
    assert open_corpus(path.parent / "corpus").sum() == 3


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_contents_that_did_not_reach_the_disk(path, monkeypatch, error):
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(error, os.strerror(error))))
    refused(os.strerror(error), write, path, "test", {"a": 2}, error=OSError)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def forged(path, change, **arrays):
    """The file with another description, or other arrays, and a checksum that is right."""
    with safe_open(path, "numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()} | arrays  # noqa: SIM118
        plain = change(json.loads(file.metadata()[container.TREE]))
    text = plain if isinstance(plain, str) else json.dumps(plain)
    header = {container.TREE: text, container.CHECKSUM: container._checksum(text, tensors)}
    save_file(tensors, path, metadata=header)


@cases(
    "change, message",
    (lambda plain: plain | {"format": 4}, "has format 4, .* Use a newer annealvi"),
    (lambda plain: plain | {"format": 2}, "has format 2, .* Fit the model again"),
    (lambda plain: plain | {"format": "1"}, "damaged: .*'format' must be an int .* Got '1'"),
    (lambda plain: {"tree": {}}, "'kind' is missing"),
    (lambda plain: [], "must be a dict"),
    (lambda plain: "[" * 100_000, "is damaged: "),
    (lambda plain: "{", "is damaged: "),
    (lambda plain: plain | {"tree": [1]}, "'tree' must be a dict"),
    *(
        (lambda plain, mark=mark: plain | {"tree": {"a": {"$": mark}}}, "has the invalid entry")
        for mark in ({"array": "b"}, {"strings": "x"}, {"strings": [1]}, {"float": "1"}, 1)
    ),
    (
        lambda plain: plain | {"tree": {**plain["tree"], "again": plain["tree"]["array"]}},
        "has the invalid entry",  # a small file could otherwise take any memory, by copies
    ),
)
def test_descriptions_of_strangers(path, change, message):
    forged(path, change)
    refused(message, read, path, "test")


def test_a_file_of_another_kind_or_program(tmp_path):
    write(tmp_path / "c", "test", {})
    refused(r"must be a file of kind 'other'\. Got kind 'test'", read, tmp_path / "c", "other")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none", "test")
    save_file({"a": np.zeros(3)}, tmp_path / "a")
    refused(
        r"a' is not an annealvi file.* it was not written by annealvi", read, tmp_path / "a", "test"
    )
    (tmp_path / "b").write_bytes(b"PK\x03\x04 something else")
    refused("not an annealvi file, or it is damaged", read, tmp_path / "b", "test")


@pytest.mark.slow
def test_every_flipped_bit_and_every_cut_is_noticed(path):
    content = path.read_bytes()
    rng = random.Random(0)
    for _ in range(1500):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        refused(r"some\.safetensors|The file is damaged", read, path, "test")
    for _ in range(300):
        path.write_bytes(content[: rng.randrange(len(content))])
        refused(r"some\.safetensors", read, path, "test")


def test_arrays_keep_their_order(tmp_path):
    """A product with the same matrix in another order may round differently."""
    arrays = {
        "c": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(12.0).reshape(2, 6)[:, ::2],
        "deep": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
        "row": np.ones((1, 3)),
    }
    write(tmp_path / "a", "test", arrays)
    found = read(tmp_path / "a", "test")["tree"]
    for name, array in arrays.items():
        assert_array_equal(found[name], array, strict=True)
        flags = found[name].flags
        order = (True, False) if name in ("f", "deep") else (name == "row", True)
        assert (flags.f_contiguous, flags.c_contiguous) == order


def test_a_long_array_of_nothing(path):
    write(path, "test", {"a": np.empty((container.LONGEST_EMPTY, 0))})
    read(path, "test")
    write(path, "test", {"a": np.empty((10**12, 0))})
    refused(r"without elements has the shape \[1000000000000, 0\]", read, path, "test")


@pytest.mark.parametrize("dtype", [np.float16, np.complex64])
def test_an_array_of_another_dtype(path, dtype):
    try:
        forged(path, lambda plain: plain, more=np.ones(3, dtype))
    except container.SafetensorError:
        pytest.skip(f"this version of safetensors has no {dtype.__name__}")
    refused(r"damaged: arrays of .* are not supported", read, path, "test")


def test_a_link_stays_a_link(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    write(link, "test", {"a": 1})
    assert link.is_symlink() and read(path, "test")["tree"] == {"a": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        received = pool.submit(pipe.read_bytes)
        write(pipe, "test", {"a": 1})
        (tmp_path / "x").write_bytes(received.result(10))
    assert pipe.is_fifo() and read(tmp_path / "x", "test")["tree"] == {"a": 1}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["some.safetensors", "new"])
def test_a_folder_that_refuses_hidden_files(path, monkeypatch, name):
    def touch(file, *args, **options):
        if file.parent == path.parent:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))
        made(file, *args, **options)

    made = Path.touch
    monkeypatch.setattr(Path, "touch", touch)
    monkeypatch.setattr(container.tempfile, "tempdir", str(path.parent.parent))
    write(path.with_name(name), "test", {"a": 2})
    assert read(path.with_name(name), "test")["tree"] == {"a": 2}
    assert {each.name for each in path.parent.iterdir()} == {path.name, name}
    assert not list(path.parent.parent.glob("*.partial"))


def test_a_long_name(tmp_path):
    path = tmp_path / ("n" * 250)
    write(path, "test", {"a": 1})
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "missing" / "topics.safetensors"
    with pytest.raises(FileNotFoundError) as raised, replacing(path):
        pass
    assert Path(raised.value.filename) == path and ".partial" not in str(raised.value)


def test_many_strings_need_no_space_in_the_header(tmp_path):
    strings = np.array([f'größer-{n}\n"' for n in range(20_000)], dtype=object)
    texts = strings.tolist()  # as a parameter of a vectorizer
    write(tmp_path / "x", "test", {"words": strings, "few": strings[:3], "texts": texts})
    tree = read(tmp_path / "x", "test")["tree"]
    assert_array_equal(tree["words"], strings)
    assert tree["texts"] == texts
    assert_array_equal(tree["few"], strings[:3])
    assert int.from_bytes((tmp_path / "x").read_bytes()[:8], "little") < 1000


@pytest.mark.parametrize("content", [b"[1]", b"{}", b"\xff", b"["])
def test_damaged_strings_are_refused(content, tmp_path, monkeypatch):
    made = container._flatten_array

    def damaged(array, path, tensors):
        reference = made(array, path, tensors)
        tensors[path] = np.frombuffer(content, np.uint8)
        return reference

    monkeypatch.setattr(container, "_flatten_array", damaged)
    for words in (["a"] * 20_000, np.array(["a"] * 20_000, dtype=object)):
        write(tmp_path / "x", "test", {"words": words})
        refused("damaged", read, tmp_path / "x", "test")
