"""Cells by genes or regions: names, orientation, layers, what is refused; and what comes back."""

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.io import mmwrite

from annealvi import TopicModel, corpus
from annealvi.cli import main
from annealvi.corpus.cells import unique
from annealvi.topics import describe
from annealvi.topics.cells import otsu
from tests.asserts import refused
from tests.marks import cases

GENES = [f"gene{j}" for j in range(12)]
CELLS = [f"cell{i}" for i in range(40)]
X = np.random.RandomState(0).poisson(1.0, (40, 12)).astype(np.float32)
X *= np.arange(12) // 4 == np.arange(40)[:, None] % 3


@pytest.fixture
def adata():
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    kinds = pandas.DataFrame({"kind": pandas.Categorical(list("abc") * 13 + ["a"])}, CELLS)
    made = anndata.AnnData(sparse.csr_matrix(X), kinds, pandas.DataFrame(index=GENES))
    made.layers["log"] = made.X.log1p()
    return made


def fitted(*source, **options):
    return TopicModel(3, random_state=0).fit_counts(*source, **options)


def test_all_doors_lead_to_the_same_fit(adata, tmp_path):
    anndata = pytest.importorskip("anndata")
    path, packed, dense = (tmp_path / f"{name}.h5ad" for name in ("plain", "packed", "dense"))
    adata.write_h5ad(path)
    adata.layers["counts"], adata.raw, adata.X = adata.X.copy(), adata.copy(), adata.layers["log"]
    adata.write_h5ad(packed, compression="gzip")
    anndata.AnnData(X, adata.obs, adata.var).write_h5ad(dense)
    expected = fitted(X, GENES)
    for source, layer in (
        (adata, "counts"),
        (adata, "raw"),
        (packed, "counts"),
        (str(packed), "raw"),
        (path, None),
        (dense, None),
        (anndata.read_h5ad(path, backed="r"), None),
        (anndata.read_h5ad(path, backed="r")[:, GENES], None),
    ):
        model = fitted(source, layer=layer)
        assert model.feature_names_.tolist() == GENES
        assert_array_equal(model.components_, expected.components_)
        cells = corpus.read_cells(source, layer=layer)
        assert cells.document_names.tolist() == CELLS and list(cells.columns) == ["kind"]
    assert_array_equal(corpus.open_corpus(packed, layer="counts").toarray(), X)


def test_blocks_of_rows(adata, tmp_path, monkeypatch):
    """Files are read some rows at a time, and those that cannot be are read as a whole."""
    monkeypatch.setattr("annealvi.corpus.cells.ENTRIES", 30)
    adata.write_h5ad(tmp_path / "a.h5ad")
    assert_array_equal(corpus.open_corpus(tmp_path / "a.h5ad").toarray(), X)
    adata.X = adata.X.tocsc()
    adata.write_h5ad(tmp_path / "b.h5ad")
    with pytest.warns(UserWarning, match="stores a CSC matrix, so all of it is read"):
        assert_array_equal(corpus.open_corpus(tmp_path / "b.h5ad").toarray(), X)


def test_memory_does_not_grow_with_the_file(adata, tmp_path, monkeypatch):
    monkeypatch.setattr("annealvi.corpus.cells.ENTRIES", 1 << 14)
    anndata = pytest.importorskip("anndata")
    peaks = []
    for n in (100, 1000):
        big = sparse.csr_matrix(np.ones((n, 1000), dtype=np.float32))
        anndata.AnnData(big).write_h5ad(tmp_path / f"{n}.h5ad")
        tracemalloc.start()
        corpus.open_corpus(tmp_path / f"{n}.h5ad")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 1e6  # of the 8 MB of the larger one


def test_files_that_are_refused(adata, tmp_path):
    path = tmp_path / "a.h5ad"
    adata.write_h5ad(path)
    refused("must be one of .'log'.. Got 'counts'", fitted, path, layer="counts")
    refused("must be one of .'log'.. Got 'counts'", fitted, adata, layer="counts")
    refused("must be one of .'log'.. Got 'raw'", fitted, adata, layer="raw")
    refused("integer counts. Got .* Logarithms and weights", fitted, path, layer="log")
    refused("integer counts. Got .* Logarithms and weights", fitted, adata, layer="log")
    empty = adata[:0].copy()
    empty.write_h5ad(tmp_path / "empty.h5ad")
    for source in (empty, tmp_path / "empty.h5ad"):
        refused("with at least one|minimum of 1 is required|0 documents", fitted, source)
    adata.X = -adata.X
    adata.write_h5ad(tmp_path / "negative.h5ad")
    for source in (adata, tmp_path / "negative.h5ad"):
        refused("non-negative. Got -", fitted, source)
    content = path.read_bytes()
    for damaged in (content[:-2000], content[:100], b"", content.replace(b"indptr", b"indptx")):
        path.write_bytes(damaged)
        refused("a.h5ad' cannot be read as AnnData", fitted, path)
    refused("none.h5ad", fitted, tmp_path / "none.h5ad", error=FileNotFoundError)


