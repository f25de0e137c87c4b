"""Several machines on one: a local engine for each, that can be cut off and come back."""

import time
from collections.abc import Mapping, Sequence

from tuneloom.engine.api import EngineReport, MachineLost, ResourceJoined
from tuneloom.engine.calls import Call, CallEnded, Lost
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.model import Device, Host

_GLANCE_S = 0.002


def small_machine(name: str, *, slots: int = 1, key: str = "cpu") -> Fleet:
    """A machine with a host and one device, on whatever cores there are."""
    host = Host(name=f"{name}/host", slots=slots, machine=name)
    device = Device(name=f"{name}/{key}0", key=key, machine=name)
    return Fleet(offers=(Offer(resource=host), Offer(resource=device)))


class SeveralMachines:
    """Fulfils the protocol `Engine` as a farm does: an engine for each machine, calls go by their place.

    All machines join with the first poll. `lose` ends everything on a machine as if it were
    unplugged, `join` brings it back with nothing in its memory.
    """

    def __init__(self, machines: Sequence[Fleet], warm_up: str | None = None) -> None:
        self._warm_up = warm_up
        self._environment: Mapping[str, str] = {}
        self._machines = {machine.offers[0].resource.machine: machine for machine in machines}
        self._engines: dict[str, LocalEngine] = {}
        self._at: dict[str, str] = {}
        self._reports: list[EngineReport] = []
        for name in self._machines:
            self.join(name)

    def join(self, name: str) -> None:
        """A machine is there, or there again."""
        self._engines[name] = LocalEngine(self._warm_up, self._environment)
        self._reports += [ResourceJoined(offer=offer) for offer in self._offers(name)]

    def lose(self, name: str, reason: str = "unplugged") -> None:
        """A machine is gone with all that ran there."""
        self._engines.pop(name).close()
        self._at = {call: at for call, at in self._at.items() if at != name}
        self._reports.append(MachineLost(name=name, reason=reason))

    def now_s(self) -> float:
        return time.monotonic()

    def prepare(self) -> None:
        for engine in self._engines.values():
            engine.prepare()

    def start(self, call_id: str, call: Call) -> None:
        assert call.place is not None, "a call on one of several machines needs a place"
        engine = self._engines.get(call.place.machine)
        if engine is None:
            now_s = self.now_s()
            lost = Lost(reason=f"machine {call.place.machine!r} is not there")
            self._reports.append(CallEnded(id=call_id, result=lost, started_s=now_s, ended_s=now_s))
            return
        self._at[call_id] = call.place.machine
        engine.start(call_id, call)

    def stop(self, call_id: str) -> None:
        machine = self._at.pop(call_id, None)
        if machine is not None:
            self._engines[machine].stop(call_id)
        else:
            self._reports = [r for r in self._reports if not (isinstance(r, CallEnded) and r.id == call_id)]

    def release(self, worker: str) -> None:
        for engine in self._engines.values():
            engine.release(worker)

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        until_s = None if timeout_s is None else self.now_s() + timeout_s
        while True:
            self._hear()
            if self._reports or (until_s is not None and self.now_s() >= until_s):
                reports, self._reports = self._reports, []
                return reports

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()

    def _hear(self) -> None:
        for engine in self._engines.values():
            for report in engine.poll(_GLANCE_S):
                if isinstance(report, CallEnded):
                    self._at.pop(report.id, None)
                self._reports.append(report)

    def _offers(self, name: str) -> tuple[Offer, ...]:
        return self._machines[name].offers
