"""The table of all tasks."""

from tuneloom.report.data import ReportData, TaskResult
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.tables import Head, numbers, sorted_number, table
from tuneloom.report.drawing.units import clipped, count, duration, percent, three_digits, times

COLUMNS: tuple[Head, ...] = (
    *("kernel", "shapes"),
    *numbers("weight", "GFLOP", "trials", "failed", "before", "after", "speed-up", "GFLOP/s"),
    "best came from",
)


def task_table(data: ReportData) -> Markup:
    """One row for every task, sorted by a click on a column's head."""
    if not data.tasks:
        return EMPTY
    several = len({task.job for task in data.tasks}) > 1
    ordered = sorted(data.tasks, key=lambda task: (task.job, -task.cost_s))
    rows = [el("tr", _model_cell(data, task) if several else None, _cells(task)) for task in ordered]
    return table("sortable tasks", ["model", *COLUMNS] if several else COLUMNS, rows)


def counter_table(data: ReportData) -> Markup:
    """What devices counted in one run of each kernel's best configuration; nothing if none counts."""
    counting = sorted((t for t in data.tasks if t.counters), key=lambda task: (task.job, -task.cost_s))
    names = list(dict.fromkeys(name for task in counting for name in task.counters))
    rows = [
        el(
            "tr",
            el("td", clipped(task.name, 36), title=task.name, data_v=task.name, class_="strong"),
            [_counted(task.counters.get(name)) for name in names],
        )
        for task in counting
    ]
    return table("sortable counters", ["kernel", *numbers(*names)], rows) if names else EMPTY


def _counted(value: float | None) -> Markup:
    """A counter: whole numbers are counts, others are shares of one."""
    if value is None:
        return sorted_number("–", None)
    return sorted_number(count(int(value)) if float(value).is_integer() else percent(value), value)


def _model_cell(data: ReportData, task: TaskResult) -> Markup:
    return el("td", data.called(task.job), data_v=data.called(task.job))


def _cells(task: TaskResult) -> list[Markup]:
    rate = task.gflop / task.after_s if task.gflop and task.after_s else None
    return [
        el("td", clipped(task.name, 36), title=task.name, data_v=task.name, class_="strong"),
        el("td", clipped(task.shapes, 34), title=task.shapes, data_v=task.shapes, class_="quiet"),
        sorted_number(count(task.weight), task.weight),
        sorted_number(three_digits(task.gflop) if task.gflop else "–", task.gflop),
        sorted_number(count(task.trials), task.trials),
        sorted_number(count(len(task.failed_at)), len(task.failed_at)),
        sorted_number(duration(task.before_s), task.before_s),
        sorted_number(duration(task.after_s), task.after_s),
        sorted_number(times(task.speed_up), task.speed_up),
        sorted_number(three_digits(rate) if rate else "–", rate),
        el("td", clipped(came_from(task), 28) or "–", title=came_from(task), data_v=came_from(task)),
    ]


def came_from(task: TaskResult) -> str:
    """Who proposed the best configuration, and who made code of it if that was not TVM."""
    return f"{task.origin}, {task.implementer}" if task.implementer else task.origin
