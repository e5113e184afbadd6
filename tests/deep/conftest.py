"""Tests of what needs PyTorch: without it the folder is skipped, with the reason."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def cuda():
    """A CUDA device, or the reason why the test is skipped."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("There is no CUDA device.")
    return torch.device("cuda")
