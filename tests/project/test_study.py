"""The quality study's parts that decide what it says: documents, choices, bars."""

import numpy as np
import pytest

from bench.studies import splits
from bench.studies.study import figure, fits, kept, scores, tables
from bench.studies.study.store import Cell, Run, Store
from bench.studies.study.summary import Result

CELL = Cell("kos", 20)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def keep(store, seed, configuration, validation, method="gensim"):
    run = Run(CELL, method, configuration, seed)
    store.save(run, np.full((2, 3), 1 / 3), {"seconds": 1.0, "passes": 2})
    store.save_scores(run, {"fold_in": [0.1, 1e-6], "validation": validation})
    return run


def result(method, test, **values):
    given = dict(
        cell=CELL,
        method=method,
        configuration="",
        passes=1,
        fold_in=(0.1, 1e-6),
        seeds=[0, 1],
        seconds=[1.0, 1.0],
        validation=[0.0, 0.0],
        test=test,
        npmi=[0.1, 0.1],
        diversity=[0.5, 0.5],
        stability=0.5,
        elbo=[],
    )
    return Result(**(given | values))


@pytest.mark.corpus
def test_documents_are_split_once_and_the_same_each_time(corpus):
    X = corpus("bbc_news")
    first, second = splits.load("bbc_news"), splits.load("bbc_news")
    assert [part.shape[0] for part in first] == [1781, 222, 222]
    assert sum(part.sum() for part in first) == X.sum()
    for a, b in zip(first, second, strict=True):
        assert (a != b).nnz == 0
    # written down: whoever changes the order changes what the study's choices have seen
    assert int(first.test[0].sum()) == 184


def test_what_was_saved_comes_back(store):
    run = keep(store, 0, "alpha=0.1, 2 passes", -7.0)
    assert store.has(run) and store.runs(CELL) == [run]
    assert store.topics(run).dtype == np.float32
    assert store.record(run)["configuration"] == "alpha=0.1, 2 passes"
    assert store.runs(Cell("kos", 100)) == []


def test_validation_at_seed_0_chooses_the_configuration(store):
    best = keep(store, 0, "a, 4 passes", -7.0)
    keep(store, 0, "a, 2 passes", -7.2)
    keep(store, 0, "b, 1 passes", -7.1)
    other = keep(store, 1, "a, 4 passes", -7.5)
    keep(store, 1, "b, 1 passes", -6.0)  # is not asked
    assert fits.chosen(store, CELL, "gensim") == [best, other]
    assert fits.chosen(store, CELL, "gensim", most_passes=3)[0].configuration == "b, 1 passes"
    assert fits.chosen(store, CELL, "tomotopy") == []


def test_the_fold_in_of_seed_0_serves_other_seeds(store):
    assert scores.settings_of(store, keep(store, 0, "a", -7.0)).alpha == 0.1


def test_bars_count_cells():
    ours = result(tables.SUBJECT, [-7.0, -7.1])
    longer = result(tables.LONGER, [-7.0, -7.12])
    theirs = result(tables.ARTM, [-7.2, -7.1], seconds=[2.0, 2.0], npmi=[0.2, 0.2])
    found = {CELL: {r.method: r for r in (ours, longer, theirs)}}
    text = tables.bars(found)
    assert "| held out: ahead | BigARTM | 21 of 21 | 1 of 1 | 0.1; 0.1 (kos, 20) | **no** |" in text
    assert "| a third of the CPU seconds at most | BigARTM | 21 of 21 | 0 of 1 | 2; 2" in text
    assert "worse by .005 at most | annealvi | 21 of 21 | 0 of 1 | -0.01; -0.01" in text


def test_bars_of_some_numbers_of_topics():
    ours = result(tables.SUBJECT, [-7.0], stability=0.7)
    theirs = result(tables.LAST, [-7.2], stability=0.6)
    text = tables.bars({CELL: {r.method: r for r in (ours, theirs)}})
    assert "| stability at K = 20: at least theirs | tomotopy, last sample |" in text
    assert "stability at K = 100" not in text


def test_results_of_rivals_are_kept(tmp_path):
    ours, gensim = result(tables.SUBJECT, [-7.0]), result("gensim", [-7.0, -7.1, -7.25])
    alone = result("BigARTM", [-7.3], stability=float("nan"), stand_in=True)
    kept.write(tmp_path / "a.json", {CELL: {r.method: r for r in (ours, gensim, alone)}})
    found = kept.read(tmp_path / "a.json")[CELL]
    assert sorted(found) == ["BigARTM", "gensim"]
    for before in (gensim, alone):
        after = found[before.method]
        assert np.mean(after.test) == pytest.approx(np.mean(before.test), abs=1e-5)
        assert len(after.test) == len(before.test)
        assert after._replace(**{name: [] for name in kept.LISTS}, stability=0) == before._replace(
            **{name: [] for name in kept.LISTS}, stability=0
        )
    assert np.std(found["gensim"].test, ddof=1) == pytest.approx(
        np.std(gensim.test, ddof=1), abs=1e-5
    )
    assert np.isnan(found["BigARTM"].stability) and found["gensim"].stability == 0.5
    kept.write(tmp_path / "b.json", {CELL: found})
    assert (tmp_path / "b.json").read_text() == (tmp_path / "a.json").read_text()
    assert kept.read(tmp_path / "no.json") == {}


def test_a_figure_is_drawn_of_what_is_there(tmp_path):
    found = {CELL: {"gensim": result("gensim", [-7.0, -7.1])}}
    figure.draw(found | {Cell("bbc_news", 100): {}}, tmp_path / "quality.png")
    assert (tmp_path / "quality.png").stat().st_size > 1000
