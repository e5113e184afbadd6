"""Seed words on the command line: ``--seeds``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from annealvi.cli.tables import read_text

EXAMPLE = '{"space": ["nasa", "orbit"]}'


def read_seeds(given: str | None, encoding: str) -> dict[str, list[str]]:
    """Return the seed words that an option names."""
    if given is None:
        return {}
    written = given.lstrip().startswith("{")
    text = given if written else read_text(Path(given), encoding)
    where = "--seeds" if written else f"--seeds: {given!r}"
    try:
        seeds = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} must be JSON, such as {EXAMPLE} ({error}).") from error
    if not isinstance(seeds, dict) or not seeds:
        raise ValueError(f"{where} must be a JSON object, such as {EXAMPLE}. Got {text:.60}.")
    for name, words in seeds.items():
        if not name.strip() or not _are_words(words):
            raise ValueError(
                f"{where} must be names of topics with lists of words, such as {EXAMPLE}. Got "
                f"{json.dumps({name: words}, ensure_ascii=False):.60}."
            )
    return seeds


def _are_words(words: Any) -> bool:
    return isinstance(words, list) and bool(words) and all(isinstance(w, str) for w in words)
