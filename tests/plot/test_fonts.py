"""Words in every script: a font that has them, or a warning that names what is missing."""

import io
import warnings

import matplotlib
import pytest

from annealvi import plot
from annealvi.topics import TopicModel

SCRIPTS = {
    "Chinese": (["星星 行星 月亮", "面包 黄油 牛奶"], "Cjk"),
    "Hindi": (["सितारे सूर्य आकाश", "रोटी दूध चीनी"], "Devanagari"),
    "Thai": (["ดาว ท้องฟ้า พระจันทร์", "ขนมปัง เนย นมสด"], "Thai"),
    "Korean": (["별자리 행성 달빛", "빵집 버터 우유"], "Hangul"),
    "Russian": (["звезда планета луна", "хлеб масло молоко"], None),
    "Greek": (["αστέρι πλανήτης φεγγάρι", "ψωμί βούτυρο γάλα"], None),
    "Arabic": (["نجمة كوكب قمر", "خبز زبدة حليب"], None),
}


@pytest.mark.parametrize("language", SCRIPTS)
@pytest.mark.parametrize("draw", [plot.plot_topic_words, plot.plot_topic_map, plot.plot_term_ranks])
def test_boxes_are_told(language, draw):
    texts, script = SCRIPTS[language]
    model = TopicModel(2, random_state=0).fit(texts * 10)
    model.set_labels({0: texts[0].split()[0]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        axes = draw(model.describe(texts * 10))
        figure = axes.flat[0].figure if hasattr(axes, "flat") else axes.figure
        figure.savefig(io.BytesIO())
        said = [str(warning.message) for warning in caught]
        warnings.simplefilter("always")  # shows what matplotlib would have said
        figure.savefig(io.BytesIO(), dpi=73)
    boxes = [each for each in caught[len(said) :] if str(each.message).startswith("Glyph")]
    told = [message for message in said if "No installed font has" in message]
    assert len(said) == len(told) == bool(boxes), said
    assert not told or (script is not None and f"({script})" in told[0])


def test_a_font_that_has_the_characters_is_used(monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.family", ["cmr10"])  # Latin only
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="cmr10 font should")
        texts = SCRIPTS["Russian"][0]
        model = TopicModel(2, random_state=0).fit(texts * 10)
        axes = plot.plot_topic_words(model.describe(texts))
    families = [label.get_fontfamily() for label in axes.flat[0].get_yticklabels()]
    assert all(len(family) == 2 for family in families)
    assert any(font.name == families[0][1] for font in matplotlib.font_manager.fontManager.ttflist)
