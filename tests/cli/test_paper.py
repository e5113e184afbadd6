"""``annealvi paper``."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import annealvi
from annealvi.metrics import topic_checksum
from annealvi.topics import describe

pytest.importorskip("matplotlib")
NAMES = ("topics", "trust", "by_group", "over_time")
TABLES = {f"{name}.{end}" for name in NAMES for end in ("csv", "tex")}
FIGURES = {f"{name}.pdf" for name in ("topics", "map", "by_group", "over_time")}


@pytest.fixture
def model(call, model):
    assert call("label-topics", model, "1=a & b").status == 0
    return model


def test_a_folder_for_a_paper(call, model, jsonl, rows):
    more = ("--group", "kind", "--time", "date")
    done = call("paper", model, jsonl, *more, "--folder", "out", "--quiet")
    assert done.status == 0 and not done.out and not done.err
    folder = done.place / "out"
    assert {path.name for path in folder.iterdir()} == TABLES | FIGURES | {"methods.txt"}
    loaded = annealvi.load(model)
    summary = describe(loaded, [row["text"] for row in rows])
    table = pd.read_csv(folder / "topics.csv", index_col="topic")
    assert table.share.is_monotonic_decreasing and table.label[1] == "a & b"
    assert table.share.to_numpy() == pytest.approx(summary.topic_shares[table.index])
    trust = pd.read_csv(folder / "trust.csv", index_col="topic")
    assert trust.probability.to_numpy() == pytest.approx(summary.probability[table.index])
    assert "similarity" not in trust and trust.index.tolist() == table.index.tolist()
    assert r"a \& b & " in (folder / "topics.tex").read_text(encoding="utf-8")
    by = pd.read_csv(folder / "by_group.csv", index_col=0)
    expected = summary.by_group([row["kind"] for row in rows])["a & b"].to_numpy()
    assert by["a & b"].to_numpy() == pytest.approx(expected)
    assert by.n_documents.tolist() == [12, 12, 12]
    over = (folder / "over_time.tex").read_text(encoding="utf-8")
    assert "period & n\\_documents & " in over and over.count("-12-31 & 12 & ") == 3
    methods = (folder / "methods.txt").read_text(encoding="utf-8")
    assert topic_checksum(loaded.lda_) in methods and "with 3 topics" in methods
    for name in FIGURES:
        assert (folder / name).read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("n_topics", [3, 12])
def test_many_groups_fit_on_a_page(call, jsonl, n_topics):
    """In LaTeX the largest groups are shown, and all others as one; the .csv file has all."""
    model = call("fit", jsonl, "--n-topics", n_topics, "--model", "m").place / "m"
    call("paper", model, jsonl, "--group", "id", "--folder", "out")
    folder = model.parent / "out"
    assert len(pd.read_csv(folder / "by_group.csv")) == 36
    lines = (folder / "by_group.tex").read_text(encoding="utf-8").splitlines()
    assert len(lines[0].split("{")[-1]) <= 12 and "27 others" in "".join(lines)
    assert len(lines) == 6 + (10 if n_topics == 3 else n_topics)


@pytest.mark.slow
def test_few_classes_stand_above_the_columns(call, model, jsonl):
    call("paper", model, jsonl, "--time", "date", "--freq", "2YE")
    path = call("show", model).place / "paper" / "over_time.tex"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith("label & 2000 (12) & 2002 (24) ") and len(lines) == 9


@pytest.mark.slow
def test_only_what_is_asked_for_and_the_same_files_each_time(call, model, jsonl):
    folders = [call("paper", model, jsonl, "--folder", name).place / name for name in ("a", "b")]
    a, b = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    tables = {"topics.csv", "topics.tex", "trust.csv", "trust.tex"}
    assert a == b and set(a) == tables | {"topics.pdf", "map.pdf", "methods.txt"}


@pytest.mark.filterwarnings("ignore:The covariate 'date' contains dates")
def test_effects(call, model, jsonl, rows):
    more = ("--formula", "~ kind + date", "--refits", 3, "--folder", "out")
    done = call("paper", model, jsonl, *more)
    assert done.status == 0 and "fitting 3 more models" in done.err
    table = pd.read_csv(done.place / "out" / "effects.csv")
    assert {"Intercept", "kind[T.space]"} <= set(table.term) and table.std_error.notna().all()
    loaded = annealvi.load(model)
    texts = [row["text"] for row in rows]
    effects = describe(loaded, texts, refits=3).effects("~ kind + date", pd.DataFrame(rows))
    assert table.estimate.to_numpy() == pytest.approx(effects.table.estimate.to_numpy())
    assert table.std_error.to_numpy() == pytest.approx(effects.table.std_error.to_numpy())
    tex = (done.place / "out" / "effects.tex").read_text(encoding="utf-8")
    assert tex.splitlines()[2].startswith("label & term & estimate & std\\_error & low & high")
    for name in ("kind", "date"):
        assert (done.place / "out" / f"effects_{name}.pdf").read_bytes().startswith(b"%PDF")
    methods = (done.place / "out" / "methods.txt").read_text(encoding="utf-8")
    assert "was fitted 3 more times" in methods
    assert not (done.place / "out" / "effects_kind.csv").exists()  # it has three values


def test_the_difference_of_two_values(call, tmp_path):
    X = sparse.random(60, 20, 0.4, "csr", rng=np.random.default_rng(0))
    X.data[:] = 1
    arrays = {name: getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    words = [f"word{n}" for n in range(20)]
    np.savez(tmp_path / "c.npz", vocab=words, side=["a", "b"] * 30, **arrays)
    model = tmp_path / "m.safetensors"
    call("fit", tmp_path / "c.npz", "--n-topics", 2, "--model", model, "--quiet")
    done = call("paper", model, tmp_path / "c.npz", "--formula", "~ side", "--quiet")
    table = pd.read_csv(done.place / "paper" / "effects_side.csv")
    assert table.estimate.is_monotonic_decreasing and len(table) == 2
    tex = (done.place / "paper" / "effects_side.tex").read_text(encoding="utf-8")
    assert tex.splitlines()[2] == r"label & b minus a & std\_error & low & high \\"
    # the words of counts are given: no vocabulary was chosen
    assert "vocabulary was learned from" not in (done.place / "paper" / "methods.txt").read_text()


def test_wrong_input(refused, call, model, jsonl):
    assert "--folder" in refused("paper", model, jsonl, "--folder", model)
    assert "--folder" in refused("paper", model, jsonl, "--folder", "no/where")
    assert "--group must be a column of" in refused("paper", model, jsonl, "--group", "side")
    assert "--freq" in refused("paper", model, jsonl, "--time", "date", "--freq", "no")
    assert "--time" in refused("paper", model, jsonl, "--time", "text")
    assert "--formula" in refused("paper", model, jsonl, "--formula", "~ side", "--refits", "2")
    done = call("paper", model, jsonl, "--formula", "~ side", "--refits", 2)
    assert "more times" not in done.err  # before the fits
    assert "at least 2" in refused("paper", model, jsonl, "--refits", "1")
