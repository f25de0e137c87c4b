"""Spans are laid out so that none covers another."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from tuneloom.report import ResourceInfo, ResourceSpan
from tuneloom.report.sections.tracks import MOST_RESOURCES, lay_out


def span(resource: str, start: float, end: float, slots: int = 1) -> ResourceSpan:
    return ResourceSpan(
        job="j", task="t", kind="build", resource=resource, start_s=start, end_s=end, slots=slots
    )


SPANS = st.lists(
    st.builds(
        lambda resource, start, length, slots: span(resource, start, start + length, slots),
        st.sampled_from(["host", "gpu"]),
        st.integers(0, 40).map(float),
        st.integers(1, 9).map(float),
        st.integers(1, 3),
    ),
    max_size=30,
)


@given(SPANS)
def test_no_two_spans_share_a_row_at_a_time(spans: list[ResourceSpan]) -> None:
    layout = lay_out([ResourceInfo(name="host", slots=2)], spans)
    held: dict[tuple[int, int], int] = defaultdict(int)
    for item in layout.placed:
        for row in range(item.row, item.row + item.span.slots):
            for second in range(int(item.span.start_s), int(item.span.end_s)):
                held[row, second] += 1
    assert len(layout.placed) == len(spans)
    assert all(times == 1 for times in held.values())


@given(SPANS)
def test_every_row_belongs_to_the_resource_of_its_spans(spans: list[ResourceSpan]) -> None:
    layout = lay_out([ResourceInfo(name="host", slots=2)], spans)
    owner = [track.resource.name for track in layout.tracks for _ in range(track.rows)]
    assert all(owner[item.row + item.span.slots - 1] == item.span.resource for item in layout.placed)


def test_spans_that_fit_use_no_more_rows_than_slots() -> None:
    layout = lay_out(
        [ResourceInfo(name="host", slots=2)],
        [span("host", 0, 2), span("host", 0, 1), span("host", 1, 3), span("host", 3, 4, slots=2)],
    )
    assert [track.rows for track in layout.tracks] == [2]


def test_the_busiest_of_very_many_resources_are_shown() -> None:
    spans = [span(f"device {number}", 0, number + 1) for number in range(100)]
    layout = lay_out([], spans)
    assert len(layout.tracks) == MOST_RESOURCES
    assert layout.left_out == 100 - MOST_RESOURCES
    assert "device 99" in [track.resource.name for track in layout.tracks]
