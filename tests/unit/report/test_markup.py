"""Nothing a model, kernel or compiler is called can break out of its place on the page."""

import json
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tuneloom.report.drawing.markup import Markup, data_script, el, joined


class Seen(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def seen(markup: str) -> Seen:
    parser = Seen()
    parser.feed(markup)
    parser.close()
    return parser


NASTY = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["</script><script>alert(1)</script>", "<b onmouseover=x>", "\"'&<>", "<!--", "]]>", "&lt;"]
)


@given(NASTY)
def test_text_and_attributes_come_out_as_they_went_in(text: str) -> None:
    found = seen(el("p", text, title=text))
    clean = "".join(c if c in "\t\n" or (c >= " " and c != "\x7f") else "\ufffd" for c in text)
    assert found.tags == ["p"]
    assert found.attributes == {"title": clean}
    assert found.text == clean


@given(NASTY)
def test_data_for_the_script_stays_in_its_element(text: str) -> None:
    found = seen(data_script("d", {"name": text}))
    assert found.tags == ["script"]
    assert set(json.loads(found.text, strict=False)["name"]) <= set(text) | {"\ufffd"}


def test_broken_unicode_is_replaced() -> None:
    assert el("p", "a\ud800b") == "<p>a?b</p>"


def test_markup_is_not_escaped_twice() -> None:
    assert el("p", el("b", "<"), ["x", None, el("i")]) == "<p><b>&lt;</b>x<i></i></p>"


def test_attributes_are_spelled_as_in_html() -> None:
    assert el("rect", class_="k", data_i=3, x=1.50, y=None) == '<rect class="k" data-i="3" x="1.5"></rect>'
    assert el("meta", name="a") == '<meta name="a">'


def test_only_markup_counts_as_markup() -> None:
    assert isinstance(joined("<"), Markup)
    assert joined("<") == "&lt;"
