"""The page of a grid: charts and tables of all its runs, in one file that needs nothing else."""

from collections.abc import Sequence

from tuneloom.report.drawing.kinds import patterns
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.tables import numbers, sorted_number, table
from tuneloom.report.drawing.units import clipped, count, duration, times
from tuneloom.report.page import asset, document, section
from tuneloom.report.sections.headline import brand
from tuneloom.report.superb.charts import LATENCY, SPEED_UP, TUNING, measure_chart, stages_chart, trade_chart
from tuneloom.report.superb.data import GridData, GridRun


def render_grid(data: GridData) -> str:
    """A complete HTML page about a grid; the same data give the same page."""
    body = el(
        "body",
        patterns(),
        _masthead(data),
        el("main", _sections(data)),
        el("div", id="tip", role="tooltip", hidden="hidden"),
        el("script", asset("page.js")),
    )
    return document(data.name, body)


def _masthead(data: GridData) -> Markup:
    finished = sum(run.finished for run in data.runs)
    state = f"{count(finished)} of {count(len(data.runs))} runs finished"
    fixed = " · ".join(f"{name} {value}" for name, value in data.fixed.items())
    return el(
        "header",
        brand(),
        el("h1", data.name),
        el(
            "p",
            el("span", state, class_="state" if finished == len(data.runs) else "state failed"),
            el("span", fixed) if fixed else EMPTY,
            class_="about",
        ),
    )


def _sections(data: GridData) -> list[Markup]:
    return [
        section("Tuning time", measure_chart(data, TUNING)),
        section("Where the time went", stages_chart(data)),
        section("Latency after tuning", measure_chart(data, LATENCY)),
        section("Speed-up", measure_chart(data, SPEED_UP)),
        section("Latency against tuning time", trade_chart(data)),
        section("All runs", runs_table(data)),
    ]


def runs_table(data: GridData) -> Markup:
    """One row for every run, sorted by a click on a column's head."""
    names = list(dict.fromkeys(name for run in data.runs for name in run.values))
    counted = numbers("tuning time", "before", "after", "speed-up", "trials", "failed")
    rows = [el("tr", _cells(run, names)) for run in data.runs]
    return table("sortable", [*names, "seed", "status", *counted], rows)


def _cells(run: GridRun, names: Sequence[str]) -> list[Markup]:
    parameters = [_text(run.values.get(name, "")) for name in names]
    message = (
        el("span", clipped(run.message, 80), class_="under", title=run.message) if run.message else EMPTY
    )
    return [
        *parameters,
        _text(run.seed),
        el("td", run.status, message, data_v=run.status),
        sorted_number(duration(run.tuning_s), run.tuning_s),
        sorted_number(duration(run.before_s), run.before_s),
        sorted_number(duration(run.after_s), run.after_s),
        sorted_number(times(run.speed_up), run.speed_up),
        sorted_number(count(run.trials), run.trials),
        sorted_number(count(run.failed), run.failed),
    ]


def _text(value: str) -> Markup:
    return el("td", clipped(value, 40), title=value, data_v=value)
