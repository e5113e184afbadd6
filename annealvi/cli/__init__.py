"""The command line: ``annealvi fit``, ``label``, ``show`` and others."""

from annealvi.cli.commands import main

__all__ = ["main"]
