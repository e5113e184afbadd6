"""A file is written whole or not at all."""

from pathlib import Path

import pytest

from annealvi.files import replacing


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as partial:
        partial.write_text("new")
        raise ZeroDivisionError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "missing" / "topics.safetensors"
    with pytest.raises(FileNotFoundError) as raised, replacing(path):
        pass
    assert Path(raised.value.filename) == path and ".partial" not in str(raised.value)
