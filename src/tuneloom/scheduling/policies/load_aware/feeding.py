"""Which host stage soonest feeds a device that is about to run dry."""

from heapq import heappop

from tuneloom.scheduling.policies.load_aware.lines import Heap, Line, LineEntry
from tuneloom.scheduling.policies.load_aware.paths import Way, device_ahead
from tuneloom.scheduling.policies.load_aware.predictions import Predictions
from tuneloom.scheduling.policies.load_aware.pressure import Pressure

FADING = 0.98
"""How fast the longest way to a device is forgotten, a stage."""

TRIES = 3
"""How many device keys are tried before a host stage is chosen by fair share alone."""


class Feeding:
    """Looks ahead from host stages to the devices they lead to."""

    def __init__(self, pressure: Pressure, predictions: Predictions) -> None:
        self._pressure = pressure
        self._predictions = predictions

    def look_ahead(self, entry: LineEntry) -> None:
        """Note which device a stage leads to, how soon, and how far it may go ahead for that.

        That is the longest way to a device that its job showed lately, and half a level of
        priority at most.
        """
        path, pool = entry.notes.path, entry.pool
        entry.feeds, lead_s, entry.guessed = self._way(entry)
        entry.lead_s = lead_s
        reach_s = path.reach_s if path.reach_s > lead_s else lead_s
        half_level_s = (pool.level_s if pool.level_s > pool.chain_s else pool.chain_s) / 2
        entry.patience_s = reach_s if reach_s < half_level_s else half_level_s
        faded_s = FADING * path.reach_s
        path.reach_s = lead_s if lead_s > faded_s else faded_s

    def soonest(self, lines: list[Line], first_rank: float) -> LineEntry | None:
        """The stage that soonest feeds the scarcest device key that is about to run dry."""
        if len(lines) == 1 and lines[0].size == 1:
            return None  # who comes first is the only one
        tries = TRIES
        for key in self._pressure.scarcest():
            best: LineEntry | None = None
            for line in lines:
                heap = line.feeders.get(key)
                first = self._first(line, heap) if heap else None
                if first is not None and (best is None or _sooner(first, best)):
                    best = first
            if best is None:
                continue
            if best.rank <= first_rank + best.patience_s and self._pressure.runs_dry(key, best.lead_s):
                return best
            tries -= 1
            if not tries:
                break
        return None

    def _first(self, line: Line, heap: Heap) -> LineEntry | None:
        """The soonest feeder of one line; a guess gets a second look, now that more has been seen."""
        while heap:
            entry = heap[0][3]
            if not entry.live:
                heappop(heap)
            elif not entry.guessed:
                return entry
            else:
                entry.guessed = False
                entry.predicted_s = self._predictions.of(entry.stage.request, entry.notes.durations)
                line.postpone(entry, max(entry.lead_s, self._way(entry)[1]))
        return None

    def _way(self, entry: LineEntry) -> Way:
        stage, notes = entry.stage, entry.notes
        return device_ahead(
            notes.path, stage.job, stage.request, self._predictions, notes.durations, entry.predicted_s
        )


def _sooner(one: LineEntry, other: LineEntry) -> bool:
    """Whether one feeds before another, as within a line: where both take equally long, by rank."""
    return (one.lead_s, one.rank, one.seq) < (other.lead_s, other.rank, other.seq)
