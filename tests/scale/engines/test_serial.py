"""The engine in this process."""

import pytest

from annealvi._kernels import instruction_set
from annealvi.scale.engines import SerialEngine


def test_it_computes_at_once():
    engine = SerialEngine(3)
    value = engine.put([1, 2])
    results = [engine.submit(sum, value), engine.submit(max, value, slot=5)]
    assert engine.gather(results) == [3, 2]
    assert (engine.n_workers, engine.threads(), engine.n_losses) == (1, 3, 0)
    assert engine.instruction_set == instruction_set()
    assert not engine.is_lost(results[0])
    with pytest.raises(ZeroDivisionError):
        engine.submit(divmod, 1, 0)
