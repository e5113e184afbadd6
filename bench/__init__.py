"""Measurements: how fast (speed/) and how good (studies/), over problems and adapters.

Everything here runs from the checkout's folder, as ``python -m bench.studies.optima``.
Corpora that are not shipped are looked for where :data:`annealvi.datasets.DATA_VARIABLE` says,
by default beside the checkout.
"""

import os
from pathlib import Path

from annealvi import datasets

CHECKOUT = Path(__file__).resolve().parents[1]

os.environ.setdefault(datasets.DATA_VARIABLE, str(CHECKOUT / datasets.DEFAULT_DATA))
