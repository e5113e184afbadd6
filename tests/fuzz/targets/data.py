"""annealvi.datasets: the makers, and the loaders by name.  Damaged files are in `files`."""

from __future__ import annotations

import tempfile
from typing import Any

from annealvi import datasets
from tests.fuzz.target import Target
from tests.fuzz.trial import Trial
from tests.fuzz.values import Kind, array, flag, mostly, odd, parameters, real, seed, whole

TOPICS = dict(
    n_documents=whole(1, 20),
    n_features=whole(1, 20),
    n_topics=whole(1, 5),
    document_length=mostly(real(1.0, 200.0, most=1e4), 0.5),
    doc_topic_prior=mostly(real(1e-3, 10.0), 1e-300, 1e-10, 1e30),
    topic_word_prior=mostly(real(1e-3, 10.0), 1e-300, 1e-10, 1e30),
    random_state=seed,
)
SHAPES = dict(
    n_samples=whole(1, 20),
    shapes=Kind(lambda t: t.one_of(None, array((3, 7), positive=False).good(t))),
    prior_probability=mostly(real(1e-3, 1.0), 0, 1),
    noise_variance=mostly(real(1e-3, 10.0), 0, 1e300),
    random_state=seed,
)


def _topics(t: Trial) -> None:
    given = dict(n_documents=5, n_features=7, n_topics=2) | parameters(t, TOPICS)
    t.call("make_topic_corpus", datasets.make_topic_corpus, **given)


def _mixture(t: Trial) -> None:
    given = dict(n_samples=9) | parameters(t, SHAPES)
    t.call("make_shape_mixture", datasets.make_shape_mixture, **given)


def _names(t: Trial) -> None:
    """Names of files that are not there, or not names."""
    load: Any = t.one_of(datasets.load_corpus, datasets.load_images)
    name = t.one_of("nothing", "", "..", "a/b", "a\0b", odd(t))
    with tempfile.TemporaryDirectory() as folder:
        home = t.one_of(folder, folder, None, odd(t))
        t.call(load.__name__, load, name, data_home=home, allows=(OSError,))


def _bundled(t: Trial) -> None:
    names = [name for name in ("return_X_y", "texts") if t.chance(0.5)]
    options = {name: t.one_of(flag.good(t), odd(t)) for name in names}
    t.call("load_arxiv_abstracts", datasets.load_arxiv_abstracts, **options)
    t.call("load_shapes", datasets.load_shapes)


TARGETS = (
    Target("make_topic_corpus", _topics, frozenset(["make_topic_corpus"])),
    Target("make_shape_mixture", _mixture, frozenset(["make_shape_mixture"])),
    Target("load_by_name", _names, frozenset(["load_corpus", "load_images"])),
    Target("load_bundled", _bundled, frozenset(["load_arxiv_abstracts", "load_shapes"])),
)
