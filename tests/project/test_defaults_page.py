"""docs/look_up/defaults.md has the values of both presets."""

import ast
import re

from annealvi.lda.settings import RECIPE, SKLEARN
from bench import CHECKOUT


def test_the_page_has_the_values_of_both_tables():
    page = (CHECKOUT / "docs" / "look_up" / "defaults.md").read_text(encoding="utf-8")
    compared = 0
    for name, *cells in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", page, flags=re.MULTILINE):
        for cell, values in zip(cells, (RECIPE, SKLEARN), strict=True):
            if re.fullmatch(r'`"[^"`]+"`|\d+', cell) and name != "temperature":
                assert values[name] == ast.literal_eval(cell.strip("`"))
                compared += 1
    assert compared == 7
