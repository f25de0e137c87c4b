"""Tables, and the cells that they are made of."""

from collections.abc import Sequence

from tuneloom.report.drawing.markup import Markup, el

NUMBER = "number"
Head = str | tuple[str, str]
"""The head of a column, and its look if it has one."""


def table(look: str, heads: Sequence[Head], rows: Sequence[Markup]) -> Markup:
    """A table that scrolls if it is too wide.

    With the look `sortable`, a click on a head sorts by its column.
    """
    pairs = [(head, None) if isinstance(head, str) else head for head in heads]
    names = [_sorter(name) if look.startswith("sortable") else name for name, _ in pairs]
    head = [el("th", name, class_=own) for name, (_, own) in zip(names, pairs, strict=True)]
    whole = el("table", el("thead", el("tr", head)), el("tbody", rows), class_=look)
    return el("div", whole, class_="scroller")


def numbers(*names: str) -> list[Head]:
    """Heads of columns of numbers."""
    return [(name, NUMBER) for name in names]


def sorted_number(text: str, value: float | None) -> Markup:
    """A cell that a table sorts by a number."""
    return el("td", text, class_=NUMBER, data_v="" if value is None else repr(value))


def _sorter(name: str) -> Markup:
    return el("button", name, type="button")
