"""Words per second that annealvi splits, compared with Python's \\w and with the package regex.

python -m bench.studies.splitting
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from importlib.util import find_spec

from annealvi.datasets import load_arxiv_abstracts
from annealvi.topics import TopicVectorizer
from bench import parser

TEXTS = {
    "German": "die größe der wälder über münchen und das straßenfest war schön ",
    "Russian": "небо звезда луна хлеб масло ",
    "Hindi": "रोटी दूध चीनी कटोरी हिन्दी आकाश नदी पृथ्वी ",
    "Arabic with vowels": "كِتَابٌ مُحَمَّد مَدْرَسَة قَلَمٌ بَيْتٌ ",
}


def speed(split: Callable[[str], list[str]], text: str) -> float:
    """Measure millions of words per second, the best of five measurements."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        n_words = len(split(text))
        seconds.append(time.perf_counter() - start)
    return n_words / min(seconds) / 1e6


def main() -> None:
    parser(__doc__).parse_args()
    english = " ".join(load_arxiv_abstracts(texts=True).texts[:600]).lower()
    plain = re.compile(r"\b[^\W\d_]\w+\b").findall
    splitters = {r"`\w` alone": plain, "here": TopicVectorizer().build_tokenizer()}
    if find_spec("regex"):
        import regex

        splitters["`regex`"] = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}\u200c\u200d]+").findall
    print("| texts |", " | ".join(splitters), "|")
    print("|---" * (len(splitters) + 1) + "|")
    for name, text in {"English": english, **{k: v * 4000 for k, v in TEXTS.items()}}.items():
        print(
            f"| {name} |",
            " | ".join(f"{speed(splitter, text):.1f}" for splitter in splitters.values()),
            "|",
        )


if __name__ == "__main__":
    main()
