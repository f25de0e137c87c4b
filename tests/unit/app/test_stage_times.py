"""What stages of a run took, and whether they needed a host or a device."""

from contextlib import closing
from pathlib import Path

import pytest

from tuneloom.app.reports.stage_times import stage_times
from tuneloom.store import Page, SpanRecord, open_store

RESOURCES = [{"name": "host", "slots": 1}, {"name": "cpu0", "slots": 1, "device_key": "cpu"}]


@pytest.mark.parametrize(
    ("kind", "task", "needs"),
    [
        ("profile", "conv", {"device_key": "cpu"}),
        ("canary", "conv", {"device_key": "cpu"}),
        ("build", "conv", {"slots": 1}),
        ("update", "conv", {"slots": 1}),
        ("finalise", "f3/contest", {"device_key": "cpu"}),
        ("finalise", "finish/check", {"device_key": "cpu"}),
        ("finalise", "finish/compile", {"slots": 1}),
        ("finalise", "plain", {"slots": 1}),
    ],
)
def test_a_stage_on_lent_cores_needs_a_host_all_the_same(
    tmp_path: Path, kind: str, task: str, needs: dict[str, object]
) -> None:
    place = str(tmp_path / "store.db")
    with closing(open_store(place)) as store:
        run = store.create_run("tune").id
        store.set_note(run, "resources", RESOURCES)
        span = SpanRecord(
            job="j", task=task, kind=kind, resource="cpu0", slots=1, ready_s=0, start_s=1, end_s=3
        )
        store.write_pages([Page(run=run, spans=(span,))])
    (line,) = stage_times("last", place)
    assert line["seconds"] == 2 and {name: line[name] for name in needs} == needs
    assert ("slots" in line) != ("device_key" in line)
