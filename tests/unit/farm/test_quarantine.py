"""A device whose canary fails again and again is put aside, with its reason, and tried again later."""

from collections.abc import Sequence

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.inventory import FIRST_PAUSE_S, STRIKES, Quarantine
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import Step
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Returned
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.model import Device
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.stages import DeviceDemand, JobTicket, StageRequest
from tuneloom.testing.engines.scripted import ScriptedEngine

OFFER = Offer(resource=Device(name="d", key="k", machine="m"))


def struck(quarantine: Quarantine, times: int) -> str:
    return [quarantine.note("d", "it crashed") for _ in range(times)][-1]


def test_a_device_is_put_aside_after_several_failures_in_a_row() -> None:
    quarantine = Quarantine()
    assert struck(quarantine, STRIKES - 1) == ""
    assert quarantine.note("d", "") == ""
    assert struck(quarantine, STRIKES - 1) == ""
    assert quarantine.note("d", "it crashed") == "its canary failed 3 times in a row: it crashed"


def test_it_is_tried_again_after_a_pause_that_doubles() -> None:
    quarantine = Quarantine()
    struck(quarantine, STRIKES)
    quarantine.put_aside(OFFER, 0.0)
    assert quarantine.over(FIRST_PAUSE_S - 1) == []
    assert quarantine.over(FIRST_PAUSE_S) == [OFFER]
    assert quarantine.note("d", "it crashed"), "one more failure is enough when it is back"
    quarantine.put_aside(OFFER, 100.0)
    assert quarantine.over(100.0 + FIRST_PAUSE_S) == []
    assert quarantine.over(100.0 + 2 * FIRST_PAUSE_S) == [OFFER]


def test_a_device_that_left_by_itself_is_not_brought_back() -> None:
    quarantine = Quarantine()
    quarantine.put_aside(OFFER, 0.0)
    quarantine.left("d")
    quarantine.put_aside(OFFER, 0.0)
    quarantine.machine_left("m")
    assert quarantine.over(1e9) == []


class Canaries:
    """A job that times a canary five times, one after the other."""

    def __init__(self) -> None:
        self.ticket = JobTicket(id="j", device_keys=frozenset({"k"}))
        self.left = 5

    @property
    def done(self) -> bool:
        return not self.left

    def begin(self, at_s: float) -> Sequence[Step]:
        number, demand = self.left, DeviceDemand(key="k")
        request = StageRequest(id=f"{number}", job="j", lane="l", step=number, kind="canary", needs=demand)
        return [
            Step(request=request, call=lambda: Call(function="f"), ended=self._ended, judges=self._judged)
        ]

    def stopping(self) -> None:
        """It ends by itself."""

    def worker_lost(self, worker: str) -> None:
        """It keeps nothing."""

    def _ended(self, _result: CallResult, at_s: float) -> Sequence[Step]:
        self.left -= 1
        return self.begin(at_s) if self.left else []

    def _judged(self, result: CallResult) -> str:
        return "" if isinstance(result, Returned) else str(result)


class Notes(Listener):
    def __init__(self) -> None:
        self.left: list[tuple[str, str, float]] = []
        self.joined: list[float] = []

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        self.left.append((name, reason, at_s))

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        self.joined.append(at_s)


def test_a_job_goes_on_when_its_device_comes_out_of_quarantine() -> None:
    died = Died(cause=KilledBy(11))
    answers = iter([died, died, died, Returned(value=1), Returned(value=1)])
    notes = Notes()
    conductor = Conductor(
        Core(policy_named("load-aware")), ScriptedEngine(lambda _call: next(answers)), notes
    )
    conductor.add_machine(Fleet(offers=(OFFER,)))
    conductor.submit(Canaries())
    conductor.run()
    assert notes.left == [("d", "its canary failed 3 times in a row: killed by SIGSEGV", 3.0)]
    first, again = notes.joined
    assert first == 0.0 and 3.0 + FIRST_PAUSE_S <= again < 4.0 + FIRST_PAUSE_S