def test_transposed(adata):
    barcodes = ["ACGTACGTACGTACGT-1"[:i] + "A" + "ACGTACGTACGTACGT-1"[i + 1 :] for i in range(16)]
    turned = adata[:16].copy()
    turned.obs_names = unique(barcodes)
    with pytest.warns(UserWarning, match="names of the columns look like barcodes of cells"):
        fitted(turned.T)
    turned.var_names = [f"chr1:{j}00-{j}99" for j in range(12)]
    fitted(turned)
    turned.obs_names = GENES + CELLS[:4]
    with pytest.warns(UserWarning, match="names of the rows look like regions of a genome"):
        corpus.read_cells(turned.T)
    refused("rows. If X is transposed", fitted, X.T, GENES)


def test_back_into_anndata(adata, tmp_path):
    anndata = pytest.importorskip("anndata")
    adata.X = sparse.csr_matrix(X * (np.arange(40) > 0)[:, np.newaxis])
    with pytest.warns(UserWarning, match="1 of the 40"):
        model = fitted(adata)
    turned, summary = (describe(model, own) for own in (adata[:, ::-1].copy(), adata))
    assert_allclose(turned.shares, summary.shares, atol=1e-6)
    more = anndata.AnnData(obs=adata.obs, var=adata.var.reindex([*GENES[::-1], "other"]))
    found = summary.to_anndata(more)
    assert found is more
    found.write_h5ad(tmp_path / "a.h5ad")
    found = anndata.read_h5ad(tmp_path / "a.h5ad")
    assert_array_equal(found.obsm["X_topics"], summary.shares)
    assert_array_equal(found.varm["topics"][:12][::-1].T, summary.topics)
    assert not found.varm["topics"][12].any()
    inside = {(*GENES[::-1], "other")[j] for j in np.flatnonzero(found.varm["in_topics"][:, 0])}
    assert inside == set(summary.members(0)["word"])
    table = summary.document_table
    assert table.index.tolist() == CELLS and table.iloc[0, :3].isna().all()
    topics = summary.document_topics[1:]
    assert found.obs["topic"].tolist()[1:] == table.topic.tolist()[1:] == topics.tolist()
    assert found.obs["topic_label"].tolist()[1:] == [summary.labels[k] for k in topics]
    assert table.label.tolist()[1:] == found.obs["topic_label"].tolist()[1:]
    assert_array_equal(found.obs["topic_share"][1:], summary.shares[np.arange(1, 40), topics])
    assert np.isnan(found.obs["topic_share"].iloc[0])
    assert found.uns["topics"]["labels"].tolist() == [*summary.labels]
    assert_array_equal(summary.word_table.loc[GENES].to_numpy().T, summary.topics)
    refused("an AnnData of the 40 cells", summary.to_anndata, adata[:3])
    assert_array_equal(summary.to_anndata().X.toarray(), adata.X.toarray())
    by = summary.by_group(adata.obs["kind"][::-1])  # by the names of cells
    assert by.loc["a"].iloc[1:].idxmax() == table.label["cell3"]


def test_members_are_those_above_the_threshold():
    pytest.importorskip("pandas")
    assert otsu(np.array([0.1, 5.0, 0.2, 5.1, 0.1])) == 0.2
    summary = describe(fitted(X, GENES), X)
    for k in range(3):
        found = summary.members(k)
        first = GENES.index(summary.words(k, 1, 1.0)[0]) // 4 * 4
        assert set(found["word"]) == set(GENES[first : first + 4])
        assert summary.members(k, 2)["word"].tolist() == found["word"].tolist()[:2]


