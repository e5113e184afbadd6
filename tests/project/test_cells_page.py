"""The blocks of docs/do/cells.md run: with a file of cells, and with a stand-in of pycisTopic."""

import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from annealvi.datasets import make_topic_corpus
from bench import CHECKOUT
from tests.printed import BLOCK

PAGE = CHECKOUT / "docs" / "do" / "cells.md"
BLOCKS = [match["code"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
BACKEND = next(block for block in BLOCKS if "pycisTopic" in block)
pandas = pytest.importorskip("pandas")


@pytest.mark.slow
def test_the_page_runs(tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata")
    pytest.importorskip("formulaic")
    made = make_topic_corpus(120, 60, 3, random_state=0)
    kinds = pandas.DataFrame({"cell_type": ["a", "b"] * 60}, [f"cell{i}" for i in range(120)])
    adata = anndata.AnnData(made.data, kinds)
    adata.layers["counts"] = adata.X.copy()
    monkeypatch.chdir(tmp_path)
    adata.write_h5ad("cells.h5ad")
    namespace = {}
    for block in BLOCKS:
        if block != BACKEND:
            exec(compile(block, PAGE.name, "exec"), namespace)
    found = anndata.read_h5ad("with_topics.h5ad")
    assert_allclose(found.obsm["X_topics"], namespace["summary"].shares)
    assert pandas.read_csv("cells.csv").shape[0] == 120 and len(namespace["effects"].table)


def test_the_backend_of_pycistopic(monkeypatch):
    module = ModuleType("pycisTopic.lda_models")
    names = "metrics coherence marg_topic topic_ass cell_topic topic_region parameters"
    module.CistopicLDAModel = namedtuple("CistopicLDAModel", names)
    monkeypatch.setitem(sys.modules, "pycisTopic", ModuleType("pycisTopic"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    made = make_topic_corpus(100, 80, 3, random_state=0)
    regions, cells = [f"chr1:{j}0-{j}9" for j in range(80)], [f"cell{i}" for i in range(100)]
    binary = sparse.csr_matrix((made.data > 0).astype(np.int8).T)
    given = SimpleNamespace(binary_matrix=binary, cell_names=cells, region_names=regions)
    namespace = {}
    exec(compile(BACKEND, PAGE.name, "exec"), namespace)
    two, three = namespace["run_annealvi_models"](given, [2, 3])
    assert two.cell_topic.shape == (2, 100) and two.topic_region.shape == (80, 2)
    names = ["Topic1", "Topic2", "Topic3"]
    assert three.cell_topic.index.tolist() == three.topic_region.columns.tolist() == names
    assert three.cell_topic.columns.tolist() == cells
    assert three.topic_region.index.tolist() == regions
    assert_allclose(three.cell_topic.sum(axis=0), 1)
    assert_allclose(three.topic_region.sum(axis=0), 1)
    assert_allclose(three.marg_topic["Marg_Topic"].sum(), 1)
    assert abs(three.topic_ass["Assignments"].sum() - binary.sum()) <= 3
    columns = ["Arun_2010", "Cao_Juan_2009", "Mimno_2011", "loglikelihood"]
    assert three.metrics.columns.tolist() == columns and three.metrics.index.tolist() == ["Metric"]
    assert three.parameters.loc["n_topics", "Parameter"] == 3
    # each planted program is found, though entries are 0 or 1
    found = np.corrcoef(three.cell_topic, made.document_topics.T)
    assert found[:3, 3:].max(axis=1).min() > 0.8
