"""The Gantt chart: who held which resource when.

What is wider than a pixel is drawn as itself; narrower spans are gathered in
columns that show which share of that time each kind of stage took. The page's script
draws the same way from the same numbers when the reader zooms in.
"""

from collections import defaultdict

from tuneloom.report.data import ReportData
from tuneloom.report.drawing.kinds import kinds_in_order, look_of, swatch
from tuneloom.report.drawing.markup import EMPTY, Markup, data_script, el, joined
from tuneloom.report.drawing.scales import nice_seconds
from tuneloom.report.drawing.units import clipped, count, duration
from tuneloom.report.sections.tracks import Placed, Track, TrackLayout, lay_out

WIDTH = 1120.0
LEFT = 150.0
PLOT = WIDTH - LEFT - 10.0
AXIS = 40.0
COLUMN = 2.0
NARROW = 1.0
LABEL_WIDTH = 46.0
LABEL_HEIGHT = 13.0


def gantt(data: ReportData) -> Markup:
    """The chart with its legend, controls and data; nothing if no span was recorded."""
    if not data.spans:
        return EMPTY
    layout = lay_out(data.resources, data.spans)
    order = kinds_in_order(span.kind for span in data.spans)
    end_s = max(data.seconds or 0.0, max(span.end_s for span in data.spans)) or 1.0
    return el(
        "div",
        _controls(data, order),
        el("div", _chart(layout, order, end_s), class_="scroller"),
        _remark(layout, data),
        data_script("gantt-data", _numbers(data, layout, order, end_s)),
        class_="gantt",
    )


def _controls(data: ReportData, order: list[str]) -> Markup:
    totals = dict.fromkeys(order, 0.0)
    for span in data.spans:
        totals[span.kind] += span.seconds * span.slots
    legend = [
        el(
            "li",
            swatch(look_of(kind, order)),
            el("span", kind),
            el("span", duration(totals[kind]), class_="quiet"),
        )
        for kind in order
    ]
    jobs = sorted({span.job for span in data.spans})
    choices = [el("option", "all jobs", value=""), *(el("option", data.called(j), value=j) for j in jobs)]
    buttons = [
        el("button", "+", type="button", id="zoom-in", title="Zoom in", aria_label="Zoom in"),
        el("button", "−", type="button", id="zoom-out", title="Zoom out", aria_label="Zoom out"),
        el("button", "Whole run", type="button", id="zoom-reset"),
    ]
    picker = el("label", "Show ", el("select", choices, id="gantt-job")) if len(jobs) > 1 else EMPTY
    return el(
        "div", el("ul", legend, class_="legend"), el("div", picker, buttons, class_="controls"), class_="bar"
    )


def _chart(layout: TrackLayout, order: list[str], end_s: float) -> Markup:
    return el(
        "svg",
        [_track(track, end_s) for track in layout.tracks],
        el("g", _axis(end_s, layout.height), id="gantt-axis"),
        el("g", _marks(layout, order, end_s), id="gantt-marks"),
        el("rect", x=LEFT, y=0, width=0, height=layout.height, id="gantt-brush", class_="brush"),
        el(
            "text",
            "time since the run began",
            x=LEFT + PLOT / 2,
            y=layout.height + AXIS - 4,
            class_="axis-name",
        ),
        viewBox=f"0 0 {WIDTH:g} {layout.height + AXIS:g}",
        id="gantt-chart",
        role="img",
        aria_label="Gantt chart of all resources",
    )


def _track(track: Track, end_s: float) -> Markup:
    resource = track.resource
    about = resource.device_key or (f"{resource.slots} slots" if resource.slots > 1 else "1 slot")
    middle = track.top + track.height / 2
    two_lines = track.height >= 30
    name = el(
        "text",
        clipped(resource.name, 20),
        x=LEFT - 12,
        y=middle - (3 if two_lines else -4),
        class_="row-name",
    )
    detail = (
        el("text", clipped(about, 22), x=LEFT - 12, y=middle + 12, class_="row-detail")
        if two_lines
        else EMPTY
    )
    rules = [
        el("line", x1=LEFT, x2=LEFT + PLOT, y1=y, y2=y, class_="slot-rule")
        for y in (track.top + row * track.row_height for row in range(1, track.rows))
    ]
    idle = el("rect", x=LEFT, y=track.top, width=PLOT, height=track.height, class_="idle")
    return el("g", idle, rules, _absences(track, end_s), name, detail)


