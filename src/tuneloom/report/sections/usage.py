"""How busy every resource was, and how long stages waited for it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import mean

from tuneloom.report.data import ReportData, ResourceInfo, ResourceSpan
from tuneloom.report.drawing.kinds import kinds_in_order, look_of
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.tables import numbers, table
from tuneloom.report.drawing.units import count, duration, percent

BAR, BAR_HEIGHT = 420.0, 18.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One resource over the whole run; busy seconds count every slot held."""

    resource: ResourceInfo
    of_s: float
    stages: int
    busy_s: dict[str, float] = field(default_factory=dict)
    mean_wait_s: float | None = None
    longest_wait_s: float | None = None

    @property
    def utilisation(self) -> float:
        """Busy time as a fraction of the time that its slots offered."""
        return sum(self.busy_s.values()) / (self.of_s * self.resource.slots) if self.of_s else 0.0


def usage_of(data: ReportData) -> list[Usage]:
    """All resources of the report and of its spans, in order."""
    end_s = max([data.seconds or 0.0, *(span.end_s for span in data.spans)])
    by_resource: dict[str, list[ResourceSpan]] = defaultdict(list)
    for span in data.spans:
        by_resource[span.resource].append(span)
    named = {resource.name for resource in data.resources}
    others = [ResourceInfo(name=name) for name in sorted(set(by_resource) - named)]
    return [_usage(resource, by_resource[resource.name], end_s) for resource in (*data.resources, *others)]


def usage_section(data: ReportData) -> Markup:
    """A table with a bar for every resource; nothing if no span was recorded."""
    if not data.spans:
        return EMPTY
    order = kinds_in_order(span.kind for span in data.spans)
    heads = ["resource", "utilisation (fraction of slot time)"]
    heads_of_numbers = numbers("busy", "stages", "mean wait", "longest wait")
    return table("usage", [*heads, *heads_of_numbers], _rows(usage_of(data), order))


def _rows(usages: Sequence[Usage], order: list[str]) -> list[Markup]:
    """A row for every resource; those of several machines under the names of these."""
    machines = list(dict.fromkeys(usage.resource.machine for usage in usages))
    if len(machines) < 2:
        return [_row(usage, order) for usage in usages]
    rows = []
    for machine in machines:
        rows.append(el("tr", el("th", machine or "this machine", colspan=6, class_="group")))
        rows += [_row(usage, order) for usage in usages if usage.resource.machine == machine]
    return rows


def _usage(resource: ResourceInfo, spans: Sequence[ResourceSpan], end_s: float) -> Usage:
    busy: dict[str, float] = defaultdict(float)
    for span in spans:
        busy[span.kind] += span.seconds * span.slots
    waits = [span.waited_s for span in spans if span.ready_s is not None]
    return Usage(
        resource=resource,
        of_s=max(0.0, end_s - sum(stop_s - start_s for start_s, stop_s in resource.missing(end_s))),
        stages=len(spans),
        busy_s=dict(busy),
        mean_wait_s=mean(waits) if waits else None,
        longest_wait_s=max(waits, default=None),
    )


def _row(usage: Usage, order: list[str]) -> Markup:
    resource = usage.resource
    about = resource.device_key or ("1 slot" if resource.slots == 1 else f"{resource.slots} slots")
    about += _absences(resource)
    return el(
        "tr",
        el("td", resource.name, el("span", about, class_="under")),
        el("td", _bar(usage, order)),
        el("td", percent(usage.utilisation), class_="number strong"),
        el("td", count(usage.stages), class_="number"),
        el("td", duration(usage.mean_wait_s), class_="number"),
        el("td", duration(usage.longest_wait_s), class_="number"),
    )


def _absences(resource: ResourceInfo) -> str:
    """How often it was away, and why the last time."""
    if not resource.away:
        return ""
    times = "once" if len(resource.away) == 1 else f"{len(resource.away)} times"
    back = "not back" if resource.away[-1][1] is None else "back again"
    return f", lost {times} ({resource.why_away}), {back}"


def _bar(usage: Usage, order: list[str]) -> Markup:
    whole = max(usage.of_s * usage.resource.slots, sum(usage.busy_s.values())) or 1.0
    marks, x = [el("rect", x=0.5, y=0.5, width=BAR - 1, height=BAR_HEIGHT - 1, class_="idle")], 0.0
    for kind in order:
        seconds = usage.busy_s.get(kind, 0.0)
        width = seconds / whole * BAR
        tip = f"{usage.resource.name}\n{kind}: {duration(seconds)}, {percent(seconds / whole)}"
        if width > 0:
            shape = {"x": x, "y": 0, "width": width, "height": BAR_HEIGHT}
            marks.append(el("rect", **shape, class_=f"k{look_of(kind, order)} mark", data_tip=tip))
        x += width
    return el(
        "svg",
        marks,
        viewBox=f"0 0 {BAR:g} {BAR_HEIGHT:g}",
        class_="usage-bar",
        role="img",
        preserveAspectRatio="xMinYMid",
    )
