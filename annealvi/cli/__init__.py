"""The command line: ``annealvi fit``, ``label``, ``show``, ``compare`` and ``demo``."""

from annealvi.cli.commands import main

__all__ = ["main"]
