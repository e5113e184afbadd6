"""The bundled corpus, readers for corpora and images on disk, and synthetic data."""

from __future__ import annotations

import json
import os
from importlib import resources
from math import isqrt
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, vstack
from sklearn.utils import Bunch, check_random_state

from annealvi.checks import COUNT, SHARE, Interval, validated
from annealvi.corpus.files import read_npz
from annealvi.files import read_archive
from annealvi.matrices import check_matrix

#: The environment variable that names the data folder, and the folder that is used without it.
DATA_VARIABLE = "ANNEALVI_DATA"
DEFAULT_DATA = "../shared/data"

_MODULE = "annealvi.data"
#: Largest mean length of synthetic documents.
MOST_WORDS = 10**9


_NAMED = {"name": [str], "data_home": [None, str, PathLike]}


@validated(return_X_y=["boolean"], texts=["boolean"])
def load_arxiv_abstracts(*, return_X_y: bool = False, texts: bool = False) -> Any:
    """Load 3,000 arXiv abstracts as word counts, 200 from each of 15 categories.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)``, or ``(texts, target)`` if `texts` is true, instead of
        a Bunch.
    texts : bool, default=False
        Whether to also read the texts, with their titles and dates.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        A Bunch with the following attributes.

        data : csr_matrix of shape (3000, 3000), float64
            Word counts.
        target : ndarray of shape (3000,)
            The primary category of each abstract, as an index into `target_names`.
        feature_names : ndarray of shape (3000,)
            The words.
        target_names : ndarray of shape (15,)
            The categories.
        texts : list of str
            Title and abstract of each document.  The attributes `texts`, `titles`, `ids` and
            `created` exist only if the parameter `texts` is true.
        titles, ids : list of str
            The titles of the documents, and their identifiers at arXiv.
        created : list of str
            The dates of the documents, such as ``"2019-01-20"``.
        DESCR : str
            The source of the corpus and how it was prepared.
        filename, data_module : str
            The name of the file, and the module whose folder contains the file.

    Examples
    --------
    >>> from annealvi.datasets import load_arxiv_abstracts
    >>> abstracts = load_arxiv_abstracts(texts=True)
    >>> abstracts.data.shape
    (3000, 3000)
    >>> str(abstracts.target_names[abstracts.target[0]])
    'cs.RO'
    >>> abstracts.created[0], abstracts.titles[0][:30]
    ('2019-01-20', 'Comparing Direct and Indirect ')
    """
    filename = "arxiv_abstracts.npz"
    folder = resources.files(_MODULE)
    with resources.as_file(folder / filename) as path:
        corpus = _read(path)
    target_names, target = np.unique(corpus.primary_cat, return_inverse=True)
    read = _texts() if texts else {}
    if return_X_y:
        return read.get("texts", corpus.data), target
    return Bunch(
        data=corpus.data,
        target=target,
        feature_names=corpus.feature_names,
        target_names=target_names,
        DESCR=(folder / "arxiv_abstracts.rst").read_text(encoding="utf-8"),
        filename=filename,
        data_module=_MODULE,
        **read,
    )


def _texts() -> dict[str, list[str]]:
    """Read the bundled texts with their titles, names and dates, in the order of the counts."""
    import bz2  # here, because Python can be built without bz2

    packed = (resources.files(_MODULE) / "arxiv_abstracts.jsonl.bz2").read_bytes()
    rows = [json.loads(line) for line in bz2.decompress(packed).splitlines()]
    return {
        "texts": [f"{row['title']}\n{row['abstract']}" for row in rows],
        "titles": [row["title"] for row in rows],
        "ids": [row["id"] for row in rows],
        "created": [row["created"] for row in rows],
    }


@validated(**_NAMED)
def load_corpus(name: str, *, data_home: str | PathLike | None = None) -> Bunch:
    """Read a corpus of word counts stored as ``<name>.npz``.

    The file contains a CSR matrix as the arrays ``data``, ``indices``, ``indptr`` and ``shape``,
    and the words as the array ``vocab``.  The file may contain other arrays.

    Parameters
    ----------
    name : str
        File name without ``.npz``.
    data_home : path, optional
        Folder of the file.  The default is the value of the environment variable
        ``ANNEALVI_DATA`` or, if that is not set, ``../shared/data``.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are ``data`` (csr_matrix, float64), ``feature_names``, and the other arrays
        of the file under their own names.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the environment variable.
    """
    return _read(_path(name, data_home, "corpus"))


