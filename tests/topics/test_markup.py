"""Web pages, tweets and LaTeX: what a reader sees is counted, and nothing else."""

import pytest

from annealvi.topics import TopicVectorizer

PAGES = {
    '<p style="color: red">Planets and <b>comets</b></p>': "planets and comets",
    "<a href='x'\n title=\"more > a\"\n class=link>moon</a><br/>orbit<BR />sky": "moon orbit sky",
    "inter<b>national</b> <i>bread</i>butter": "international breadbutter",
    "<li>one</li><li>two</li><td>three</td>": "one two three",
    "sugar < salt and honey > syrup": "sugar salt and honey syrup",
    "if x <y and z> then <john@example.org> wrote": "if and then john example org wrote",
    "3<b and c>d plums": "and plums",
    "<script>var tracker = '<b>no</b>'; if (a < 3) { b > 2 }</script>moon": "moon",
    "<STYLE>p { margin: 0 }</STYLE ><!-- a > b <i>todo</i> -->moon": "moon",
    "moon<!-- first\nsecond -->orbit<!doctype html>sky": "moon orbit sky",
    "caf&eacute; M&uuml;nchen cr&#232;me &#353;koda": "café münchen crème škoda",
    "planets&nbsp moon&amp;nbsp;sun &amp;amp; &amp;mdash; sky&nbsp": "planets moon sun sky",
    "bread&NonBreakingSpace;butter &amp;quot;toast&amp;quot; jam": "bread butter toast jam",
    "text <![CDATA[moon <b>sun</b>]]> end": "text moon sun end",
    "&lt;p&gt;bread &lt;br&gt; butter&lt;/p&gt;": "bread butter",
    "Привет<br>мир &laquo;слово&raquo;": "привет мир слово",
    "<p>星星 行星</p>": "星星 行星",
    "AT&T R&D &unknown; <unclosed moon": "at unclosed moon",
    "<custom-tag data-x='1' hidden>moon</custom-tag><o:p>sky</o:p>": "moon sky",
    "RT @me: moon https://x.org/?a=1&amp;b=2 \\alpha \\begin{x} sky": "moon sky",
    '<input type="text" disabled value="secret">moon<img alt="picture" src=x>': "moon",
}


@pytest.mark.parametrize("page", PAGES)
def test_what_a_reader_sees_is_counted(page):
    analyze = TopicVectorizer(clean=True).build_analyzer()
    assert analyze(page) == PAGES[page].split()


def test_what_was_taken_out_is_told():
    pages = ["<p>caf&eacute; <b>moon</b></p> www.x.org", "plain moon"] * 3
    note = TopicVectorizer(clean=True).fit(pages).dropped_.note()
    assert "clean: tags (12), entities (3), links (3) were removed." in note


def test_nothing_is_cleaned_without_being_asked():
    assert "href" in TopicVectorizer().fit(["<a href='x'>moon</a>"]).vocabulary_
