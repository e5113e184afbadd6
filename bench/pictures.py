"""Draw the pictures of the manual, all in one style.

    python -m bench.pictures [PART ...]      all, or some of: chart topics report page gallery
                                            trust drawings

The pictures are written to docs/pictures.  `report` and `page` make photographs with Chromium,
which must be installed.  `python examples/gmm_surface.py --film` makes the film of the surface.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from annealvi import TopicModel, plot
from annealvi.datasets import load_arxiv_abstracts
from annealvi.topics import choose_n_topics
from bench import CHECKOUT, chart, drawings, parser
from bench.studies import trust

FOLDER = CHECKOUT / "docs" / "pictures"
STYLE = {
    **{"font.size": 11, "svg.hashsalt": "annealvi", "svg.fonttype": "none"},
    **{"grid.color": "0.9", "axes.axisbelow": True},
    **{"axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 160},
}
#: Width, height and scale of the photographs of the report, and whether the report is dark.
PHOTOGRAPHS = {
    "report": (1280, 900, 1.5, False),
    "report_dark": (1280, 900, 1.5, True),
    "report_phone": (500, 1000, 1.5, False),
}


@cache
def abstracts() -> Any:
    return load_arxiv_abstracts(texts=True)


@cache
def model(random_state: int = 0) -> TopicModel:
    """Fit a model to the bundled abstracts, from which LaTeX is removed."""
    one = TopicModel(n_topics=20, random_state=random_state)
    return one.set_params(vectorizer__clean=True).fit(abstracts().texts)


@cache
def summary(**options: Any) -> Any:
    return model().describe(abstracts().texts, titles=abstracts().titles, **options)


def fields() -> list[str]:
    """Return the archive of each abstract, such as "cs"."""
    return [name.split(".")[0] for name in abstracts().target_names[abstracts().target]]


def save(name: str, axes: Any) -> None:
    first = np.ravel(np.asarray(axes, dtype=object))[0]
    options = {"metadata": {"Date": None}} if name.endswith(".svg") else {}
    first.figure.savefig(FOLDER / name, bbox_inches="tight", **options)
    print(FOLDER / name)


def draw_chart() -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(7.6, 4.2), layout="constrained")
    chart.draw(axes)
    axes.grid()
    save("quality.svg", axes)


def draw_topics() -> None:
    """Draw the topics of docs/learn/start.md, which removes no LaTeX."""
    model = TopicModel(n_topics=20, random_state=0).fit(abstracts().texts)
    save("topics.png", plot.plot_topic_words(model.describe(abstracts().texts), [2, 4, 6, 8]))


def draw_trust() -> None:
    """Draw how many topics come back in new fits, by their probability, from trust.json."""
    import matplotlib.pyplot as plt

    records = json.loads(trust.RESULTS.read_text("utf-8"))
    topics = trust.Topics(records)
    ranges = np.digitize(topics.probability(), [0.25, 0.5, 0.75, 0.95])
    shares = [topics.come_back[ranges == number].mean() for number in range(5)]
    _, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
    names = ["below 0.25", "0.25 to 0.5", "0.5 to 0.75", "0.75 to 0.95", "above 0.95"]
    bars = axes.bar(names, shares, color=["#D55E00", "#D55E00", *["#0072B2"] * 3], width=0.6)
    axes.bar_label(bars, [f"{share:.0%}" for share in shares])
    axes.set_ylim(0, 1.1)
    axes.set_xlabel("estimated probability that a new fit finds the topic")
    axes.set_ylabel("share of topics that\ncame back in new fits")
    save("trust.svg", axes)


def draw_gallery() -> None:
    """Draw each kind of picture that the library can draw of topics."""
    texts = abstracts()
    one = summary()
    when = ["from 2015" if day >= "2015" else "to 2014" for day in texts.created]
    security = int(np.argmax(["security" in words for words in one.table.words]))
    largest = one.table.share.nlargest(4).index.tolist()
    save("map.png", plot.plot_topic_map(one))
    save("heatmap.png", plot.plot_topic_heatmap(one))
    save("dendrogram.png", plot.plot_topic_dendrogram(one))
    save("over_time.png", plot.plot_topics_over_time(one, texts.created, topics=largest))
    save("by_group.png", plot.plot_topics_by_group(one, fields()))
    save("term_ranks.png", plot.plot_term_ranks(one))
    save("stability.png", plot.plot_stability(one, model(1).describe(texts.texts)))
    save("words_by_group.png", plot.plot_words_by_group(one, security, when))
    save("words_over_time.png", plot.plot_words_over_time(one, security, texts.created, n_words=8))
    save("together.png", plot.plot_topics_together(one))
    save("choice.png", choose_n_topics(texts.data, [5, 10, 20, 50, 100], random_state=0).plot())
    effects = summary(refits=10).effects(
        "~ field", {"field": ["physics" if f in PHYSICS else "other" for f in fields()]}
    )
    save("effects.png", plot.plot_effects(effects, "field"))


def draw_drawings() -> None:
    save("merging.svg", drawings.merging())
    save("house.svg", drawings.house())
    save("abstract.svg", draw_abstract())


def draw_abstract() -> Any:
    """Draw an abstract with several topics; words have the colour of their most probable topic."""
    texts = abstracts()
    one = summary()
    shares = model().transform(texts.texts)
    fits = [70 < len(text.split()) < 95 and "$" not in text for text in texts.texts]
    document = int(np.argmax(np.sort(shares, axis=1)[:, -3] * fits))  # the third share is large
    order = np.argsort(shares[document])[::-1][:3]
    weights = model().lda_.components_ * shares[document][:, None]
    likeliest = {word: int(weights[:, v].argmax()) for v, word in enumerate(model().feature_names_)}
    rank = {int(k): number for number, k in enumerate(order)}
    coloured = {word: rank[k] for word, k in likeliest.items() if k in rank}
    labels = [one.labels[k] for k in order]
    return drawings.abstract(texts.texts[document], labels, coloured, shares[document][order])


PHYSICS = {"cond-mat", "physics", "quant-ph"}


def photograph(link: str, name: str, width: int, height: int, scale: float, is_dark: bool) -> None:
    browser = which("chromium") or which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium is needed to photograph pages, and it is not installed.")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += ["--timeout=8000", f"--window-size={width},{height}"]
    options += [f"--force-device-scale-factor={scale}"]
    options += [f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"]
    command = [browser, *options, f"--screenshot={FOLDER / name}.png", link]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    print(FOLDER / f"{name}.png")


def photograph_report() -> None:
    texts = abstracts()
    number = int(np.argmax(["security" in words for words in summary().table.words]))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "topics.html"
        groups = texts.target_names[texts.target]
        summary().write_report(page, title="3,000 abstracts", times=texts.created, groups=groups)
        for name, size in PHOTOGRAPHS.items():
            photograph(f"{page.as_uri()}#topic-{number}", name, *size)


def photograph_page() -> None:
    """Photograph the page of `annealvi open` with the topics of the bundled abstracts."""
    import pandas
    import uvicorn

    from annealvi.app.server import make_app
    from annealvi.app.study import Study
    from annealvi.cli.inputs import read_columns

    texts = abstracts()
    columns = {"title": texts.titles, "abstract": texts.texts, "created": texts.created}
    columns["field"] = texts.target_names[texts.target]
    settings = {"text": "abstract", "title": "title", "time": "created", "group": "field"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the page shows the name of the study's folder
        pandas.DataFrame(columns).to_csv("abstracts.csv", index=False)
        study = Study(Path("annealvi-study"), read_columns)
        study.take(Path("abstracts.csv"), "abstracts.csv")
        study.fit(**settings, freq="year", language="english", n_topics=20)
        while study.process is not None or study.busy:
            time.sleep(0.1)
        config = uvicorn.Config(make_app(study, "page"), port=0, log_level="critical")
        listening = config.bind_socket()
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        link = f"http://127.0.0.1:{listening.getsockname()[1]}/page/"
        photograph(link, "page", *PHOTOGRAPHS["report"])
        server.should_exit = True
        thread.join()
        os.chdir(CHECKOUT)


PARTS = {
    "chart": draw_chart,
    "topics": draw_topics,
    "report": photograph_report,
    "page": photograph_page,
    "gallery": draw_gallery,
    "trust": draw_trust,
    "drawings": draw_drawings,
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
    for name in options.parse_args().parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
