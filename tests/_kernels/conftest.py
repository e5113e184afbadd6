"""Kernels run with each instruction set, in `make test` too."""

import pytest

from annealvi import _kernels


@pytest.fixture(params=_kernels.available_instruction_sets())
def instruction_set(request):
    """Run the test with each build of the kernels that this processor can run."""
    before = _kernels.instruction_set()
    _kernels.use_instruction_set(request.param)
    yield request.param
    _kernels.use_instruction_set(before)
