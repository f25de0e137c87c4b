"""What no schedule can beat: the makespan's lower bound."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.simulation.chain_times import Capacity, ChainTimes
from tuneloom.simulation.jobs import SimulatedJob
from tuneloom.simulation.pool_bounds import LaneDemand, busy_bound, gap_bound
from tuneloom.simulation.steps import TimedStep

Counts = Callable[[TimedStep], bool]
HOSTS = "hosts"
BOTH = "hosts and lending devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """The bound in seconds, the name of what sets it, and every candidate for it.

    `plain_s` is the simple one: the work of the busiest resource, or the longest chain.
    """

    seconds: float
    plain_s: float
    limit: str
    candidates: dict[str, float]


def lower_bound(jobs: Sequence[SimulatedJob], resources: Iterable[Host | Device]) -> LowerBound:
    """The largest of what each resource must do and what each job's own chain takes.

    No job can end before its arrival plus its longest chain. A resource can't end before
    the work of the jobs that arrive from some moment on is done after that moment, nor
    begin before somebody's chain has come to it; this holds for the hosts' slots together
    and for every device key (see `busy_bound`, and `gap_bound` for keys with one device).
    Where devices lend themselves to hosts, work that may move counts for both together.
    """
    capacity = Capacity.of(resources)
    lanes = [
        (job.arrives_s, ChainTimes.of(lane, capacity)) for job in jobs for lane in job.lanes() if len(lane)
    ]
    longest_s = max((arrives_s + times.seconds for arrives_s, times in lanes), default=0.0)
    candidates, plain_s = {"longest job": longest_s}, longest_s
    for pool in _pools(capacity):
        demands = [
            LaneDemand.of(arrives_s, times, pool.counts, capacity)
            for arrives_s, times in lanes
            if any(pool.counts(placed.step) for placed in times.placed)
        ]
        drained_s = _drain(demands, pool.width)
        plain_s = max(plain_s, drained_s)
        candidates[pool.name] = max(drained_s, busy_bound(demands, pool.width))
        if pool.width == 1 and pool.name not in (HOSTS, BOTH):
            candidates[f"gaps of {pool.name}"] = gap_bound(demands)
    limit = max(candidates, key=lambda name: candidates[name])
    if candidates[limit] <= longest_s * (1 + 1e-9):
        limit = "longest job"
    return LowerBound(seconds=candidates[limit], plain_s=plain_s, limit=limit, candidates=candidates)


class WorkPool(NamedTuple):
    """Equal resources that serve the same steps."""

    name: str
    width: int
    counts: Counts


def _pools(capacity: Capacity) -> Iterator[WorkPool]:
    for key, count in capacity.devices.items():
        yield WorkPool(f"devices {key}", count, _on_devices({key}))
    if capacity.slots:
        yield WorkPool(HOSTS, capacity.slots, _on_hosts_only if capacity.lending else _on_hosts)
    if capacity.lending:
        lent = _on_devices(capacity.lending_keys)
        both = capacity.slots + capacity.lending
        yield WorkPool(BOTH, both, lambda step: lent(step) or _on_hosts(step))


def _on_devices(keys: Iterable[str]) -> Counts:
    wanted = frozenset(keys)
    return lambda step: isinstance(step.needs, DeviceDemand) and step.needs.key in wanted


def _on_hosts(step: TimedStep) -> bool:
    return not isinstance(step.needs, DeviceDemand)


def _on_hosts_only(step: TimedStep) -> bool:
    return not isinstance(step.needs, DeviceDemand) and not step.needs.lendable


def _drain(lanes: Sequence[LaneDemand], width: int) -> float:
    """The latest "arrival plus work that arrives from then on, shared by all"."""
    total_s = bound_s = 0.0
    for lane in sorted(lanes, key=lambda lane: -lane.arrives_s):
        total_s += lane.work_s
        if lane.work_s:
            bound_s = max(bound_s, lane.arrives_s + total_s / width)
    return bound_s
