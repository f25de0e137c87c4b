"""The scheduling core under a virtual clock, on recorded or invented stage times."""

from tuneloom.simulation.bounds import LowerBound, lower_bound
from tuneloom.simulation.jobs import (
    THESIS_STAGES,
    ChainJob,
    RoundsJob,
    SimulatedJob,
    Workload,
    poisson_arrivals,
)
from tuneloom.simulation.ledger import HeldSpan, ResourceUse, SimulationResult
from tuneloom.simulation.recorded import RecordedJob, load_recorded
from tuneloom.simulation.simulator import simulate
from tuneloom.simulation.steps import TimedStep

__all__ = [
    "THESIS_STAGES",
    "ChainJob",
    "HeldSpan",
    "LowerBound",
    "RecordedJob",
    "ResourceUse",
    "RoundsJob",
    "SimulatedJob",
    "SimulationResult",
    "TimedStep",
    "Workload",
    "load_recorded",
    "lower_bound",
    "poisson_arrivals",
    "simulate",
]
