"""Building and running one configuration; what fails is a value with its kind."""

from collections.abc import Mapping

import numpy as np

from tuneloom.model import Failure, FailureKind, Measurement
from tuneloom.tuners.kernel.space import KnobValue
from tuneloom_vta.configuration import DEFAULT, Configuration
from tuneloom_vta.errors import VtaError
from tuneloom_vta.schedules import patterns
from tuneloom_vta.schedules.data import data_of
from tuneloom_vta.schedules.knobs import Knobs
from tuneloom_vta.schedules.program import Program, program_of
from tuneloom_vta.schedules.tiling import Tiling
from tuneloom_vta.schedules.workloads import Convolution
from tuneloom_vta.simulator.device import Bytes, Fault, Outcome, run

_PLANNED = ("inp", "wgt", "acc")  # the micro-op memory is the device's affair


def build(
    workload: Convolution, knobs: Mapping[str, KnobValue], configuration: Configuration = DEFAULT
) -> Program | Failure:
    """Generate the program, and place its tiles in the scratchpads."""
    try:
        tiling = Tiling(workload, Knobs.of(knobs), configuration)
        if reason := refused(tiling):
            raise VtaError(reason)
        return program_of(tiling)
    except VtaError as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=str(error))


def refused(tiling: Tiling) -> str:
    """Why no program exists, as far as sizes alone tell; empty if there may be one."""
    depths, plan = tiling.configuration.depths, tiling.plan
    for memory in _PLANNED:
        if plan[memory] > depths[memory]:
            return f"{plan[memory]} elements do not fit into the {depths[memory]} of {memory}"
    return patterns.refused(tiling)


def profile(
    workload: Convolution, program: Program, configuration: Configuration = DEFAULT
) -> Measurement | Failure:
    """Run the program and compare its results with the convolution's.

    Counted are cycles, and which share of them each module was busy.
    """
    outcome, memory = executed(workload, program, configuration)
    if outcome.fault is not Fault.NONE:
        return _failed(outcome)
    begin = program.addresses["out"]
    wanted = data_of(workload, configuration).results
    if memory[begin : begin + len(wanted)].tobytes() != wanted:
        return Failure(kind=FailureKind.WRONG_RESULT, message=_why_wrong(outcome))
    seconds = configuration.seconds(outcome.cycles)
    busy = {f"{module} busy": spent / outcome.cycles for module, spent in outcome.busy.items()}
    return Measurement(seconds=(seconds,), counters={"cycles": float(outcome.cycles), **busy})


def executed(
    workload: Convolution, program: Program, configuration: Configuration = DEFAULT, with_data: bool = True
) -> tuple[Outcome, Bytes]:
    """Run a program on the convolution's data; the outcome, and memory as it was left."""
    memory = np.zeros(program.memory_bytes, dtype=np.uint8)
    data = data_of(workload, configuration)
    parts = {"uop": program.uops.tobytes(), "inp": data.inputs, "wgt": data.weights, "acc": data.bias}
    for name, content in parts.items():
        begin = program.addresses[name]
        memory[begin : begin + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return run(configuration, program.words, memory, with_data), memory


def _failed(outcome: Outcome) -> Failure:
    hangs = outcome.fault in (Fault.DEADLOCK, Fault.WATCHDOG)
    kind = FailureKind.RUN_TIMEOUT if hangs else FailureKind.RUN_ERROR
    told = outcome.fault.name.lower().replace("_", " ")
    return Failure(kind=kind, message=f"{told} at instruction {outcome.instruction}")


def _why_wrong(outcome: Outcome) -> str:
    if outcome.stale_sums:
        return f"{outcome.stale_sums} products read a sum that was not written yet"
    return "the results differ from the convolution's"