@validated(**_NAMED)
def load_images(name: str, *, data_home: str | PathLike | None = None) -> Bunch:
    """Read images stored as ``<name>.npz``.

    The array ``X`` contains the images: a byte for each pixel, in the shape (n_samples, height,
    width), or a row of bits for each square image, packed by :func:`numpy.packbits`.  The array
    ``X_test``, if any, contains test images in the same format.

    Parameters
    ----------
    name : str
        File name without ``.npz``.
    data_home : path, optional
        Folder of the file.  The default is the value of the environment variable
        ``ANNEALVI_DATA`` or, if that is not set, ``../shared/data``.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The images are ``data``: float32 of shape (n_samples, height * width), pixels in [0, 1].
        ``data_test`` contains the test images, if any, and ``shape`` is the shape of an image.
        Any other arrays of the file are attributes with the names that they have in the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the environment variable.
    """
    path = _path(name, data_home, "image file")
    arrays = read_archive(path, "images")
    images = {key: arrays.pop(key) for key in ("X", "X_test") if key in arrays}
    for key, array in images.items():
        if array.dtype != np.uint8 or array.ndim not in (2, 3):
            raise ValueError(
                f"The file {str(path)!r} does not contain any images: its array {key!r} must be "
                "bytes of shape (n_samples, height, width) or packed bits. "
                f"Got shape {array.shape} and dtype {array.dtype}."
            )
    if "X" not in images:
        raise ValueError(
            f"The file {str(path)!r} does not contain any images: it contains the arrays "
            f"{sorted(arrays)}."
        )
    shape = images["X"].shape[1:]
    if len(shape) == 1:
        side = isqrt(8 * shape[0])
        shape = (side, side)
    data = {key.replace("X", "data"): _pixels(stored, shape) for key, stored in images.items()}
    return Bunch(**data, shape=shape, **arrays)


@validated(
    n_documents=COUNT,
    n_features=COUNT,
    n_topics=COUNT,
    document_length=[Interval(Real, 0, MOST_WORDS, closed="both")],
    doc_topic_prior=[Interval(Real, 0, None, closed="neither")],
    topic_word_prior=[Interval(Real, 0, None, closed="neither")],
    random_state=["random_state"],
)
def make_topic_corpus(
    n_documents: int = 500,
    n_features: int = 200,
    n_topics: int = 5,
    *,
    document_length: float = 100,
    doc_topic_prior: float = 0.1,
    topic_word_prior: float = 0.05,
    random_state: Any = None,
) -> Bunch:
    """Draw documents from latent Dirichlet allocation, and return them with their true topics.

    Parameters
    ----------
    n_documents, n_features, n_topics : int
        Numbers of documents, words and topics: D, V and K.
    document_length : float, default=100
        Mean number of words in a document.  The lengths of documents are Poisson distributed.
    doc_topic_prior, topic_word_prior : float
        Dirichlet priors alpha and eta.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are ``data`` (csr_matrix of counts, float64), ``topics`` of shape
        (n_topics, n_features) and ``document_topics`` of shape (n_documents, n_topics).
    """
    rng = check_random_state(random_state)
    topics = _dirichlet(rng, topic_word_prior, n_topics, n_features, "topic_word_prior")
    document_topics = _dirichlet(rng, doc_topic_prior, n_documents, n_topics, "doc_topic_prior")
    lengths = rng.poisson(document_length, len(document_topics))
    shares = document_topics / document_topics.sum(1, keepdims=True)
    rows = [
        csr_matrix(rng.multinomial(length, np.minimum(share @ topics, 1)).astype(float))
        for length, share in zip(lengths, shares, strict=True)
    ]
    data = vstack(rows, format="csr")
    return Bunch(data=data, topics=topics, document_topics=document_topics)


