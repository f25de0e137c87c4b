"""What carries out a run: this machine, or the machines of a farm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneloom.app.devices.describing import MachineOrder, require_cores
from tuneloom.app.devices.watching import occupied
from tuneloom.app.farm.aiming import (
    Aiming,
    aimed_at,
    for_board,
    require_own_machine,
    require_usable_device,
    settled,
    with_listed_target,
)
from tuneloom.app.farm.entries import FarmFile
from tuneloom.app.farm.joining import FarmSettings, JoinedFarm, join
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.runs.engines import engine_for_kinds, environment_for, kinds_of, warmth_for
from tuneloom.app.runs.settings import RunSettings
from tuneloom.engine.api import Engine
from tuneloom.engine.machine import Resources
from tuneloom.model import JobSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Workforce:
    """An engine and what it has from the start; whoever gets it closes the engine."""

    engine: Engine
    resources: Resources
    farm: JoinedFarm | None = None

    def aimed(self, spec: JobSpec) -> JobSpec:
        """The job compiled for what its device is, while nothing else uses the engine; see `aiming`."""
        return settled(self.aiming(spec), self.engine)

    def aiming(self, spec: JobSpec) -> Aiming:
        """The job compiled for what its device is; raises FarmError or TargetError if it has none."""
        if self.farm is None:
            require_own_machine(spec)
            return spec
        require_usable_device(spec, self.farm)
        listed = with_listed_target(for_board(spec, self.farm.file), self.farm.file)
        return (yield from aimed_at(listed, self.farm))


def workforce_for(specs: Sequence[JobSpec], settings: RunSettings) -> Workforce:
    """A workforce that is warm for these jobs; others can be carried out by it, too."""
    return workforce_for_kinds(kinds_of(specs), settings, environment_for(specs))


def workforce_for_kinds(
    kinds: Sequence[JobKind], settings: RunSettings, environment: Mapping[str, str] | None = None
) -> Workforce:
    """A workforce that is warm for jobs of these kinds; workers of this machine find `environment`."""
    farm = settings.read_farm()
    if farm is not None:
        return _on(farm, kinds, settings)
    require_cores(settings.device_cores)
    found, watch = occupied(MachineOrder(device_cores=settings.device_cores))
    engine = engine_for_kinds(kinds, watch, environment)
    return Workforce(engine=engine, resources=found.fleet)


def _on(farm: FarmFile, kinds: Sequence[JobKind], settings: RunSettings) -> Workforce:
    use = FarmSettings(device_cores=settings.device_cores, insecure=settings.insecure)
    joined = join(farm, warmth_for(kinds), use)
    return Workforce(engine=joined.engine, resources=joined.fleet, farm=joined)
