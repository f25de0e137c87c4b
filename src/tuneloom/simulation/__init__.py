"""The scheduling core under a virtual clock, on recorded or invented stage times."""

from tuneloom.simulation.bounds import LowerBound, lower_bound
from tuneloom.simulation.jobs import THESIS_STAGES, MockJob, RoundsJob, SimulatedJob
from tuneloom.simulation.recorded import RecordedJob, load_recorded
from tuneloom.simulation.results import ResourceUse, SimulationResult, Span
from tuneloom.simulation.simulator import simulate
from tuneloom.simulation.steps import Step
from tuneloom.simulation.workload import Workload, arriving, poisson_arrivals

__all__ = [
    "THESIS_STAGES",
    "LowerBound",
    "MockJob",
    "RecordedJob",
    "ResourceUse",
    "RoundsJob",
    "SimulatedJob",
    "SimulationResult",
    "Span",
    "Step",
    "Workload",
    "arriving",
    "load_recorded",
    "lower_bound",
    "poisson_arrivals",
    "simulate",
]
