"""Charts of a grid: one row for each group of seeds, one mark for each run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuneloom.report.drawing.axes import chart, values_below
from tuneloom.report.drawing.kinds import kinds_in_order, look_of, swatch
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.scales import Linear
from tuneloom.report.drawing.units import brief, duration, time_unit, times
from tuneloom.report.superb.data import GridData, GridGroup, GridRun, mean_and_spread

WIDTH, NAMES, VALUES = 1120.0, 300.0, 150.0
ROW, TOP, BOTTOM = 30.0, 8.0, 44.0
TRADE_LEFT, TRADE_HEIGHT = 60.0, 300.0
LOOKS_OF_GROUPS = (3, 1, 2, 4, 6, 7, 8, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure of a run: its name, how to read it, how to write it."""

    title: str
    axis: str
    of: Callable[[GridRun], float | None]
    written: Callable[[float | None], str] = duration
    is_time: bool = True


TUNING = Measure(title="Tuning time", axis="tuning time", of=lambda run: run.tuning_s)
LATENCY = Measure(title="Latency after tuning", axis="latency after tuning", of=lambda run: run.after_s)
SPEED_UP = Measure(
    title="Speed-up", axis="times faster", of=lambda run: run.speed_up, written=times, is_time=False
)


def measure_chart(data: GridData, measure: Measure) -> Markup:
    """Every run as a point, the mean as a bar, the spread as a line; nothing if no run has the figure."""
    values = [value for run in data.runs if (value := measure.of(run)) is not None and run.finished]
    if not values:
        return EMPTY
    across = Linear(0.0, max(values) * 1.04, NAMES, WIDTH - VALUES)
    rows = [_measure_row(group, measure, across, _y(n)) for n, group in enumerate(data.groups)]
    unit, size = time_unit(max(values)) if measure.is_time else ("", 1.0)
    name = f"{measure.axis}, {unit}" if unit else measure.axis
    return _svg(measure.title, len(data.groups), _axis(across, size, name, len(data.groups)), rows)


def _measure_row(group: GridGroup, measure: Measure, across: Linear, y: float) -> Markup:
    found = [(run, value) for run in group.finished if (value := measure.of(run)) is not None]
    middle, spread = mean_and_spread([value for _, value in found])
    marks: list[Markup] = [_name(group, y)]
    if middle is None:
        return el("g", marks, el("text", "no finished run", x=NAMES + 6, y=y + 4, class_="tick left"))
    told = f"{group.told()}\nmean of {len(found)}: {measure.written(middle)}"
    told += f"\nstandard deviation: {measure.written(spread)}" if spread is not None else ""
    width = across(middle) - NAMES
    marks.append(
        el("rect", x=NAMES, y=y - 8, width=width, height=16, rx=2, class_="before mark", data_tip=told)
    )
    if spread:
        low, high = across(max(0.0, middle - spread)), across(middle + spread)
        marks.append(el("line", x1=low, x2=high, y1=y, y2=y, class_="axis"))
    marks += [_dot(run, measure.written(value), across(value), y) for run, value in found]
    shown = measure.written(middle) + (f" ± {measure.written(spread)}" if spread is not None else "")
    marks.append(el("text", shown, x=WIDTH - VALUES + 10, y=y + 4, class_="value left"))
    return el("g", marks)


def _dot(run: GridRun, written: str, x: float, y: float, look: str = "dot") -> Markup:
    told = "\n".join(f"{name}: {value}" for name, value in run.values.items())
    seed = f"\nseed {run.seed}" if run.seed else ""
    return el("circle", cx=x, cy=y, r=4, class_=look, data_tip=f"{told}{seed}\n{written}")


def stages_chart(data: GridData) -> Markup:
    """Where the time of each group went, stage by stage; nothing if no run finished."""
    totals = [group.stage_means_s() for group in data.groups]
    longest = max((sum(total.values()) for total in totals), default=0.0)
    if not longest:
        return EMPTY
    order = kinds_in_order(kind for total in totals for kind in total)
    across = Linear(0.0, longest * 1.04, NAMES, WIDTH - VALUES)
    rows = [
        _stage_row(group, total, order, across, _y(n))
        for n, (group, total) in enumerate(zip(data.groups, totals, strict=True))
    ]
    unit, size = time_unit(longest)
    axis = _axis(across, size, f"slot time of all stages, mean of seeds, {unit}", len(rows))
    legend = [el("li", swatch(look_of(kind, order)), kind) for kind in order]
    drawn = _svg("Where the time went", len(rows), axis, rows)
    return el("div", el("div", el("ul", legend, class_="legend"), class_="bar"), drawn)


