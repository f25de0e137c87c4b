"""Recorded stage times: what a file means, and what is wrong with a bad one."""

import json
from pathlib import Path

import pytest

from tuneloom.errors import InputError
from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import DeviceDemand, SlotDemand
from tuneloom.simulation import TimedStep, Workload, load_recorded, simulate


def record(path: Path, *stages: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(stage) + "\n" for stage in stages))
    return path


def line(kind: str, seconds: float, **fields: object) -> dict[str, object]:
    return {"job": "net", "task": "conv", "kind": kind, "seconds": seconds, **fields}


def test_whole_stages_become_steps(tmp_path: Path) -> None:
    path = record(
        tmp_path / "r.jsonl", line("select", 2), line("build", 1), line("profile", 3), line("update", 1)
    )
    (job,) = load_recorded(path)
    assert [(step.kind, step.parts) for step in job.lane_steps[0]] == [
        ("select", (2,)),
        ("build", (1,)),
        ("profile", (3,)),
        ("update", (1,)),
    ]
    assert job.ticket.device_keys == {"device"}


def test_streamed_candidates_are_put_together(tmp_path: Path) -> None:
    mixed = [line("build", 1), line("build", 2), line("profile", 3), line("build", 1), line("profile", 4)]
    path = record(tmp_path / "r.jsonl", line("select", 1), *mixed, line("profile", 5), line("update", 1))
    (job,) = load_recorded(path)
    assert job.lane_steps[0][1] == TimedStep(kind="build", needs=SlotDemand(), parts=(1, 2, 1), streamed=True)
    assert job.lane_steps[0][2].parts == (3, 4, 5)


def test_tasks_are_lanes_and_keys_and_slots_are_kept(tmp_path: Path) -> None:
    path = record(
        tmp_path / "r.jsonl",
        line("select", 1, slots=2),
        line("profile", 1, device_key="h200"),
        line("select", 1, task="dense"),
    )
    (job,) = load_recorded(path)
    assert len(job.lanes()) == 2
    assert job.lane_steps[0][0].needs == SlotDemand(slots=2)
    assert job.lane_steps[0][1].needs == DeviceDemand(key="h200")


def test_recording_can_be_played(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", line("select", 2), line("build", 1), line("profile", 3))
    floor: list[Host | Device] = [Host(name="h", slots=1), Device(name="d", key="device")]
    result = simulate(Workload(jobs=load_recorded(path)), floor, "load-aware", check=True)
    assert result.completed_s == {"net": 6.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no stages"),
        ("{", "line 1: not JSON"),
        ("[]", "line 1: expected an object"),
        ('{"job": "a", "kind": "build", "seconds": 1, "colour": 2}', "unknown key 'colour'"),
        ('{"job": "a", "kind": 3, "seconds": 1}', "'kind' must be text"),
        ('\n{"job": "a", "kind": "build", "seconds": -1}', "line 2: 'seconds' must be a number"),
        ('{"job": "a", "kind": "build", "seconds": NaN}', "'seconds' must be a number"),
        ('{"job": "a", "kind": "build", "seconds": 1, "slots": 0}', "'slots' must be a whole number"),
    ],
)
def test_bad_recordings_name_file_line_and_reason(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        load_recorded(path)
    assert "bad.jsonl" in str(caught.value)


def test_missing_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't read the recording"):
        load_recorded(tmp_path / "none.jsonl")
