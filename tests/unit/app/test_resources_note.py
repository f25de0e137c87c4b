"""The note about resources: all that ever joined, and who is there now."""

from types import SimpleNamespace

import pytest

from tuneloom.app.devices.watching import _tell_moved
from tuneloom.app.runs.executing.bookkeeping import ResourceList, present_keys
from tuneloom.engine.machine import Offer
from tuneloom.model import Device, Host

HOST = Offer(resource=Host(name="one/host", slots=3, machine="one"))
GPU = Offer(resource=Device(name="one/cuda0", key="cuda", machine="one"), resident=True)


def test_a_resource_is_noted_with_its_machine_and_the_time_it_joined() -> None:
    listed = ResourceList()
    listed.joined(HOST, 0.0)
    listed.joined(GPU, 2.5)
    assert listed.note() == [
        {"name": "one/host", "slots": 3, "machine": "one", "joined_s": 0.0, "away": []},
        {
            "name": "one/cuda0",
            "slots": 1,
            "machine": "one",
            "joined_s": 2.5,
            "device_key": "cuda",
            "away": [],
        },
    ]


def test_a_resource_that_went_stays_in_the_note_and_its_key_is_not_offered() -> None:
    listed = ResourceList()
    listed.joined(GPU, 0.0)
    assert present_keys(listed.note()) == ["cuda"]
    listed.left("one/cuda0", "unplugged", 4.0)
    assert present_keys(listed.note()) == []
    listed.joined(GPU, 9.0)
    assert present_keys(listed.note()) == ["cuda"]
    (noted,) = listed.note()
    assert noted["away"] == [[4.0, 9.0]] and noted["why_away"] == "unplugged"


def test_a_resource_that_joins_twice_is_noted_once() -> None:
    listed = ResourceList()
    listed.joined(GPU, 0.0)
    listed.joined(GPU, 1.0)
    assert [entry["joined_s"] for entry in listed.note()] == [0.0]


def test_notes_of_earlier_versions_tell_their_keys_too() -> None:
    assert present_keys([{"name": "host", "slots": 2}, {"name": "cpu0", "device_key": "cpu"}]) == ["cpu"]
    assert present_keys(None) == []


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (["a (pid 1)"], "a (pid 1) measures on the last cores; this run measures on core 0"),
        (
            ["a (pid 1)", "b (pid 2)"],
            "a (pid 1), b (pid 2) measure on the last cores; this run measures on core 0",
        ),
    ],
)
def test_who_has_the_last_cores_is_named(
    others: list[str], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Holder(str):
        cores = frozenset({1})

    reservation = SimpleNamespace(cores=frozenset({0}), others=lambda: [Holder(name) for name in others])
    _tell_moved(reservation, {0, 1})  # type: ignore[arg-type]
    assert caplog.messages == [told]
