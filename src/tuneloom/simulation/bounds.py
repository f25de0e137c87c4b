"""What no schedule can beat: the makespan's lower bound."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import DeviceDemand, SlotDemand
from tuneloom.simulation.jobs import SimulatedJob
from tuneloom.simulation.steps import Step, feeds_by_part


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """The bound in seconds, the name of what sets it, and every candidate for it."""

    seconds: float
    limit: str
    candidates: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Capacity:
    slots: int
    devices: dict[str, int]
    lending: int
    lending_keys: frozenset[str]

    @classmethod
    def of(cls, resources: Iterable[Host | Device]) -> "_Capacity":
        resources = list(resources)
        devices = [resource for resource in resources if isinstance(resource, Device)]
        keys = sorted({device.key for device in devices})
        lending_keys = frozenset(device.key for device in devices if device.lends_to is not None)
        return cls(
            slots=sum(resource.slots for resource in resources if isinstance(resource, Host)),
            devices={key: sum(device.key == key for device in devices) for key in keys},
            lending=sum(device.key in lending_keys for device in devices),
            lending_keys=lending_keys,
        )


def lower_bound(jobs: Sequence[SimulatedJob], resources: Iterable[Host | Device]) -> LowerBound:
    """The largest of what each resource must do and what each job's own chain takes.

    A resource can't end before the work of the jobs that arrive from some moment on is
    done after that moment; this holds for the hosts' slots together and for every
    device key. No job can end before its arrival plus its longest chain. Where devices
    lend themselves to hosts, work that may move counts for both together.
    """
    capacity = _Capacity.of(resources)
    candidates = {f"devices {key}": _drain(jobs, count, (key,)) for key, count in capacity.devices.items()}
    if capacity.slots:
        candidates["hosts"] = _drain(jobs, capacity.slots, (), fixed=True, movable=not capacity.lending)
    if capacity.lending:
        both = capacity.slots + capacity.lending
        candidates["hosts and lending devices"] = _drain(
            jobs, both, tuple(capacity.lending_keys), fixed=True, movable=True
        )
    candidates["longest job"] = max((job.arrives_s + _chain(job, capacity) for job in jobs), default=0.0)
    limit = max(candidates, key=lambda name: candidates[name])
    return LowerBound(seconds=candidates[limit], limit=limit, candidates=candidates)


def _drain(
    jobs: Sequence[SimulatedJob],
    capacity: int,
    keys: tuple[str, ...],
    *,
    fixed: bool = False,
    movable: bool = False,
) -> float:
    """The latest "arrival plus work that arrives from then on, shared by all"."""
    total_s = bound_s = 0.0
    for job in sorted(jobs, key=lambda job: -job.arrives_s):
        work_s = sum(_work(step, keys, fixed, movable) for lane in job.lanes() for step in lane)
        total_s += work_s
        if work_s:
            bound_s = max(bound_s, job.arrives_s + total_s / capacity)
    return bound_s


def _work(step: Step, keys: tuple[str, ...], fixed: bool, movable: bool) -> float:
    if isinstance(step.needs, DeviceDemand):
        return step.seconds if step.needs.key in keys else 0.0
    wanted = movable if step.needs.lendable else fixed
    return step.seconds * step.needs.slots if wanted else 0.0


def _chain(job: SimulatedJob, capacity: _Capacity) -> float:
    return max((_lane_chain(lane, capacity) for lane in job.lanes()), default=0.0)


def _lane_chain(lane: Sequence[Step], capacity: _Capacity) -> float:
    total_s, index = 0.0, 0
    while index < len(lane):
        here = lane[index]
        if feeds_by_part(lane, index):
            total_s += _streamed_span(here, lane[index + 1], capacity)
            index += 2
        else:
            total_s += _span(here, capacity)
            index += 1
    return total_s


def _span(step: Step, capacity: _Capacity) -> float:
    """The least time of a stage if it had all resources for itself."""
    if isinstance(step.needs, SlotDemand):
        lent = capacity.lending if step.needs.lendable else 0
        width = (capacity.slots + lent) / step.needs.slots
    else:
        width = capacity.devices.get(step.needs.key, 1)
    return max(max(step.parts), step.seconds / max(width, 1))


def _streamed_span(first: Step, second: Step, capacity: _Capacity) -> float:
    pairs = max(a + b for a, b in zip(first.parts, second.parts, strict=True))
    return max(pairs, min(first.parts) + _span(second, capacity), _span(first, capacity) + min(second.parts))
