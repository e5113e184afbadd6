"""Run the command line interface with ``python -m annealvi``."""

import sys

from annealvi.cli import main

if __name__ == "__main__":
    sys.exit(main())
