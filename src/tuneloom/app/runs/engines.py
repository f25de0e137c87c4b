"""The engine for a run: its workers find imported what the jobs need, and no more."""

from collections.abc import Iterable, Mapping, Sequence

from tuneloom.app.farm.joining import Warmth
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.finding import kind_named
from tuneloom.engine.local import LocalEngine, Watch
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
