"""What failed where in a knob space, and which knobs matter."""

from tuneloom.report.data import KnobPair, ReportData, Validity, ValidityCell
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.units import clipped, percent

CELL, LEFT, TOP, BOTTOM = 26.0, 70.0, 8.0, 44.0
MOST_VALUES = 24


def validity_section(data: ReportData) -> Markup:
    """For each kernel, maps of pairs of knobs and the importance of knobs; nothing without them."""
    shown = [validity for validity in data.validity if validity.pairs or validity.importance]
    return el("div", _key(), [_of_kernel(each, headed=len(shown) > 1) for each in shown]) if shown else EMPTY


def _of_kernel(validity: Validity, headed: bool) -> Markup:
    maps = [el("figure", _caption(pair), _map(pair)) for pair in validity.pairs]
    head = el("h3", validity.kernel) if headed else EMPTY
    return el("div", head, el("div", maps, class_="maps"), _importance(validity.importance))


def _key() -> Markup:
    return el(
        "p",
        "Each cell is one pair of values: the darker it is, the more of its trials were valid; a cross "
        "means that none was. An empty cell was never tried; its border shows what the model predicts.",
        class_="remark",
    )


def _caption(pair: KnobPair) -> Markup:
    return el("figcaption", el("span", f"{pair.y_knob} against {pair.x_knob}", class_="name"))


def _map(pair: KnobPair) -> Markup:
    columns, rows = pair.x_values[:MOST_VALUES], pair.y_values[:MOST_VALUES]
    x_at = {value: LEFT + place * CELL for place, value in enumerate(columns)}
    y_at = {value: TOP + (len(rows) - 1 - place) * CELL for place, value in enumerate(rows)}
    bottom, right = TOP + len(rows) * CELL, LEFT + len(columns) * CELL
    cells = [_cell(c, x_at[c.x], y_at[c.y], pair) for c in pair.cells if c.x in x_at and c.y in y_at]
    across = [
        el("text", clipped(v, 5), x=x + CELL / 2, y=bottom + 14, class_="tick") for v, x in x_at.items()
    ]
    up = [
        el("text", clipped(v, 9), x=LEFT - 6, y=y + CELL / 2 + 4, class_="tick right")
        for v, y in y_at.items()
    ]
    names = [
        el("text", pair.x_knob, x=(LEFT + right) / 2, y=bottom + 34, class_="axis-name"),
        el("text", pair.y_knob, x=LEFT - 6, y=bottom + 14, class_="axis-name right"),
    ]
    width = max(right + 4, 220.0)
    label = f"Validity by {pair.x_knob} and {pair.y_knob}"
    box = f"0 0 {width:g} {bottom + BOTTOM:g}"
    return el(
        "svg", cells, across, up, names, viewBox=box, width=width, role="img", aria_label=label, class_="map"
    )


def _cell(cell: ValidityCell, x: float, y: float, pair: KnobPair) -> Markup:
    tried = cell.valid + cell.invalid
    share = cell.valid / tried if tried else 0.0
    expected = "" if cell.predicted is None else f"\nexpected to be valid: {percent(cell.predicted)}"
    result = f"{cell.valid} of {tried} trials valid" if tried else "never tried"
    tip = f"{pair.x_knob} = {cell.x}, {pair.y_knob} = {cell.y}\n{result}{expected}"
    box = {"x": x + 1, "y": y + 1, "width": CELL - 2, "height": CELL - 2, "rx": 3}
    edge = 0.15 if cell.predicted is None else 0.15 + 0.85 * cell.predicted
    frame = el("rect", **box, class_="untried", stroke_opacity=edge)
    fill = el("rect", **box, class_="valid", fill_opacity=0.12 + 0.88 * share) if share else EMPTY
    return el("g", frame, fill, _cross(x, y) if tried and not cell.valid else EMPTY, data_tip=tip)


def _cross(x: float, y: float) -> Markup:
    arm = CELL - 16.0
    path = f"M{x + 8:g} {y + 8:g}l{arm:g} {arm:g}M{x + 8 + arm:g} {y + 8:g}l{-arm:g} {arm:g}"
    return el("path", d=path, class_="cross")


def _importance(importance: tuple[tuple[str, float], ...]) -> Markup:
    if not importance:
        return EMPTY
    most = max(share for _, share in importance) or 1.0
    rows = [
        el(
            "tr",
            el("td", name, class_="strong"),
            el("td", el("svg", _bar(share / most), viewBox="0 0 300 12", width=300, height=12, role="img")),
            el("td", percent(share), class_="number"),
        )
        for name, share in sorted(importance, key=lambda pair: -pair[1])
    ]
    head = el("tr", el("th", "knob"), el("th", "effect on the time"), el("th", "importance", class_="number"))
    return el("table", el("thead", head), el("tbody", rows), class_="importance")


def _bar(share: float) -> Markup:
    return el("rect", x=0, y=0, width=max(1.0, 300 * share), height=12, rx=2, class_="after")
