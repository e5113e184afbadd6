"""What CONTRIBUTING says of the house, as far as the source can tell."""

import ast

import pytest

from bench import CHECKOUT
from bench.structure import PACKAGE, circles, imports, modules, private_uses, upward_imports

GRAPH = imports(CHECKOUT)


def test_nothing_imports_upwards():
    assert not upward_imports(GRAPH)


def test_no_circle_of_imports_not_for_types_either():
    assert not circles(GRAPH)


def test_nothing_uses_the_private_attributes_of_another_object():
    assert not [use for use in private_uses(CHECKOUT) if ": torch." not in use]


@pytest.mark.parametrize("name", [m for m in sorted(modules(CHECKOUT)) if "_kernels" in m])
def test_kernels_know_nothing_of_the_house(name):
    assert all(target.startswith("annealvi._kernels") for target in GRAPH[name])


#: Functions whose last bits depend on the processor, through BLAS, LAPACK or NumPy's own choice.
BY_PROCESSOR = {"exp", "log", "log1p", "expm1", "power", "geomspace", "tanh", "sinh", "cosh"}
BY_PROCESSOR |= {"dot", "matmul", "tensordot", "argpartition", "linalg", "logsumexp", "softmax"}
BY_PROCESSOR |= {"KMeans", "kmeans_plusplus", "einsum", "psi", "gammaln", "betaln", "entr"}
FITS = ("lda", "mixtures", "models", "inference", "temperature", "partition", "scale")
#: A relative change that is only compared with its bound.
NOT_IN_RESULTS = {"models/lda_prior/prior.py: expm1"}


def test_fits_use_nothing_that_chooses_its_bits_by_processor():
    """Instead they use `special` and `gemm` of the kernels; test_other_machines.py has the bits."""
    used = set()
    for path in (CHECKOUT / PACKAGE).rglob("*.py"):
        name = path.relative_to(CHECKOUT / PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("np", "numpy"):
                found = {node.attr}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("s"):
                found = {alias.name for alias in node.names}
            else:
                continue
            if name.startswith(FITS):
                used |= {f"{name}: {function}" for function in found & BY_PROCESSOR}
    assert used == NOT_IN_RESULTS
