"""Tuning curves: the best time so far against trials, on logarithmic axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as count_from

from tuneloom.report.data import CurvePoint, ModelResult, ReportData, TaskResult
from tuneloom.report.drawing.axes import chart
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.scales import Linear, Logarithmic, around
from tuneloom.report.drawing.units import brief, clipped, count, duration, time_unit, times

FIRST_SHOWN = 12
LINES = 6
KEY = "Best time so far. The dashed line is the untuned schedule; red marks on the axis are failed trials."


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where a chart's axes lie; pixels."""

    width: float
    height: float
    left: float = 46.0
    right: float = 12.0
    top: float = 24.0
    bottom: float = 30.0

    def scales(self, trials: int, times_s: list[float]) -> tuple[Linear, Logarithmic]:
        """An axis of trials and one of times that hold these values."""
        low, high = around(times_s)
        across = Linear(0, max(1, trials), self.left, self.width - self.right)
        return across, Logarithmic(low, high, self.height - self.bottom, self.top)


SMALL = Frame(width=270.0, height=164.0, right=14.0)
LARGE = Frame(width=1120.0, height=300.0, left=46.0, right=160.0, bottom=40.0)
LABEL_STEP = 30.0


def progress_section(data: ReportData) -> Markup:
    """All kernels of each model together; nothing if no model has a curve."""
    models = [model for model in data.models if model.progress]
    if not models:
        return EMPTY
    trials = max(model.trials or model.progress[-1].trial for model in models)
    values = [point.best_s for model in models for point in model.progress]
    across, up = LARGE.scales(trials, values)
    heights = _apart([up(model.progress[-1].best_s) for model in models])
    lines = [_model_line(*each, across, up) for each in zip(models, count_from(0), heights, strict=False)]
    label = "Weighted time of all kernels against trials"
    return _svg(
        LARGE,
        label,
        _axes(LARGE, across, up, 10, 5),
        lines,
        _names(LARGE, up, "all kernels of one execution, "),
        class_="progress",
    )


def curves_section(data: ReportData) -> Markup:
    """A small chart for every task, the weightiest first; the rest on request."""
    tasks = [task for task in data.tasks if task.curve or task.failed_at]
    if not tasks:
        return EMPTY
    tasks.sort(key=lambda task: -task.cost_s)
    charts = [
        el("figure", _caption(task, data), _task_chart(task), class_="late" if place >= FIRST_SHOWN else None)
        for place, task in enumerate(tasks)
    ]
    more = EMPTY
    if len(tasks) > FIRST_SHOWN:
        more = el("button", f"Show all {len(tasks)} tasks", type="button", class_="more", data_opens="curves")
    return el(
        "div", el("div", charts, class_="grid-of-charts", id="curves"), more, el("p", KEY, class_="remark")
    )


def _caption(task: TaskResult, data: ReportData) -> Markup:
    model = f"{data.called(task.job)} · " if len(data.models) > 1 else ""
    gain = times(task.speed_up) if task.speed_up else duration(task.after_s)
    title = el("span", clipped(task.name, 30), class_="name", title=f"{model}{task.name} {task.shapes}")
    return el("figcaption", title, el("span", gain, class_="gain"))


