"""The stages as functions that workers call by name.

Searches live in the process that opened them; everything else depends on its
arguments alone.
"""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from tuneloom.errors import InputError
from tuneloom.model import (
    Artifact,
    Candidate,
    Failure,
    Measurement,
    MeasuringRules,
    Search,
    SearchOptions,
    Seed,
    SeededSearch,
    Task,
    Trial,
    Tuner,
)

_GROUP = "tuneloom.tuners"
_searches: dict[str, Search] = {}


@cache
def tuner_named(name: str) -> Tuner:
    """The tuner registered under this name, ours or anybody's."""
    found = {point.name: point for point in entry_points(group=_GROUP)}
    if name not in found:
        raise InputError(f"no tuner named {name!r}; known: {', '.join(sorted(found))}")
    tuner: Tuner = found[name].load()()
    return tuner


def open_and_select(
    key: str, tuner: str, task: Task, options: SearchOptions, known: Sequence[Trial], count: int
) -> list[Candidate]:
    """Begin (or begin again) the search of a task in this process and select its first candidates."""
    _searches[key] = tuner_named(tuner).open(task, options, known)
    return _searches[key].select(count)


def select(
    key: str, count: int, seeds: Sequence[Seed] = (), witnessed: Sequence[Trial] = ()
) -> list[Candidate] | None:
    """Select from a search that this process opened; None if it never did: another one kept it, and died.

    Before, it gets seeds, if it takes any, and learns from trials that others made of its task.
    """
    search = _searches.get(key)
    if search is None:
        return None
    if seeds and isinstance(search, SeededSearch):
        search.plant(seeds)
    if witnessed:
        search.update(witnessed)
    return search.select(count)


def update(key: str, trials: Sequence[Trial]) -> None:
    """Teach a search; one that this process never opened will learn it when it is opened."""
    if key in _searches:
        _searches[key].update(trials)


def forget(key: str) -> None:
    """End a search and free what it held."""
    _searches.pop(key, None)


def build(tuner: str, task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
    """Build one candidate."""
    return tuner_named(tuner).build(task, candidate, rules)


def profile(
    tuner: str, task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
) -> Measurement | Failure:
    """Time one artifact."""
    return tuner_named(tuner).profile(task, artifact, rules, best_s)