def _absences(track: Track, end_s: float) -> list[Markup]:
    """The times at which a resource could not be used, marked with why."""
    resource, scale = track.resource, PLOT / end_s
    marks = []
    for start_s, stop_s in resource.missing(end_s):
        joined = start_s == 0.0 and stop_s == resource.joined_s
        tip = f"{resource.name}\n" + ("not there yet" if joined else f"lost: {resource.why_away}")
        x, width = LEFT + start_s * scale, (stop_s - start_s) * scale
        shape = {"x": x, "y": track.top, "width": width, "height": track.height}
        marks.append(el("rect", **shape, class_="away", data_tip=tip, data_from=start_s, data_to=stop_s))
    return marks


def _axis(end_s: float, height: float) -> list[Markup]:
    step = nice_seconds(end_s / 9)
    marks = []
    for index in range(int(end_s / step + 1e-9) + 1):
        x = LEFT + index * step / end_s * PLOT
        marks.append(el("line", x1=x, x2=x, y1=0, y2=height + 5, class_="grid"))
        marks.append(el("text", clock(index * step, step), x=x, y=height + 19, class_="tick"))
    return marks


def clock(seconds: float, step: float) -> str:
    """A moment on the axis, as exact as its steps."""
    if step >= 60:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes:02d}" if hours else f"{minutes} min"
    if seconds >= 60 and step >= 1:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"
    digits = 0 if step >= 1 else 1 if step >= 0.1 else 3
    return f"{seconds:.{digits}f} s"


def _marks(layout: TrackLayout, order: list[str], end_s: float) -> list[Markup]:
    scale = PLOT / end_s
    track_of = [track for track in layout.tracks for _ in range(track.rows)]
    marks = []
    columns: dict[tuple[int, int], dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for item in layout.placed:
        look = look_of(item.span.kind, order)
        if item.span.seconds * scale >= NARROW:
            marks.append(_bar(item, track_of[item.row], look, scale))
        else:
            column = int(item.span.start_s * scale / COLUMN)
            for row in range(item.row, item.row + item.span.slots):
                columns[row, column][look] += item.span.seconds
    for (row, column), shares in columns.items():
        marks += _column(track_of[row], row, column, shares, scale)
    return marks


def _bar(item: Placed, track: Track, look: int, scale: float) -> Markup:
    x, width = LEFT + item.span.start_s * scale, item.span.seconds * scale
    y = track.top + (item.row - track.first_row) * track.row_height
    height = track.row_height * item.span.slots
    bar = el("rect", x=x, y=y, width=width, height=height, class_=f"k{look} mark", data_i=item.number)
    if width < LABEL_WIDTH or height < LABEL_HEIGHT:
        return bar
    text = clipped(item.span.kind, int(width / 7))
    return joined((bar, el("text", text, x=x + width / 2, y=y + height / 2 + 3.5, class_="bar-label")))


def _column(track: Track, row: int, column: int, shares: dict[int, float], scale: float) -> list[Markup]:
    bottom = track.top + (row - track.first_row + 1) * track.row_height
    x, whole = LEFT + column * COLUMN, COLUMN / scale
    marks = []
    for look, seconds in sorted(shares.items()):
        height = max(0.5, track.row_height * min(1.0, seconds / whole))
        bottom -= height
        marks.append(el("rect", x=x, y=bottom, width=COLUMN, height=height, class_=f"s{look} mark gathered"))
    return marks


def _remark(layout: TrackLayout, data: ReportData) -> Markup:
    parts = [
        f"{count(len(data.spans))} stages. Gaps are idle time; where stages are too short to be visible,",
        "columns show the fraction of time that each kind took.",
        "Drag across the chart to zoom in; double-click to see the whole run again.",
    ]
    if layout.left_out:
        shown = f"The {len(layout.tracks)} busiest resources are shown"
        parts.append(f"{shown}; {layout.left_out} more are in the table below.")
    return el("p", " ".join(parts), class_="remark")


def _numbers(data: ReportData, layout: TrackLayout, order: list[str], end_s: float) -> dict[str, object]:
    jobs = sorted({item.span.job for item in layout.placed})
    tasks = sorted({item.span.task for item in layout.placed})
    job_at = {job: index for index, job in enumerate(jobs)}
    task_at = {task: index for index, task in enumerate(tasks)}
    return {
        "plot": [LEFT, PLOT, layout.height],
        "end": end_s,
        "rows": [
            [round(track.top + row * track.row_height, 2), round(track.row_height, 2), track.resource.name]
            for track in layout.tracks
            for row in range(track.rows)
        ],
        "kinds": [[kind, look_of(kind, order)] for kind in order],
        "jobs": [[job, data.called(job)] for job in jobs],
        "tasks": [data.called(task) for task in tasks],
        "spans": [
            [
                item.row,
                round(item.span.start_s, 4),
                round(item.span.seconds, 4),
                order.index(item.span.kind),
                job_at[item.span.job],
                task_at[item.span.task],
                round(item.span.waited_s, 4),
                item.span.slots,
                item.number,
            ]
            for item in layout.placed
        ],
    }
