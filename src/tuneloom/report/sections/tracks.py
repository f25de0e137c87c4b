"""Spans laid out in rows: one row for each slot of a resource."""

from collections.abc import Sequence
from dataclasses import dataclass

from tuneloom.report.data import ResourceInfo, ResourceSpan

TALLEST, USUAL_HEIGHT = 34.0, 22.0
FEW_ROWS = 8
RESOURCE_HEIGHT = 132.0
GAP = 12.0
MOST_RESOURCES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A span, its number in the report, and its first row."""

    number: int
    span: ResourceSpan
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """A resource's rows on the chart."""

    resource: ResourceInfo
    first_row: int
    rows: int
    top: float
    row_height: float

    @property
    def height(self) -> float:
        return self.rows * self.row_height


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackLayout:
    """All tracks from top to bottom with the spans in them; some resources may be left out."""

    tracks: tuple[Track, ...]
    placed: tuple[Placed, ...]
    height: float
    left_out: int = 0


def lay_out(resources: Sequence[ResourceInfo], spans: Sequence[ResourceSpan]) -> TrackLayout:
    """Give every span of a shown resource rows that nothing else holds at that time."""
    shown = _shown(resources, spans)
    by_resource: dict[str, list[tuple[int, ResourceSpan]]] = {resource.name: [] for resource in shown}
    for number, span in enumerate(spans):
        if span.resource in by_resource:
            by_resource[span.resource].append((number, span))
    tallest = TALLEST if sum(resource.slots for resource in shown) <= FEW_ROWS else USUAL_HEIGHT
    tracks: list[Track] = []
    placed: list[Placed] = []
    top, first_row = 0.0, 0
    for resource in shown:
        found, rows = _stack(by_resource[resource.name], resource.slots, first_row)
        height = min(tallest, RESOURCE_HEIGHT / rows)
        tracks.append(Track(resource=resource, first_row=first_row, rows=rows, top=top, row_height=height))
        placed += found
        top, first_row = top + rows * height + GAP, first_row + rows
    ordered = tuple(sorted(placed, key=lambda item: item.span.start_s))
    left_out = len(_known(resources, spans)) - len(shown)
    return TrackLayout(tracks=tuple(tracks), placed=ordered, height=max(0.0, top - GAP), left_out=left_out)


def _known(resources: Sequence[ResourceInfo], spans: Sequence[ResourceSpan]) -> list[ResourceInfo]:
    """The resources of the report, and those that only spans name."""
    names = {resource.name for resource in resources}
    others = sorted({span.resource for span in spans} - names)
    return [*resources, *(ResourceInfo(name=name) for name in others)]


def _shown(resources: Sequence[ResourceInfo], spans: Sequence[ResourceSpan]) -> list[ResourceInfo]:
    """All resources, or the busiest where there are too many, in the report's order."""
    known = _known(resources, spans)
    busy = dict.fromkeys((resource.name for resource in known), 0.0)
    for span in spans:
        busy[span.resource] += span.seconds * span.slots
    busiest = set(sorted(busy, key=lambda name: -busy[name])[:MOST_RESOURCES])
    return [resource for resource in known if resource.name in busiest]


def _stack(spans: list[tuple[int, ResourceSpan]], slots: int, first_row: int) -> tuple[list[Placed], int]:
    free_at = [0.0] * slots
    placed = []
    for number, span in sorted(spans, key=lambda item: (item[1].start_s, item[1].end_s)):
        row = _free_row(free_at, span)
        free_at.extend([0.0] * (row + span.slots - len(free_at)))
        free_at[row : row + span.slots] = [span.end_s] * span.slots
        placed.append(Placed(number=number, span=span, row=first_row + row))
    return placed, len(free_at)


def _free_row(free_at: list[float], span: ResourceSpan) -> int:
    """The first row from which on enough rows are free; one beyond the last if none is."""
    # Clocks of different processes differ a little: a microsecond is no overlap.
    start = span.start_s + 1e-6
    for row in range(len(free_at) + 1):
        if all(end <= start for end in free_at[row : row + span.slots]):
            return row
    raise AssertionError("a row beyond the last is always free")
