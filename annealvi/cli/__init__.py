"""The command line interface: ``annealvi fit``, ``label``, ``show`` and other commands."""

from annealvi.cli.commands import main

__all__ = ["main"]
