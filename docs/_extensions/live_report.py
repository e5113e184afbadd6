"""The report of the bundled abstracts, live in the site.

The comment ``<!-- live report -->`` of a page becomes a link to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

COMMENT = "<!-- live report -->"


def _on_source_read(app: Any, name: str, source: list[str]) -> None:
    link = "../" * name.count("/") + "report.html"
    source[0] = source[0].replace(COMMENT, f'<a href="{link}">Open this report</a>, live.')


def _on_build_finished(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    from annealvi import TopicModel
    from annealvi.datasets import load_arxiv_abstracts

    texts = load_arxiv_abstracts(texts=True)
    model = TopicModel(n_topics=20, random_state=0).set_params(vectorizer__clean=True)
    summary = model.fit(texts.texts).describe(texts.texts, titles=texts.titles)
    groups = texts.target_names[texts.target]
    path = Path(app.outdir) / "report.html"
    summary.write_report(path, title="3,000 abstracts", times=texts.created, groups=groups)


def setup(app: Any) -> dict[str, bool]:
    """Join Sphinx.

    Parameters
    ----------
    app : sphinx.application.Sphinx
    """
    app.connect("source-read", _on_source_read)
    app.connect("build-finished", _on_build_finished)
    return {"parallel_read_safe": True}
