"""How it was measured: versions, policy, and whether neighbours disturbed the device."""

from tuneloom.report.data import DriftPoint, ReportData
from tuneloom.report.drawing.axes import chart
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.scales import Linear
from tuneloom.report.drawing.units import clipped, duration, percent

WIDTH, HEIGHT, LEFT, BOTTOM = 560.0, 170.0, 58.0, 34.0
LONGEST_VALUE = 400
USUAL = 0.02


def measured_section(data: ReportData) -> Markup:
    """Facts and the canary's drift; nothing if neither is known."""
    if not data.facts and not data.drift:
        return EMPTY
    facts = [
        el("div", el("dt", fact.name), el("dd", clipped(fact.value, LONGEST_VALUE), title=fact.value))
        for fact in data.facts
    ]
    return el("div", el("dl", facts, class_="facts"), _drift(data.drift), class_="measured")


def _drift(points: tuple[DriftPoint, ...]) -> Markup:
    if not points:
        return EMPTY
    farthest = max(USUAL, *(abs(point.ratio - 1) for point in points)) * 1.15
    across = Linear(0.0, max(point.at_s for point in points) or 1.0, LEFT, WIDTH - 12)
    up = Linear(1 - farthest, 1 + farthest, HEIGHT - BOTTOM, 10)
    worst = max(points, key=lambda point: abs(point.ratio - 1))
    title = f"Canary kernel relative to its fastest time: at most {percent(abs(worst.ratio - 1))} off"
    return el(
        "figure",
        el("figcaption", el("span", title, class_="name")),
        chart(
            title, WIDTH, HEIGHT, _usual(up), _ticks(across, up), [_point(one, across, up) for one in points]
        ),
    )


def _usual(up: Linear) -> Markup:
    top, bottom = up(1 + USUAL), up(1 - USUAL)
    return el("rect", x=LEFT, y=top, width=WIDTH - 12 - LEFT, height=bottom - top, class_="usual")


def _ticks(across: Linear, up: Linear) -> list[Markup]:
    marks = []
    for value in up.ticks(4):
        y = up(value)
        marks.append(el("line", x1=LEFT, x2=WIDTH - 12, y1=y, y2=y, class_="grid"))
        marks.append(el("text", f"{(value - 1) * 100:+.1f} %", x=LEFT - 6, y=y + 3.5, class_="tick right"))
    for value in across.ticks(5):
        marks.append(
            el(
                "text",
                duration(value) if value else "0",
                x=across(value),
                y=HEIGHT - BOTTOM + 15,
                class_="tick",
            )
        )
    marks.append(
        el("text", "time since the run began", x=(LEFT + WIDTH) / 2, y=HEIGHT - 3, class_="axis-name")
    )
    return marks


def _point(point: DriftPoint, across: Linear, up: Linear) -> Markup:
    tip = f"{duration(point.at_s)} into the run\n{(point.ratio - 1) * 100:+.2f} %"
    return el("circle", cx=across(point.at_s), cy=up(point.ratio), r=3, class_="dot", data_tip=tip)
