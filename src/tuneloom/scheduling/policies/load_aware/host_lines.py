"""The lines in front of hosts: for any host or for a named one, by the slots a stage needs."""

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.policies.load_aware.lines import Line, LineEntry
from tuneloom.scheduling.records import Seat
from tuneloom.scheduling.stages import SlotDemand

Lines = dict[int, Line]


Heads = tuple[list[Line], LineEntry | None, LineEntry | None]
"""For one host: the lines that fit its room, the first of all of them, the first that is too wide.

A wide stage counts only for the host that is kept free for it, or for any if none is yet.
"""


class HostLines:
    """All waiting host stages, `size` of them, and which hosts are worth a look since something changed."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._groups: dict[str | None, Lines] = {None: {}}
        self.named_to_look_at: dict[str, None] = {}
        self.look_at_any = False
        self.size = 0

    def add(self, entry: LineEntry, needs: SlotDemand) -> None:
        """A stage starts to wait."""
        self.size += 1
        group = self._groups.get(needs.host)
        if group is None:
            group = self._groups[needs.host] = {}
        line = group.get(needs.slots)
        if line is None:
            line = group[needs.slots] = Line()
        entry.lendable = needs.lendable and needs.slots == 1
        line.add(entry)
        if needs.host is None:
            self.look_at_any = True
        else:
            self.named_to_look_at[needs.host] = None

    def remove(self, entry: LineEntry, needs: SlotDemand) -> None:
        """A stage waits no more; a host that was kept free for it is free for others."""
        self.size -= 1
        self._groups[needs.host][needs.slots].remove(entry)
        if entry.reserved is not None:
            self.named_to_look_at[entry.reserved] = None

    def lendable_for(self, host: str) -> list[LineEntry]:
        """The first stages that may borrow a device of this host: of those bound to it and of all others."""
        entries: list[LineEntry] = []
        for group in (self._groups.get(host), self._groups[None]):
            line = group.get(1) if group else None
            entry = line.first_lendable() if line is not None else None
            if entry is not None:
                entries.append(entry)
        return sorted(entries, key=_place) if len(entries) > 1 else entries

    def heads(self, host: Seat) -> Heads:
        """Who comes first for a host with room."""
        anywhere, here = self._groups[None], self._groups.get(host.resource.name)
        if here is None and len(anywhere) == 1 and 1 in anywhere:
            line = anywhere[1]
            return [line], line.head(), None
        return self._heads_of(host, (anywhere, here or {}))

    def _heads_of(self, host: Seat, groups: tuple[Lines, Lines]) -> Heads:
        free = host.slots - host.taken
        fitting: list[Line] = []
        first: LineEntry | None = None
        wide: LineEntry | None = None
        for slots, line in (item for group in groups for item in group.items()):
            head = line.head() if slots <= host.slots else None
            if head is None:
                continue
            if slots <= free:
                fitting.append(line)
                first = _earlier(first, head)
            elif head.reserved == host.resource.name or head.reserved not in self._floor.hosts:
                wide = _earlier(wide, head)
        return fitting, first, wide

    def looked_at_all(self) -> None:
        """Nothing waits, so no host is worth a look."""
        self.named_to_look_at.clear()
        self.look_at_any = False


def _earlier(one: LineEntry | None, other: LineEntry) -> LineEntry:
    return other if one is None or _place(other) < _place(one) else one


def _place(entry: LineEntry) -> tuple[float, int]:
    """The place of an entry among those of several lines, as within one."""
    return entry.rank, entry.seq
