"""Waiting lines that give their best entry in logarithmic time, ordered in two ways."""

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from tuneloom.scheduling.policies.load_aware.fairness import Account, Pool
from tuneloom.scheduling.policies.load_aware.paths import Path
from tuneloom.scheduling.policies.load_aware.predictions import OwnDurations
from tuneloom.scheduling.policies.load_aware.pressure import Appetite
from tuneloom.scheduling.records import Stage


@dataclass(slots=True)
class JobNotes:
    """A job's fair share so far, where its stages lead, how it spends its time, and what they took."""

    account: Account
    path: Path = field(default_factory=Path)
    appetite: Appetite = field(default_factory=Appetite)
    durations: OwnDurations = field(default_factory=OwnDurations)


class LineEntry:
    """A waiting or running stage with what the policy thinks of it; lower `rank` goes first.

    `feeds` is the device key its lane comes to next, `lead_s` the predicted work until
    then, this stage included; `guessed` if that rests on nothing seen. `patience_s` is
    how far it may go ahead of its fair share. `seq` differs for all entries, also for
    those of one stage that comes back. `average_s` is what a running one was predicted to
    take on a host of average speed. `reserved` names the host kept free for a wide stage. `lendable`
    ones may run on an idle device.
    """

    __slots__ = (
        "average_s",
        "feeds",
        "guessed",
        "lead_s",
        "lendable",
        "live",
        "notes",
        "patience_s",
        "pool",
        "predicted_s",
        "rank",
        "reserved",
        "seq",
        "stage",
        "tag",
    )

    def __init__(
        self,
        stage: Stage,
        notes: JobNotes,
        pool: Pool,
        seq: int,
        rank: float,
        tag: float,
        predicted_s: float | None,
    ) -> None:
        self.stage = stage
        self.notes = notes
        self.pool = pool
        self.seq = seq
        self.rank = rank
        self.tag = tag
        self.predicted_s = predicted_s
        self.average_s = 0.0
        self.feeds: str | None = None
        self.lead_s = 0.0
        self.guessed = False
        self.patience_s = 0.0
        self.reserved: str | None = None
        self.lendable = False
        self.live = True


Heap = list[tuple[float, float, int, LineEntry]]


class Line:
    """Entries by rank, and those that feed a device also by how soon they do.

    Removal only marks an entry; marked ones are dropped when they surface or when they
    outnumber the living, so memory stays linear in the entries that wait. `feeders` are
    heaps by device key; their first living entry feeds it with the least work. Lendable ones are told
    apart once somebody asks for them: where no device lends its cores, nobody does.
    """

    def __init__(self) -> None:
        self.size = 0
        self._fair: Heap = []
        self.feeders: dict[str, Heap] = {}
        self._loans: Heap | None = None

    def add(self, entry: LineEntry) -> None:
        """Put an entry in."""
        self.size += 1
        place = (entry.rank, 0.0, entry.seq, entry)
        heappush(self._fair, place)
        if entry.feeds is not None:
            heap = self.feeders.get(entry.feeds)
            if heap is None:
                heap = self.feeders[entry.feeds] = []
            heappush(heap, (entry.lead_s, entry.rank, entry.seq, entry))
            if len(heap) > 64 + 2 * self.size:
                _drop_dead(heap)
        if self._loans is not None and entry.lendable:
            heappush(self._loans, place)
            if len(self._loans) > 64 + 2 * self.size:
                _drop_dead(self._loans)

    def remove(self, entry: LineEntry) -> None:
        """Take an entry out; it must be in."""
        entry.live = False
        self.size -= 1
        if len(self._fair) > 64 + 2 * self.size:
            _drop_dead(self._fair)

    def head(self) -> LineEntry | None:
        """The entry of lowest rank."""
        return _living_head(self._fair)

    def first_lendable(self) -> LineEntry | None:
        """The lendable entry of lowest rank."""
        if self._loans is None:
            self._loans = sorted(item for item in self._fair if item[3].lendable)
        return _living_head(self._loans)

    def postpone(self, entry: LineEntry, lead_s: float) -> None:
        """The soonest feeder of its key turned out to be farther from the device."""
        assert entry.feeds is not None
        entry.lead_s = lead_s
        heapreplace(self.feeders[entry.feeds], (lead_s, entry.rank, entry.seq, entry))


def _living_head(heap: Heap) -> LineEntry | None:
    while heap and not heap[0][3].live:
        heappop(heap)
    return heap[0][3] if heap else None


def _drop_dead(heap: Heap) -> None:
    """Rebuild a heap without the entries that left; paid for by as many removals."""
    heap[:] = [item for item in heap if item[3].live]
    heapify(heap)
