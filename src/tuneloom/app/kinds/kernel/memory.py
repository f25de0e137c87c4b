"""What the store knows of a kernel job besides its trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneloom.app.kinds.kernel.presampling import Sample
from tuneloom.store import Store
from tuneloom.tuners.kernel import PRESAMPLED


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """One job's part of the store; survives a kill like the trials do."""

    store: Store
    job: str

    def features(self) -> Sequence[tuple[Mapping[str, float], float | None]]:
        """What the compiler revealed about each finished trial, with its time."""
        return [(record.features, record.seconds) for record in self.store.trials(self.job)]

    def presampled(self) -> Sequence[Sample] | None:
        """What building alone showed; None before it was tried."""
        plans = [planned.plan for planned in self.store.tasks(self.job) if PRESAMPLED in planned.plan]
        return [(str(text), bool(builds)) for text, builds in plans[0][PRESAMPLED]] if plans else None

    def keep_presampled(self, task: str, samples: Sequence[Sample], took_s: float) -> None:
        """Keep what building alone showed."""
        plan = {PRESAMPLED: [list(sample) for sample in samples], "seconds": took_s}
        self.store.set_plan(self.job, task, plan)
