"""What happens in a simulation, and when: jobs, arrivals, trouble."""

import random
from dataclasses import dataclass, replace

from tuneloom.errors import InputError
from tuneloom.scheduling.messages import Event
from tuneloom.simulation.jobs import RoundsJob, SimulatedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Jobs with their arrival times, and what goes wrong.

    `disturbances` are events given to the core at their time (resources that go and
    come, jobs cancelled or paused); each started stage is lost halfway with
    `loss_probability`, by a chance that `seed` fixes.
    """

    jobs: tuple[SimulatedJob, ...]
    disturbances: tuple[Event, ...] = ()
    loss_probability: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        names = [job.ticket.id for job in self.jobs]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two jobs are named {twice!r}; give each its own name")
        if not 0 <= self.loss_probability < 1:
            raise InputError(f"a probability of loss lies in [0, 1), got {self.loss_probability}")


def poisson_arrivals(count: int, per_hour: float, seed: int) -> tuple[float, ...]:
    """Arrival times in seconds of a Poisson process; the first job is there at 0."""
    if not per_hour > 0:
        raise InputError(f"an arrival rate must be positive, got {per_hour} jobs an hour")
    chance, at_s, times = random.Random(seed), 0.0, []
    for _ in range(count):
        times.append(at_s)
        at_s += chance.expovariate(per_hour / 3600.0)
    return tuple(times)


def arriving(jobs: tuple[RoundsJob, ...], times: tuple[float, ...]) -> tuple[RoundsJob, ...]:
    """The same jobs, each with its arrival time."""
    return tuple(replace(job, arrives_s=at_s) for job, at_s in zip(jobs, times, strict=True))
