"""Charts and the axes that several of them have."""

from tuneloom.report.drawing.markup import Markup, el
from tuneloom.report.drawing.scales import Linear
from tuneloom.report.drawing.units import brief


def chart(label: str, width: float, height: float, *children: object, class_: str | None = None) -> Markup:
    """A drawing of this size, and what it is called where it can't be seen."""
    box = f"0 0 {width:g} {height:g}"
    return el("svg", *children, viewBox=box, role="img", aria_label=label, class_=class_)


def values_below(
    across: Linear, about: int, size: float, name: str, top: float, bottom: float
) -> list[Markup]:
    """An axis at the bottom, its values in units of this size, with lines up to the top."""
    marks = []
    for value in across.ticks(about):
        x = across(value)
        marks.append(el("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
        marks.append(el("text", brief(value / size), x=x, y=bottom + 16, class_="tick"))
    middle = (across.start + across.end) / 2
    return [*marks, el("text", name, x=middle, y=bottom + 36, class_="axis-name")]