@pytest.fixture
def folder(tmp_path):
    with gzip.open(tmp_path / "matrix.mtx.gz", "wb") as file:
        mmwrite(file, sparse.coo_matrix(X.T.astype(int)))
    (tmp_path / "features.tsv").write_text("".join(f"ENSG{g}\t{g}\tGene\n" for g in GENES))
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress("\n".join(CELLS).encode()))
    return tmp_path


def test_a_folder_of_10x(folder):
    for source in (folder, folder / "matrix.mtx.gz"):
        cells = corpus.read_cells(source)
        assert_array_equal(cells.data.toarray(), X)
        assert cells.feature_names.tolist() == GENES and cells.document_names.tolist() == CELLS
    assert_array_equal(fitted(folder).components_, fitted(X, GENES).components_)
    assert_array_equal(corpus.open_corpus(folder).toarray(), X)
    (folder / "features.tsv").unlink()
    refused("'words' .* must be a list of words, because X has no column names", fitted, folder)
    assert_array_equal(fitted(folder, GENES).components_, fitted(X, GENES).components_)


@pytest.mark.parametrize("ending", [b"", b" ", b"\r", b"\r\n", b" \n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_the_last_line_may_lack_its_end(tmp_path, ending, pack):
    """SciPy's reader crashes the process at what follows the last number of a file."""
    text = b"%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 1 4\n2 3 5" + ending
    (tmp_path / "counts.mtx").write_bytes(pack(text))
    X = corpus.read_cells(tmp_path / "counts.mtx").data
    assert_array_equal(X.toarray(), [[4, 0, 0], [0, 0, 5]])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_null_characters_in_counts(tmp_path, pack):
    text = b"%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 1\0 4\n2 3 5\0"
    (tmp_path / "counts.mtx").write_bytes(pack(text))
    refused("counts.mtx' cannot be read .* Line 3", corpus.read_cells, tmp_path / "counts.mtx")


def test_names_in_other_files(folder):
    (folder / "features.tsv").rename(folder / "S1_features.tsv")
    (folder / "matrix.mtx.gz").rename(folder / "S1_matrix.mtx.gz")
    cells = corpus.read_cells(folder / "S1_matrix.mtx.gz")
    assert cells.feature_names.tolist() == GENES and cells.document_names is None
    (folder / "S1_features.tsv").unlink()
    (folder / "S1_peaks.bed").write_text("".join(f"chr1\t{j}\t{j + 9}\n" for j in range(12)))
    cells = corpus.read_cells(folder / "S1_matrix.mtx.gz")
    assert cells.feature_names[2] == "chr1:2-11" and cells.data.shape == X.shape


def test_a_folder_whose_files_have_a_prefix(folder):
    for path in list(folder.iterdir()):
        path.rename(folder / f"GSM1_{path.name}")
    cells = corpus.read_cells(folder)
    assert_array_equal(cells.data.toarray(), X)
    assert cells.feature_names.tolist() == GENES and cells.document_names.tolist() == CELLS
    assert_array_equal(corpus.open_corpus(folder).toarray(), X)
    mmwrite(folder / "GSM2_matrix.mtx", sparse.coo_matrix(X.T))
    message = "has several matrices. Pass .*: GSM1_matrix.mtx.gz, GSM2_matrix.mtx"
    refused(message, corpus.read_cells, folder)


def test_a_folder_of_bustools(tmp_path):
    mmwrite(tmp_path / "cells_x_genes.mtx", sparse.coo_matrix(X))
    (tmp_path / "cells_x_genes.genes.txt").write_text("\n".join(GENES))
    (tmp_path / "cells_x_genes.barcodes.txt").write_text("\n".join(CELLS))
    cells = corpus.read_cells(tmp_path)
    assert_array_equal(cells.data.toarray(), X)
    assert cells.feature_names.tolist() == GENES and cells.document_names.tolist() == CELLS


def test_names_in_quotation_marks_and_of_two_genomes(folder):
    names = [f"{'GRCh38' if j < 6 else 'mm10'}_{gene}" for j, gene in enumerate(GENES)]
    (folder / "features.tsv").write_text("".join(f'"ENSG"\t"{name}"\n' for name in names))
    with pytest.warns(UserWarning, match="several genomes: GRCh38, mm10. All of them are read"):
        assert corpus.read_cells(folder).feature_names.tolist() == names


@pytest.mark.parametrize("name", ["x.h5ad.gz", "x.h5.gz", "x.rds"])
def test_compressed_files_of_other_formats(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"\x89HDF\r\n"))
    message = f"{name}' cannot be read .* does not begin with %%MatrixMarket. Unpack .h5ad and .h5"
    refused(message, corpus.read_cells, tmp_path / name)


def test_names_that_are_there_twice(folder):
    twice = ["a", "b", "a", "a-1", "a", *GENES[5:]]
    (folder / "features.tsv").write_text("\n".join(twice))
    with pytest.warns(
        UserWarning, match="A number was added to 2 repeated feature names, such as 'a-2'"
    ):
        words = corpus.read_cells(folder).feature_names
    assert words.tolist()[:5] == ["a", "b", "a-2", "a-1", "a-3"]


@cases(
    "name, content, message",
    (
        "barcodes.tsv",
        "a\nb\n",
        "12 rows and 40 columns, .* names of 2 cells and 12 features",
    ),
    ("matrix.mtx", "import this\n" * 500, "matrix.mtx' cannot be read as Matrix Market counts"),
    ("matrix.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 -3\n", "Got -3"),
)
def test_folders_that_are_refused(folder, name, content, message):
    for old in (name, f"{name}.gz"):
        (folder / old).unlink(missing_ok=True)
    (folder / name).write_text(content)
    refused(message, fitted, folder)


def test_what_has_no_names():
    refused("'source' .* must be an AnnData or the path", corpus.read_cells, X)
    refused("'layer' .* must be None if X is a matrix", fitted, X, GENES, layer="counts")
    message = "'layer' .* must be None unless 'documents' is an AnnData"
    refused(message, describe, fitted(X, GENES), X, layer="a")


def test_the_command(adata, tmp_path, capsys):
    anndata = pytest.importorskip("anndata")
    cells, model = tmp_path / "cells.h5ad", tmp_path / "m.safetensors"
    adata.layers["counts"], adata.X = adata.X, adata.layers["log"]
    adata.write_h5ad(cells)
    layer = ["--layer", "counts"]
    assert main(["fit", str(cells), *layer, "--n-topics", "3", "--model", str(model)]) == 0
    assert "gene" in capsys.readouterr().out
    assert main(["label", str(model), str(cells), *layer]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == CELLS
    out = tmp_path / "out.h5ad"
    assert main(["label", str(model), str(cells), *layer, "--output", str(out)]) == 0
    found = anndata.read_h5ad(out)
    assert found.obsm["X_topics"].shape == (40, 3) and "kind" in found.obs
    assert main(["fit", str(cells), "--n-topics", "3"]) == 2
    assert "integer counts" in capsys.readouterr().err


def test_the_command_reads_a_folder_of_10x(folder, tmp_path, capsys):
    model = tmp_path / "m.safetensors"
    assert main(["fit", str(folder), "--n-topics", "3", "--model", str(model)]) == 0
    assert main(["label", str(model), str(folder), "--shares"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("cell39,")


KINDS = ["Gene Expression"] * 4 + ["Peaks"] * 3 + ["Antibody Capture"] * 2


def cell_ranger(path, kinds, old=False):
    """Write counts of features in cells as Cell Ranger does; return the counts of cells."""
    h5py = pytest.importorskip("h5py")
    counts = sparse.csc_matrix(np.random.RandomState(0).poisson(1, (len(kinds), 12)))
    names = np.array([f"NAME{n}" for n in range(len(kinds))], "S")
    with h5py.File(path, "w") as file:
        group = file.create_group("GRCh38" if old else "matrix")
        group["barcodes"] = np.array([f"{'ACGT' * 4}-{n}" for n in range(12)], "S")
        group["shape"] = counts.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(counts, name)
        if old:
            group["gene_names"] = names
        else:
            group["features/name"] = names
            group["features/feature_type"] = np.array(kinds, "S")
    return counts.toarray().T


@pytest.mark.parametrize("old", [False, True])
def test_a_file_of_cell_ranger(old, tmp_path):
    path = tmp_path / "filtered_feature_bc_matrix.h5"
    counts = cell_ranger(path, KINDS[:4], old)
    cells = corpus.read_cells(path)
    assert_array_equal(cells.data.toarray(), counts)
    assert cells.feature_names.tolist() == ["NAME0", "NAME1", "NAME2", "NAME3"]
    assert cells.document_names[1].endswith("-1")
    assert_array_equal(corpus.open_corpus(path).toarray(), counts)
    refused("'layer' parameter must be None for a file of Cell", corpus.read_cells, path, layer="a")


def test_genes_are_read_if_there_are_several_kinds_of_features(tmp_path):
    counts = cell_ranger(tmp_path / "x.h5", KINDS)
    lines = [f"ID{n}\tNAME{n}\t{kind}" for n, kind in enumerate(KINDS)]
    (tmp_path / "features.tsv").write_text("\n".join(lines))
    mmwrite(tmp_path / "matrix.mtx", sparse.csr_matrix(counts.T))
    for source in (tmp_path / "x.h5", tmp_path):
        with pytest.warns(UserWarning, match=r"Peaks \(3\), Antibody Capture \(2\). Only Gene"):
            cells = corpus.read_cells(source)
        assert_array_equal(cells.data.toarray(), counts[:, :4])
        assert cells.feature_names.tolist() == ["NAME0", "NAME1", "NAME2", "NAME3"]
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    var = pandas.DataFrame({"feature_types": KINDS}, [line.split("\t")[1] for line in lines])
    with pytest.warns(UserWarning, match="several kinds: Gene Expression, Peaks, Antibody"):
        assert corpus.read_cells(anndata.AnnData(counts, var=var)).data.shape == (12, 9)


@pytest.mark.parametrize("name", ["feature_type", "modality"])
def test_other_columns_with_kinds_of_features(adata, name):
    adata.var[name] = ["rna"] * 8 + ["atac"] * 4
    with pytest.warns(UserWarning, match=rf"several kinds: rna, atac. .*adata.var\['{name}'\]"):
        corpus.read_cells(adata)


def test_an_anndata_without_counts(adata, tmp_path):
    adata.X = None
    adata.write_h5ad(tmp_path / "a.h5ad")
    for source in (adata, tmp_path / "a.h5ad"):
        message = "'layer' .* must be one of .'log'., because there is no X"
        refused(message, corpus.read_cells, source)
    del adata.layers["log"]
    adata.write_h5ad(tmp_path / "a.h5ad")
    for source in (adata, tmp_path / "a.h5ad"):
        refused("There are no counts: .* pass one modality", corpus.read_cells, source)


@pytest.mark.parametrize("name", ["data", "shape", "features", "features/name"])
def test_a_file_of_cell_ranger_that_lacks_an_array(tmp_path, name):
    h5py = pytest.importorskip("h5py")
    cell_ranger(tmp_path / "x.h5", KINDS[:4])
    with h5py.File(tmp_path / "x.h5", "a") as file:
        del file["matrix"][name]
    refused(f"group '/matrix' lacks {name}", corpus.read_cells, tmp_path / "x.h5")


def test_a_second_genome_and_features_of_unknown_kind_are_told(tmp_path):
    h5py = pytest.importorskip("h5py")
    counts = cell_ranger(tmp_path / "x.h5", KINDS[:4], old=True)
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file.copy("GRCh38", "mm10")
    with pytest.warns(UserWarning, match=r"GRCh38, mm10. Only GRCh38 is read.*genome='mm10'"):
        assert_array_equal(corpus.read_cells(tmp_path / "x.h5").data.toarray(), counts)
    counts = cell_ranger(tmp_path / "y.h5", KINDS[:4])
    with h5py.File(tmp_path / "y.h5", "a") as file:
        file["matrix/features/genome"] = np.array(["GRCh38", "mm10", "", "mm10"], "S")
    with pytest.warns(UserWarning) as told:
        corpus.read_cells(tmp_path / "y.h5")
    assert any("several genomes: GRCh38, mm10. All of" in str(one.message) for one in told)
    (tmp_path / "features.tsv").write_text(
        "\n".join([*(f"ID{n}\tNAME{n}\tGene Expression" for n in range(3)), "ID3\tNAME3"])
    )
    mmwrite(tmp_path / "matrix.mtx", sparse.csr_matrix(counts.T))
    with pytest.warns(UserWarning, match=r"Gene Expression \(3\), unknown \(1\). Only Gene"):
        assert_array_equal(corpus.read_cells(tmp_path).data.toarray(), counts[:, :3])


def test_a_file_that_is_no_anndata(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["numbers"] = [1, 2]
    refused(
        "x.h5' cannot be read as AnnData: it is no AnnData", corpus.read_cells, tmp_path / "x.h5"
    )