def _dirichlet(
    rng: RandomState, prior: float, n_rows: int, n_columns: int, name: str
) -> NDArray[np.float64]:
    """Draw from a symmetric Dirichlet distribution; raise ValueError if NumPy's draws are wrong."""
    rows = rng.dirichlet(np.full(int(n_columns), float(prior)), int(n_rows))
    if not np.allclose(rows.sum(axis=1), 1):
        raise ValueError(
            f"NumPy cannot draw from a Dirichlet distribution with {name}={prior!r}: the draws do "
            f"not sum to 1. Use a less extreme {name}."
        )
    return rows


def load_shapes() -> Bunch:
    """Load eight binary images of 4 x 4 pixels, drawn by hand: blocks, lines and a frame.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are ``data``, an ndarray of shape (8, 16) with the 16 pixels of each image,
        0 or 1, and ``shape``, the shape of an image, (4, 4).
    """
    text = (resources.files(_MODULE) / "shapes.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("# ") and line]
    # each line contains a row of pixels of four images
    pixels = np.array([[list(row) for row in line] for line in lines]) == "#"
    images = pixels.reshape(-1, 4, 4, 4).swapaxes(1, 2)
    return Bunch(data=images.reshape(8, 16).astype(float), shape=(4, 4))


@validated(
    n_samples=COUNT,
    shapes="no_validation",
    prior_probability=SHARE,
    noise_variance=[Interval(Real, 0, None, closed="left")],
    random_state=["random_state"],
)
def make_shape_mixture(
    n_samples: int = 1000,
    *,
    shapes: ArrayLike | None = None,
    prior_probability: float = 0.3,
    noise_variance: float = 0.1,
    random_state: Any = None,
) -> Bunch:
    """Draw images that are sums of random subsets of a few shapes, plus noise.

    This is the toy problem of Mandt et al. (2016).  Each component is a shape times a weight that
    is drawn from U[0.5, 1].  An image contains each component with probability `prior_probability`.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of images N.
    shapes : array-like of shape (n_components, n_features), optional
        The shapes, one in each row.  By default the images of :func:`load_shapes`.
    prior_probability : float, default=0.3
        Probability pi that an image contains a component.
    noise_variance : float, default=0.1
        Variance of the Gaussian noise of each pixel.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        The attributes are ``data`` of shape (n_samples, n_features), ``components`` of shape
        (n_components, n_features) and ``factors`` of shape (n_samples, n_components): 1 for each
        component that an image contains, otherwise 0.
    """
    rng = check_random_state(random_state)
    if shapes is None:
        shapes = load_shapes().data
    images = check_matrix(shapes, dtype=np.float64, accept_sparse=False, name="shapes")
    components = images * rng.uniform(0.5, 1.0, (len(images), 1))
    n_samples = int(n_samples)
    factors = (rng.random_sample((n_samples, len(images))) < prior_probability).astype(float)
    scale = np.sqrt(abs(float(noise_variance)))  # NumPy does not accept -0.0 as a scale
    noise = rng.normal(0.0, scale, (n_samples, images.shape[1]))
    return Bunch(data=factors @ components + noise, components=components, factors=factors)


def _path(name: str, data_home: str | PathLike | None, kind: str) -> Path:
    """Return the path of a data file; raise FileNotFoundError if there is no such file."""
    if data_home is None:
        data_home = os.environ.get(DATA_VARIABLE, DEFAULT_DATA)
    path = Path(data_home, f"{name}.npz")
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no {kind} {name!r} in {data_home!s}. Set the environment variable "
            f"{DATA_VARIABLE} to the folder that contains {path.name}."
        )
    return path


def _pixels(stored: NDArray[np.uint8], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Convert images stored as bytes or packed bits to rows of pixels."""
    if stored.ndim == 2:
        bits = np.unpackbits(stored, axis=1, count=shape[0] * shape[1])
        return bits.astype(np.float32)
    return stored.reshape(len(stored), -1).astype(np.float32) / np.float32(255)


def _read(path: Path) -> Bunch:
    X, arrays = read_npz(path, "corpus")
    if "vocab" not in arrays:
        raise ValueError(f"{str(path)!r} must have words, as an array 'vocab'. It has none.")
    return Bunch(data=X, feature_names=arrays.pop("vocab"), **arrays)