def _stage_row(
    group: GridGroup, total: dict[str, float], order: list[str], across: Linear, y: float
) -> Markup:
    marks, passed = [_name(group, y)], 0.0
    for kind in order:
        seconds = total.get(kind, 0.0)
        if seconds:
            x, end = across(passed), across(passed + seconds)
            tip = f"{group.told()}\n{kind}: {duration(seconds)}"
            look = f"k{look_of(kind, order)} mark"
            marks.append(el("rect", x=x, y=y - 9, width=end - x, height=18, class_=look, data_tip=tip))
        passed += seconds
    shown = duration(passed) if total else "no finished run"
    marks.append(el("text", shown, x=WIDTH - VALUES + 10, y=y + 4, class_="value left"))
    return el("g", marks)


def trade_chart(data: GridData) -> Markup:
    """Speed-up against tuning time, a point for each finished run; nothing for fewer than two."""
    points = [
        (n, run, run.tuning_s, run.speed_up)
        for n, group in enumerate(data.groups)
        for run in group.finished
        if run.tuning_s and run.speed_up
    ]
    if len(points) < 2:
        return EMPTY
    across = Linear(0.0, max(x for _, _, x, _ in points) * 1.05, TRADE_LEFT, WIDTH - 20)
    up = Linear(0.0, max(y for *_, y in points) * 1.08, TRADE_HEIGHT - BOTTOM, 14.0)
    dots = [
        _dot(run, f"{duration(x)}, {times(y)} faster", across(x), up(y), _look(n, data))
        for n, run, x, y in points
    ]
    label, axes = "Speed-up against tuning time", _trade_axes(across, up)
    drawn = chart(label, WIDTH, TRADE_HEIGHT, axes, dots, class_="progress")
    return el("div", _trade_legend(data), drawn)


def _look(number: int, data: GridData) -> str:
    """A colour of its own for each group while there are few."""
    return f"s{LOOKS_OF_GROUPS[number]}" if 1 < len(data.groups) <= len(LOOKS_OF_GROUPS) else "dot"


def _trade_legend(data: GridData) -> Markup:
    if not 1 < len(data.groups) <= len(LOOKS_OF_GROUPS):
        return EMPTY
    items = [el("li", _sample(_look(n, data)), group.label(60)) for n, group in enumerate(data.groups)]
    return el("div", el("ul", items, class_="legend"), class_="bar")


def _sample(look: str) -> Markup:
    return el("svg", el("circle", cx=6, cy=6, r=4.5, class_=look), width=12, height=12)


def _trade_axes(across: Linear, up: Linear) -> list[Markup]:
    unit, size = time_unit(across.high)
    bottom = TRADE_HEIGHT - BOTTOM
    marks = [_grid_line(up(y), brief(y)) for y in up.ticks(5)]
    for x in across.ticks(8):
        marks.append(el("text", brief(x / size), x=across(x), y=bottom + 16, class_="tick"))
    marks.append(el("line", x1=TRADE_LEFT, x2=WIDTH - 20, y1=bottom, y2=bottom, class_="axis"))
    name = f"tuning time, {unit}"
    marks.append(el("text", name, x=WIDTH / 2, y=TRADE_HEIGHT - 8, class_="axis-name"))
    marks.append(el("text", "times faster", x=TRADE_LEFT, y=9, class_="axis-name left"))
    return marks


def _grid_line(y: float, text: str) -> Markup:
    line = el("line", x1=TRADE_LEFT, x2=WIDTH - 20, y1=y, y2=y, class_="grid")
    return el("g", line, el("text", text, x=TRADE_LEFT - 6, y=y + 4, class_="tick right"))


def _y(number: int) -> float:
    return TOP + ROW * (number + 0.5)


def _name(group: GridGroup, y: float) -> Markup:
    return el("text", group.label(), x=NAMES - 10, y=y + 4, class_="row-name", data_tip=group.told())


def _axis(across: Linear, size: float, name: str, rows: int) -> list[Markup]:
    return values_below(across, 8, size, name, TOP, TOP + ROW * rows)


def _svg(label: str, rows: int, *children: Markup | Sequence[Markup]) -> Markup:
    return el("div", chart(label, WIDTH, TOP + ROW * rows + BOTTOM, *children), class_="scroller")
