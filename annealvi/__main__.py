"""``python -m annealvi``."""

import sys

from annealvi.cli import main

if __name__ == "__main__":
    sys.exit(main())
