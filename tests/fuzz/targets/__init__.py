"""The targets: what is fuzzed, by name."""

from __future__ import annotations

from importlib.util import find_spec

from tests.fuzz.target import Target
from tests.fuzz.targets import (
    corpora,
    data,
    disk,
    files,
    lda,
    metrics,
    mixtures,
    partition,
    pictures,
    plots,
    proximity,
    saved,
    summaries,
    temperatures,
    texts,
    topics,
    workers,
)

_MODULES = (
    *(lda, mixtures, metrics, temperatures, partition, proximity, data, plots, files, saved),
    *(pictures, summaries, texts, topics, corpora, disk, workers),
)
#: All targets but those of deep models, by name.
TARGETS: dict[str, Target] = {
    target.name: target for module in _MODULES for target in module.TARGETS
}


def deep_targets() -> dict[str, Target]:
    """The targets that need PyTorch; none where it is not installed."""
    if find_spec("torch") is None:
        return {}
    from tests.fuzz.targets import deep

    return {target.name: target for target in deep.TARGETS}
