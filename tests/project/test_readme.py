"""Each number of README comes from a file of the record."""

import json
import re

import numpy as np

from bench import CHECKOUT, chart
from bench.pages import prose

README = prose((CHECKOUT / "README.md").read_text("utf-8"), tables=False)
TEXT = " ".join(README.split())
RECORD = CHECKOUT / "docs" / "record"


def held_out():
    """Of each method the held-out log-likelihoods of the cells; NaN where it did not run."""
    rows = chart.rows("quality.md", "### Held-out log-likelihood per word").values()
    names = [name for name in next(iter(rows)) if name != "corpus, K"]
    return {
        name: np.array([float(row[name].replace("–", "nan").rstrip("†")) for row in rows])
        for name in names
    }


def expected():
    """Each number as it must stand, and from what."""
    cells = held_out()
    names = "annealvi", "annealvi, n_init=16", "tomotopy, 2,000 averaged"
    ours, *_ = (cells.pop(name) for name in names)
    kept = json.loads((CHECKOUT / "bench/studies/rivals.json").read_text("utf-8"))
    exact = {(*one["cell"], one["method"]): one["test"][0] for one in kept}
    ahead = np.array(
        [
            theirs - exact[corpus, K, "annealvi"]
            for (corpus, K, method), theirs in exact.items()
            if method == "tomotopy, 2,000 averaged"
        ]
    )
    seconds = chart.rows("quality.md", "### CPU seconds of a fit").values()
    times = [
        float(row["tomotopy, 2,000 averaged"]) / float(row["annealvi"])
        for row in seconds
        if row["tomotopy, 2,000 averaged"] != "–"
    ]
    everywhere = {name: theirs for name, theirs in cells.items() if not np.isnan(theirs).any()}
    behind = {name: np.mean(ours - theirs) for name, theirs in everywhere.items()}
    del behind["annealvi, one run"]
    assert len(ours) == 21
    assert all(np.all((ours > theirs) | np.isnan(theirs)) for theirs in cells.values())
    assert min(behind, key=behind.get) == "tomotopy, averaged"
    points = chart.points()
    other_corpora = chart.rows("trust.md", "## Other corpora")
    marks = other_corpora["all"]
    coverage = (RECORD / "effects.md").read_text("utf-8")
    covered = re.findall(r"\| refits \| ([\d.]+) \|", coverage)
    parts = chart.rows("defaults.md", "## What each part gains")

    def loss(part):
        rows = parts["the default"], parts[part]
        lost = np.subtract(*([float(cell) for name, cell in row.items() if name] for row in rows))
        return f"{lost.min():.3f} to {lost.max():.3f}"

    golden = json.loads((CHECKOUT / "tests/project/golden_fits.json").read_text("utf-8"))
    return [
        "each of 21 combinations",
        "uses Gibbs sampling like MALLET, and after 200 sweeps its log-likelihood is "
        f"{behind['tomotopy, averaged']:.3f} nats per word lower",
        f"the {len(ahead)} combinations with at most 100 topics, averages over 2,000 sweeps",
        f"between {ahead.max():.3f} nats better and {-ahead.min():.3f} worse",
        f"at {min(times):.0f} to {max(times):.0f} times the CPU",
        f"takes {points['annealvi'][0]} seconds on one core",
        f"200 sweeps of tomotopy take {points['tomotopy, averaged'][0]}",
        f"{marks['marked: do not come back']} of the topics marked as weak did not come back",
        f"{marks['not marked: come back']} of the others did",
        f"Of the topics that did not come back, {marks['not coming back: marked']} were marked",
        f"in {float(min(covered)):.1%} to {float(max(covered)):.1%} of the cases",
        f"with {len(golden)} fits",
        f"point estimates of the topics (by {loss('exp(E log β)')} nats per word)",
        f"far apart ({loss('random topics')})",
        f"annealing ({loss('no cooling')})",
        f"short runs ({np.mean(ours - cells['annealvi, one run']):.3f} on average)",
    ]


def test_each_number_comes_from_the_record():
    numbers = [found for text in expected() for found in re.findall(r"\d[\d.,]*\d|\d", text)]
    missing = [text for text in expected() if text not in TEXT]
    assert not missing
    # what no measurement gives: sizes of the examples, versions, and the level of intervals
    others = ["3,000", "20", "100", "2,000", "16,000", "95", "3.11", "3"]
    links = re.sub(r"\]\([^)]*\)", "]", TEXT)
    stand = re.findall(r"(?<![\w-])\d[\d.,]*\d|(?<![\w-])\d(?![\w-])", links)
    assert sorted(set(stand) - set(numbers) - set(others)) == []
