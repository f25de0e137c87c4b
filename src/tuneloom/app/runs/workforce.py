"""What carries out a run: an engine on this machine, or the machines of a farm."""

from collections.abc import Iterable, Mapping, Sequence
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
from tuneloom.app.farm.joining import JoinedFarm, Warmth, join
from tuneloom.app.farm.reading import FarmFile
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.runs.settings import RunSettings
from tuneloom.engine.api import Engine
from tuneloom.engine.local import LocalEngine, Watch
from tuneloom.engine.machine import Fleet
from tuneloom.model import JobSpec
from tuneloom.tuners import warming

_WARM_UP = "tuneloom.tuners.warming:warm_up"


def engine_for(specs: Sequence[JobSpec]) -> LocalEngine:
    """An engine on this machine that is warm for these jobs; others can be run on it, too."""
    return engine_for_kinds(kinds_of(specs), environment=environment_for(specs))


def environment_for(specs: Sequence[JobSpec]) -> dict[str, str]:
    """The variables that workers for these jobs find on this machine."""
    environment: dict[str, str] = {}
    for kind in kinds_of(specs):
        environment |= kind.environment([spec for spec in specs if spec.tuner == kind.name])
    return environment


def engine_for_kinds(
    kinds: Sequence[JobKind],
    watch: Watch | None = None,
    environment: Mapping[str, str] | None = None,
) -> LocalEngine:
    """An engine on this machine that is warm for jobs of these kinds."""
    warmth = warmth_for(kinds)
    return LocalEngine(warmth.warm_up, dict(warmth.environment) | dict(environment or {}), watch)


def warmth_for(kinds: Sequence[JobKind]) -> Warmth:
    """How workers for jobs of these kinds are prepared, on any machine."""
    names = list(dict.fromkeys(kind.warm_up for kind in kinds if kind.warm_up))
    told = {warming.WARM_UPS: ",".join(names), warming.TUNERS: ",".join(kind.name for kind in kinds)}
    return Warmth(warm_up=_WARM_UP, environment=told)


def kinds_of(specs: Iterable[JobSpec]) -> list[JobKind]:
    """The kinds of these jobs."""
    return [kind_named(name) for name in dict.fromkeys(spec.tuner for spec in specs)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workforce:
    """An engine and what it has from the start; whoever gets it closes the engine."""

    engine: Engine
    resources: Fleet
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
    joined = join(farm, warmth_for(kinds), device_cores=settings.device_cores, insecure=settings.insecure)
    return Workforce(engine=joined.engine, resources=joined.fleet, farm=joined)
