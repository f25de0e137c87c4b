"""The table of all tasks."""

from tuneloom.report.data import ReportData, TaskResult
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.units import clipped, count, duration, three_digits, times

COLUMNS = (
    ("kernel", False),
    ("shapes", False),
    ("weight", True),
    ("GFLOP", True),
    ("trials", True),
    ("failed", True),
    ("before", True),
    ("after", True),
    ("speed-up", True),
    ("GFLOP/s", True),
    ("best came from", False),
)


def task_table(data: ReportData) -> Markup:
    """One row for every task, sorted by a click on a column's head."""
    if not data.tasks:
        return EMPTY
    several = len({task.job for task in data.tasks}) > 1
    names = [("model", False), *COLUMNS] if several else list(COLUMNS)
    head = [el("th", _sorter(name), class_="number" if numeric else None) for name, numeric in names]
    ordered = sorted(data.tasks, key=lambda task: (task.job, -task.cost_s))
    rows = [el("tr", _model_cell(data, task) if several else None, _cells(task)) for task in ordered]
    table = el("table", el("thead", el("tr", head)), el("tbody", rows), class_="sortable tasks")
    return el("div", table, class_="scroller")


def _sorter(name: str) -> Markup:
    return el("button", name, type="button")


def _model_cell(data: ReportData, task: TaskResult) -> Markup:
    return el("td", data.called(task.job), data_v=data.called(task.job))


def _cells(task: TaskResult) -> list[Markup]:
    rate = task.gflop / task.after_s if task.gflop and task.after_s else None
    return [
        el("td", clipped(task.name, 36), title=task.name, data_v=task.name, class_="strong"),
        el("td", clipped(task.shapes, 34), title=task.shapes, data_v=task.shapes, class_="quiet"),
        _number(count(task.weight), task.weight),
        _number(three_digits(task.gflop) if task.gflop else "–", task.gflop),
        _number(count(task.trials), task.trials),
        _number(count(len(task.failed_at)), len(task.failed_at)),
        _number(duration(task.before_s), task.before_s),
        _number(duration(task.after_s), task.after_s),
        _number(times(task.speed_up), task.speed_up),
        _number(three_digits(rate) if rate else "–", rate),
        el("td", clipped(came_from(task), 28) or "–", title=came_from(task), data_v=came_from(task)),
    ]


def came_from(task: TaskResult) -> str:
    """Who proposed the best configuration, and who made code of it if that was not TVM."""
    return f"{task.origin}, {task.implementer}" if task.implementer else task.origin


def _number(text: str, value: float | None) -> Markup:
    return el("td", text, class_="number", data_v="" if value is None else repr(value))
