"""Tests of what needs PyTorch: without it the folder is left out."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["*test_*.py"]  # in the folders below as well


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.deep)


@pytest.fixture
def cuda():
    """A CUDA device, or the reason why the test is skipped."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("There is no CUDA device.")
    return torch.device("cuda")
