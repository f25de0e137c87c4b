"""A convolution as a kernel that Tuneloom tunes like any other: built on the host, run on the accelerator.

from tuneloom.kernel import Plan, tune
from tuneloom.model import Budget
from tuneloom_vta.kernel import kernel_of
from tuneloom_vta.schedules.workloads import RESNET18

print(tune(kernel_of(RESNET18[0]), Plan(budget=Budget(trials=100))).best)
"""

from dataclasses import dataclass

from tuneloom.model import Failure, FailureKind
from tuneloom.tuners.kernel.kernel import Built, Kernel, WrongResult, spare_process
from tuneloom.tuners.kernel.space import Configuration as KnobValues
from tuneloom_vta.configuration import DEFAULT, Configuration
from tuneloom_vta.device import NAME
from tuneloom_vta.errors import VtaError
from tuneloom_vta.measuring import build, profile
from tuneloom_vta.schedules.knobs import space_of
from tuneloom_vta.schedules.program import Program
from tuneloom_vta.schedules.workloads import Convolution

_ERRORS: dict[FailureKind, type[Exception]] = {
    FailureKind.WRONG_RESULT: WrongResult,
    FailureKind.RUN_TIMEOUT: TimeoutError,
    FailureKind.RUN_ERROR: RuntimeError,
}


@dataclass(frozen=True, slots=True)
class Accelerated:
    """Builds programs of one convolution and runs them on one accelerator; results are always checked."""

    workload: Convolution
    configuration: Configuration = DEFAULT

    def built(self, knobs: KnobValues) -> Built:
        """The program, with what it takes of the scratchpads; raises VtaError where there is none."""
        made = build(self.workload, knobs, self.configuration)
        if isinstance(made, Failure):
            raise VtaError(made.message)
        taken = {f"{memory}_elements": float(count) for memory, count in made.plan.items()}
        return Built(made, {**taken, "instructions": float(len(made.words))})

    def ran(self, program: Program) -> float:
        """Seconds on the accelerator; raises what the kind of failure is called elsewhere."""
        outcome = profile(self.workload, program, self.configuration)
        if isinstance(outcome, Failure):
            error = _ERRORS[outcome.kind](outcome.message)
            spare_process(error)
            raise error
        return outcome.best_s


def kernel_of(workload: Convolution, configuration: Configuration = DEFAULT, device: str = NAME) -> Kernel:
    """The convolution with the knobs of the published schedules; nothing says what fails.

    The device is the one that this package brings, once it is installed.
    """
    accelerated = Accelerated(workload, configuration)
    space = space_of(workload, configuration)
    name = f"{workload.name}-{configuration.name}"
    return Kernel(name, space, accelerated.built, accelerated.ran, device=device)
