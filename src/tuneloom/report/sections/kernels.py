"""What each kernel costs its model, before and after."""

from tuneloom.report.data import ReportData, TaskResult
from tuneloom.report.drawing.axes import chart, values_below
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.scales import Linear
from tuneloom.report.drawing.units import clipped, duration, percent, time_unit, times

MOST = 20
WIDTH, LEFT, RIGHT, TOP, ROW, AXIS = 1120.0, 300.0, 210.0, 18.0, 26.0, 44.0


def kernels_section(data: ReportData) -> Markup:
    """One chart for every model; nothing if no kernel was timed."""
    jobs = [model.job for model in data.models] or sorted({task.job for task in data.tasks})
    charts = [_of_model(data, job, headed=len(jobs) > 1) for job in jobs]
    return el("div", _legend(), charts) if any(charts) else EMPTY


def _legend() -> Markup:
    return el(
        "ul",
        el("li", _swatch(0, 12, "before"), "before"),
        el("li", _swatch(3, 6, "after"), "after"),
        class_="legend",
    )


def _swatch(y: int, height: int, look: str) -> Markup:
    mark = el("rect", y=y, width=26, height=height, rx=2, class_=look)
    return el("svg", mark, width=26, height=12, class_="swatch")


def _of_model(data: ReportData, job: str, headed: bool) -> Markup:
    tasks = sorted((t for t in data.tasks if t.job == job and t.cost_s > 0), key=lambda t: -t.cost_s)
    if not tasks:
        return EMPTY
    head = el("h3", data.called(job)) if headed else EMPTY
    rest = tasks[MOST:]
    remark = EMPTY
    if rest:
        share = sum(task.cost_s for task in rest) / sum(task.cost_s for task in tasks)
        remark = el(
            "p",
            f"{len(rest)} more kernels account for {percent(share)}; they are in the table.",
            class_="remark",
        )
    return el("div", head, el("div", _chart(tasks[:MOST], tasks), class_="scroller"), remark)


def _chart(shown: list[TaskResult], tasks: list[TaskResult]) -> Markup:
    longest = max(max(task.cost_s, task.weight * (task.after_s or 0.0)) for task in shown)
    across = Linear(0.0, longest * 1.02, LEFT, WIDTH - RIGHT)
    before, after = sum(t.cost_s for t in tasks), sum(_after(t) for t in tasks)
    rows = [_row(task, place, across, before, after) for place, task in enumerate(shown)]
    bottom = TOP + len(shown) * ROW
    head = [
        el("text", "speed-up", x=WIDTH - RIGHT + 64, y=11, class_="axis-name right"),
        el("text", "fraction of the model", x=WIDTH, y=11, class_="axis-name right"),
    ]
    unit, size = time_unit(across.high)
    name = f"time × weight in one execution of the model, {unit}"
    axis, label = (
        values_below(across, 6, size, name, TOP, bottom),
        "Time of every kernel before and after tuning",
    )
    return chart(label, WIDTH, bottom + AXIS, axis, rows, head, class_="kernels")


def _after(task: TaskResult) -> float:
    return task.weight * (task.after_s or task.before_s or 0.0)


def _row(task: TaskResult, place: int, across: Linear, before: float, after: float) -> Markup:
    top = TOP + place * ROW
    tip = (
        f"{task.name}\n{task.shapes}\nweight {task.weight}\n"
        f"before {duration(task.before_s)}, after {duration(task.after_s)} each"
        + (f"\ncode by {task.implementer}" if task.implementer else "")
    )
    wide = across(task.weight * task.before_s) - across.start if task.before_s else 0.0
    slim = across(task.weight * task.after_s) - across.start if task.after_s else 0.0
    maker = f" [{task.implementer}]" if task.implementer else ""
    label = clipped(task.name, 34 - len(maker)) + maker + (f" ×{task.weight}" if task.weight > 1 else "")
    shares = f"{percent(task.cost_s / before)} → {percent(_after(task) / after)}"
    return el(
        "g",
        el("rect", x=0, y=top, width=WIDTH, height=ROW, class_="hit"),
        el("text", label, x=LEFT - 10, y=top + 17, class_="row-name"),
        el("rect", x=across.start, y=top + 5, width=wide, height=16, rx=2, class_="before"),
        el("rect", x=across.start, y=top + 9, width=slim, height=8, rx=1, class_="after"),
        el("text", times(task.speed_up), x=WIDTH - RIGHT + 64, y=top + 17, class_="value"),
        el("text", shares, x=WIDTH, y=top + 17, class_="tick right"),
        class_="kernel",
        data_tip=tip,
    )
