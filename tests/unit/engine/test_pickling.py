"""Values that travel with every trial arrive as they were."""

import pickle
from typing import Any

import pytest

from tuneloom.engine.calls import Call, CallEnded, Place, Returned
from tuneloom.engine.ray.messages import Start
from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Measurement, Task

CALL = Call(
    function="m:f",
    arguments=(Task(key="k", name="conv", payload=b"code"), Candidate(key="c", configuration="trace")),
    cores=frozenset({1}),
    alone=True,
    place=Place(resource="m/gpu0", machine="m"),
    environment={"CUDA_VISIBLE_DEVICES": "1"},
)
VALUES = [
    Start(id="7", call=CALL),
    CallEnded(id="7", result=Returned(value=Measurement(seconds=(1e-3, 2e-3))), started_s=1.0, ended_s=2.0),
    CallEnded(
        id="8", result=Returned(value=Artifact(payload=b"elf", build_s=0.5)), started_s=1.0, ended_s=2.0
    ),
    Failure(kind=FailureKind.RUN_ERROR, message="it crashed"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_is_packed_is_unpacked_with_all_its_fields(value: Any) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value and repr(again) == repr(value)


def test_fields_that_do_not_count_for_equality_arrive_too() -> None:
    assert pickle.loads(pickle.dumps(CALL)).arguments[0].payload == b"code"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_dataclasses_are_not_asked_for_the_fields_of_each_object(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_: Any) -> Any:
        raise AssertionError("that takes most of the time")

    monkeypatch.setattr("dataclasses.fields", asked)
    pickle.loads(pickle.dumps(value))
