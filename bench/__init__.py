"""Measurements: speed (speed/), quality (studies/) and the figures of the source (structure.py).

All scripts run as modules from the folder of the checkout, for example
``python -m bench.studies.optima``; with ``--help`` each says what it measures, how to run it and
what it prints.  Corpora that are not shipped are looked for where
:data:`annealvi.datasets.DATA_VARIABLE` says, by default beside the checkout.
"""

import argparse
import os
from pathlib import Path

from annealvi import datasets

CHECKOUT = Path(__file__).resolve().parents[1]

os.environ.setdefault(datasets.DATA_VARIABLE, str(CHECKOUT / datasets.DEFAULT_DATA))


def parser(doc: str | None) -> argparse.ArgumentParser:
    """The parser of a script's arguments; its ``--help`` shows the script's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
