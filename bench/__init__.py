"""Measurements of speed (speed/), of quality (studies/) and of the source code (structure.py).

All scripts run as modules from the folder of the checkout, for example
``python -m bench.studies.optima``.  With ``--help`` a script prints what it measures, how to run it
and what it prints.  Corpora that are not shipped are read from the folder that the environment
variable in :data:`annealvi.datasets.DATA_VARIABLE` names, by default next to the checkout.
"""

import argparse
import os
from pathlib import Path

from annealvi import datasets

CHECKOUT = Path(__file__).resolve().parents[1]

os.environ.setdefault(datasets.DATA_VARIABLE, str(CHECKOUT / datasets.DEFAULT_DATA))


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser of a script's arguments, whose ``--help`` prints the script's docstring."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