def _task_chart(task: TaskResult) -> Markup:
    values = [point.best_s for point in task.curve] + [t for t in (task.before_s,) if t]
    if not values:
        note = el("text", f"all {len(task.failed_at)} trials failed", x=135, y=80, class_="tick middle")
        return _svg(SMALL, f"{task.name}: no trial succeeded", note)
    across, up = SMALL.scales(task.trials, values)
    untuned = EMPTY
    if task.before_s:
        y = up(task.before_s)
        tip = f"untuned: {duration(task.before_s)}"
        untuned = el("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="untuned", data_tip=tip)
    line = _line(task.curve, task.trials, across, up, "line0")
    points = [_point(point, task.name, across, up) for point in task.curve]
    return _svg(
        SMALL,
        f"Tuning curve of {task.name}",
        _axes(SMALL, across, up, 4, 4),
        untuned,
        _failed(task, across),
        line,
        points,
        _names(SMALL, up),
    )


def _failed(task: TaskResult, across: Linear) -> list[Markup]:
    y = SMALL.height - SMALL.bottom
    columns = sorted({round(across(trial)) for trial in task.failed_at})
    tip = f"{count(len(task.failed_at))} of {count(task.trials)} trials failed"
    return [el("line", x1=x, x2=x, y1=y - 5, y2=y, class_="failed", data_tip=tip) for x in columns]


def _apart(wanted: list[float]) -> list[float]:
    """Heights near the wanted ones at which labels do not cover each other."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    heights = dict.fromkeys(order, 0.0)
    lowest = -LABEL_STEP
    for place in order:
        lowest = heights[place] = max(wanted[place], lowest + LABEL_STEP)
    excess = max(0.0, lowest - (LARGE.height - LARGE.bottom)) if order else 0.0
    return [heights[place] - excess for place in range(len(wanted))]


def _model_line(model: ModelResult, place: int, y: float, across: Linear, up: Logarithmic) -> Markup:
    trials = model.trials or model.progress[-1].trial
    line = _line(model.progress, trials, across, up, f"line{place % LINES}")
    last = model.progress[-1]
    label = el("text", clipped(model.name, 20), x=across(trials) + 8, y=y - 2, class_="line-name")
    value = el("text", duration(last.best_s), x=across(trials) + 8, y=y + 12, class_="tick left")
    points = [_point(point, model.name, across, up) for point in _thinned(model.progress)]
    return el("g", line, points, label, value)


def _thinned(points: Sequence[CurvePoint], most: int = 200) -> Sequence[CurvePoint]:
    step = -(-len(points) // most) or 1
    return [*points[:-1:step], points[-1]]


def _line(points: Sequence[CurvePoint], trials: int, across: Linear, up: Logarithmic, look: str) -> Markup:
    if not points:
        return EMPTY
    steps = [f"M{across(points[0].trial):.1f} {up(points[0].best_s):.1f}"]
    steps += [f"H{across(point.trial):.1f}V{up(point.best_s):.1f}" for point in points[1:]]
    steps.append(f"H{across(max(trials, points[-1].trial)):.1f}")
    return el("path", d="".join(steps), class_=f"curve {look}")


def _point(point: CurvePoint, name: str, across: Linear, up: Logarithmic) -> Markup:
    tip = f"{name}\ntrial {count(point.trial)}: {duration(point.best_s)}"
    return el("circle", cx=across(point.trial), cy=up(point.best_s), r=4, class_="point", data_tip=tip)


def _axes(frame: Frame, across: Linear, up: Logarithmic, columns: int, rows: int) -> list[Markup]:
    _, size = time_unit(up.high)
    bottom, right = frame.height - frame.bottom, frame.width - frame.right
    marks = []
    for value in up.ticks(rows):
        y = up(value)
        marks.append(el("line", x1=frame.left, x2=right, y1=y, y2=y, class_="grid"))
        marks.append(el("text", brief(value / size), x=frame.left - 6, y=y + 3.5, class_="tick right"))
    for value in across.ticks(columns):
        if value == int(value):
            marks.append(el("text", count(int(value)), x=across(value), y=bottom + 14, class_="tick"))
    marks.append(el("line", x1=frame.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    return marks


def _names(frame: Frame, up: Logarithmic, what: str = "") -> list[Markup]:
    unit, _ = time_unit(up.high)
    middle = (frame.left + frame.width - frame.right) / 2
    return [
        el("text", "trials", x=middle, y=frame.height - 3, class_="axis-name"),
        el("text", f"{what}{unit}", x=frame.left - 24, y=12, class_="axis-name left"),
    ]


def _svg(frame: Frame, label: str, *children: object, class_: str | None = None) -> Markup:
    return chart(label, frame.width, frame.height, *children, class_=class_)
