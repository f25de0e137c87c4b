"""An error in one job's own code ends that job; the others never notice."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from support.jobs.mock import MockJob, MockStage
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import Step
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.errors import StoreError
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named
from tuneloom.testing.engines.scripted import ScriptedEngine

STAGES = [MockStage(kind=kind, call=Call(function=f"m:{kind}")) for kind in ("first", "second", "third")]


class Heard(Listener):
    def __init__(self) -> None:
        self.ended: list[tuple[str, bool]] = []
        self.failed: dict[str, Exception] = {}

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        self.ended.append((job, cancelled))

    def job_failed(self, job: str, error: Exception) -> None:
        self.failed[job] = error


class BadJob(MockJob):
    """Raises where its name says."""

    def begin(self, at_s: float) -> Sequence[Step]:
        if self.name == "begin":
            raise KeyError("no such model")
        return [self._spoiled(step) for step in super().begin(at_s)]

    def _spoiled(self, step: Step) -> Step:
        def call() -> Call:
            if self.name == "call":
                raise ValueError("no call today")
            return step.call()

        def ended(result: CallResult, at_s: float) -> Sequence[Step] | None:
            following = step.ended(result, at_s)
            if self.name == "ended":
                raise ZeroDivisionError("a bug")
            if self.name == "twice" and following:
                return [*following, *following]
            if self.name == "store":
                raise StoreError("the disk is full")
            return following

        return replace(step, call=call, ended=ended)


def conduct(heard: Heard, *jobs: MockJob) -> Conductor:
    engine = ScriptedEngine(lambda _call: Returned(value=None))
    conductor = Conductor(Core(policy_named("load-aware")), engine, heard)
    conductor.add_machine(
        Fleet(
            offers=(
                Offer(resource=Host(name="host", slots=2)),
                Offer(resource=Device(name="cpu0", key="cpu")),
            )
        )
    )
    for job in jobs:
        conductor.submit(job)
    conductor.run()
    conductor.core.check()
    return conductor


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("begin", "no such model"),
        ("call", "no call today"),
        ("ended", "a bug"),
        ("twice", "its own id"),
        ("store", "the disk is full"),
    ],
)
def test_an_error_in_the_code_of_a_job_or_in_keeping_what_it_found_ends_it_alone(
    where: str, words: str
) -> None:
    heard, good = Heard(), MockJob("good", STAGES)
    conductor = conduct(heard, BadJob(where, STAGES), good)
    assert heard.ended == [("good", False)] and len(good.results) == 3
    assert list(heard.failed) == [where] and words in str(heard.failed[where])
    assert conductor.idle and not conductor.core.jobs
