"""Load-aware: keeps the scarcest resource fed, the shares fair and the urgent ahead."""

from dataclasses import dataclass, field
from heapq import heappop

from tuneloom.scheduling.floor import Floor, Seat
from tuneloom.scheduling.invariants import idle_devices_with_work, require
from tuneloom.scheduling.policies.base import Start
from tuneloom.scheduling.policies.lines import Entry, Heap, Line
from tuneloom.scheduling.policies.loans import Loans
from tuneloom.scheduling.policies.paths import Path, Way, device_ahead
from tuneloom.scheduling.policies.predictions import Predictions
from tuneloom.scheduling.policies.pressure import GRADES, HOSTS, Appetite, Pressure
from tuneloom.scheduling.policies.shares import Account, FairShares
from tuneloom.scheduling.records import Job, Stage
from tuneloom.scheduling.stages import DeviceDemand, Grant

FADING = 0.98
"""How fast the longest way to a device is forgotten, a stage."""

TRIES = 3
"""How many device keys are tried before a host stage is chosen by fair share alone."""

Lines = dict[int, Line]


@dataclass(slots=True)
class Notes:
    """What the policy knows of one job."""

    account: Account
    path: Path = field(default_factory=Path)
    appetite: Appetite = field(default_factory=Appetite)


class LoadAware:
    """Orders waiting stages by fair share, then bends that order to keep devices fed.

    A host stage that leads to a device which is about to run dry goes before others,
    the one with the least work until then first; so the stages that bring one job back
    to the device run back to back. This may put a job ahead of its fair share by one
    such way to the device (and a job that forecasts its chain by one grade of chains
    more), and by half a level of priority at most.
    """

    name = "load-aware"
    shares = False

    def __init__(self, *, ageing_s: float = 600.0) -> None:
        self._fair = FairShares(ageing_s)
        self._predictions = Predictions()
        self._notes: dict[str, Notes] = {}
        self._entries: dict[Stage, Entry] = {}
        self._charged: dict[Stage, float] = {}
        self._device_lines: dict[str, Line] = {}
        self._host_lines: dict[str | None, Lines] = {None: {}}
        self._keys_to_look_at: dict[str, None] = {}
        self._hosts_to_look_at: dict[str, None] = {}
        self._look_for_any_host = False
        self._kept_free = False
        self._entered = 0
        self._just_done: Stage | None = None
        self.attach(Floor())

    def attach(self, floor: Floor) -> None:
        self._floor = floor
        self._pressure = Pressure(floor)
        self._loans = Loans(floor)

    def job_entered(self, job: Job) -> None:
        self._notes[job.ticket.id] = Notes(Account(job))

    def job_left(self, job: Job) -> None:
        notes = self._notes.pop(job.ticket.id)
        self._pressure.left(notes.appetite)
        self._predictions.forget(job.ticket.id)

    def queued(self, stage: Stage, at_s: float) -> None:
        request, notes = stage.request, self._notes[stage.job.ticket.id]
        before = self._just_done
        follows = before is not None and before.job is stage.job
        notes.path.saw(before.request.kind if before is not None and follows else None, request)
        if follows:
            self._just_done = None
        needs = request.needs
        pool = needs.key if isinstance(needs, DeviceDemand) else HOSTS
        chain = self._pressure.weight_of_chain(notes.appetite, request, stage.job)
        tag = self._fair.tag(notes.account, pool, stage, chain)
        rank = self._fair.rank(notes.account, pool, tag, stage, at_s, chain)
        self._entered += 1
        entry = Entry(stage, self._entered, rank=rank, tag=tag, predicted_s=self._predictions.of(request))
        self._entries[stage] = entry
        if isinstance(needs, DeviceDemand):
            self._join_device_line(entry, needs.key)
        else:
            self._look_ahead(entry, notes)
            self._join_host_line(entry, needs.host, needs.slots, lendable=needs.lendable)

    def withdrawn(self, stage: Stage) -> None:
        self._leave_line(stage)
        self._fair.drop(self._notes[stage.job.ticket.id].account, stage)

    def started(self, stage: Stage, at_s: float) -> None:
        entry = self._leave_line(stage)
        needs = stage.request.needs
        expected_s = entry.predicted_s or 0.0
        account = self._notes[stage.job.ticket.id].account
        if isinstance(needs, DeviceDemand):
            self._fair.charge(account, needs.key, entry.tag, expected_s)
        else:
            self._fair.charge(account, HOSTS, entry.tag, expected_s * needs.slots)
            if isinstance(stage.request.then, DeviceDemand):
                self._loans.feeder_started(stage.request.then.key, entry, at_s, at_s + expected_s)
        self._charged[stage] = expected_s

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        seconds = at_s - stage.started_s
        notes, needs = self._notes[stage.job.ticket.id], stage.request.needs
        charged_s = self._charged.pop(stage)
        if isinstance(needs, DeviceDemand):
            self._fair.settle(notes.account, needs.key, charged_s, seconds)
            self._pressure.used(notes.appetite, needs.key, seconds)
        else:
            self._fair.settle(notes.account, HOSTS, charged_s * needs.slots, seconds * needs.slots)
            self._pressure.used(notes.appetite, None, seconds)
            notes.path.reach_s = max(notes.path.reach_s, seconds)
        self._fair.drop(notes.account, stage)
        if finished:
            self._predictions.learn(stage.request, seconds)
            notes.appetite.compare(stage.request.expected_s, seconds)
            self._just_done = stage
        assert stage.grant is not None
        self._look_at(stage.grant.resource)

    def resource_came(self, seat: Seat) -> None:
        self._look_at(seat.resource.name)
        if seat.key is None:
            self._loans.look_at(seat.resource.name)

    def resource_went(self, seat: Seat) -> None:
        self._look_for_any_host = True

    def choose(self, at_s: float) -> Start | None:
        self._just_done = None
        start = self._choose_device_stage() if self._keys_to_look_at else None
        if start is None and (self._hosts_to_look_at or self._look_for_any_host):
            start = self._choose_host_stage()
        if start is None and self._loans.hosts:
            start = self._choose_loan(at_s)
        return start

    def check(self) -> None:
        waiting = {key: line.size for key, line in self._device_lines.items()}
        require(not idle_devices_with_work(self._floor, waiting), "no device idles while stages wait")
        lines = [line for group in self._host_lines.values() for line in group.values()]
        count = sum(waiting.values()) + sum(line.size for line in lines)
        require(count == len(self._entries), "every waiting stage stands in one line")
        for key, line in self._device_lines.items():
            drift = self._pressure.backlog_s.get(key, 0.0)
            require(line.size > 0 or abs(drift) < 1e-3, f"nothing waits for {key}, so no work does")

    def _choose_device_stage(self) -> Start | None:
        while self._keys_to_look_at:
            key = next(iter(self._keys_to_look_at))
            line = self._device_lines.get(key)
            head = line.head() if line is not None else None
            if head is not None:
                device = self._floor.idle_device(key)
                if device is not None:
                    self._fair.turn(key, head.tag)
                    return Start(head.stage, Grant(resource=device.resource.name))
            del self._keys_to_look_at[key]
        return None

    def _choose_host_stage(self) -> Start | None:
        while self._hosts_to_look_at:
            name = next(iter(self._hosts_to_look_at))
            host = self._floor.hosts.get(name)
            start = self._choose_for(host) if host is not None and host.taken < host.slots else None
            if start is not None:
                return start
            del self._hosts_to_look_at[name]
            self._loans.look_at(name)
        if not self._look_for_any_host:
            return None
        host = self._floor.roomiest_host()
        start = self._choose_for(host) if host is not None else None
        if start is not None:
            return start
        self._look_for_any_host = False
        self._loans.look_at_all()
        if host is None or not self._kept_free:
            return None
        self._hosts_to_look_at.update(dict.fromkeys(self._floor.hosts))
        return self._choose_host_stage()

    def _choose_for(self, host: Seat) -> Start | None:
        """The best stage for a host with room, unless it is kept free for a wide one."""
        fitting, head, wide = self._heads(host)
        self._kept_free = False
        if head is None:
            return None
        if wide is not None and head.rank > wide.rank + wide.patience_s:
            wide.reserved = host.resource.name
            self._kept_free = True
            return None
        first_rank = head.rank if wide is None else min(head.rank, wide.rank)
        self._fair.turn(HOSTS, head.tag)
        chosen = self._feeder(fitting, first_rank) or head
        needs = chosen.stage.request.needs
        assert not isinstance(needs, DeviceDemand)
        return Start(chosen.stage, Grant(resource=host.resource.name, slots=needs.slots))

    def _heads(self, host: Seat) -> tuple[list[Line], Entry | None, Entry | None]:
        """Lines that fit, the first entry of all of them, the first that needs more room."""
        anywhere, here = self._host_lines[None], self._host_lines.get(host.resource.name)
        if here is None and len(anywhere) == 1 and 1 in anywhere:
            line = anywhere[1]
            return [line], line.head(), None
        return self._heads_of_groups(host, (anywhere, here or {}))

    def _heads_of_groups(
        self, host: Seat, groups: tuple[Lines, Lines]
    ) -> tuple[list[Line], Entry | None, Entry | None]:
        free, name = host.slots - host.taken, host.resource.name
        fitting: list[Line] = []
        head: Entry | None = None
        wide: Entry | None = None
        for group in groups:
            for slots, line in group.items():
                first = line.head() if slots <= host.slots else None
                if first is None:
                    continue
                if slots <= free:
                    fitting.append(line)
                    if head is None or first.rank < head.rank:
                        head = first
                elif (first.reserved == name or first.reserved not in self._floor.hosts) and (
                    wide is None or first.rank < wide.rank
                ):
                    wide = first
        return fitting, head, wide

    def _feeder(self, lines: list[Line], first_rank: float) -> Entry | None:
        """The stage that soonest feeds the scarcest device key that is about to run dry."""
        tries = TRIES
        for key in self._pressure.scarcest():
            best: Entry | None = None
            for line in lines:
                heap = line.feeders.get(key)
                soonest = self._soonest(line, heap) if heap else None
                if soonest is not None and (best is None or soonest.lead_s < best.lead_s):
                    best = soonest
            if best is None:
                continue
            if best.rank <= first_rank + best.patience_s and self._pressure.runs_dry(key, best.lead_s):
                return best
            tries -= 1
            if not tries:
                break
        return None

    def _soonest(self, line: Line, heap: Heap) -> Entry | None:
        """The soonest feeder; a guess gets a second look, now that more has been seen."""
        while heap:
            entry = heap[0][3]
            if not entry.live:
                heappop(heap)
            elif not entry.guessed:
                return entry
            else:
                entry.guessed = False
                entry.predicted_s = self._predictions.of(entry.stage.request)
                line.postpone(entry, max(entry.lead_s, self._way(entry).lead_s))
        return None

    def _look_ahead(self, entry: Entry, notes: Notes) -> None:
        stage, path = entry.stage, notes.path
        way = device_ahead(path, stage.job, stage.request, self._predictions, entry.predicted_s)
        entry.feeds, lead_s, entry.guessed = way
        entry.lead_s = lead_s
        reach_s = path.reach_s if path.reach_s > lead_s else lead_s
        chain_s = self._fair.chain_s(HOSTS)
        if stage.request.remaining_s is not None:
            reach_s += chain_s / GRADES
        half_level_s = max(self._fair.level_s(HOSTS), chain_s) / 2
        entry.patience_s = reach_s if reach_s < half_level_s else half_level_s
        path.reach_s = max(lead_s, FADING * path.reach_s)

    def _way(self, entry: Entry) -> Way:
        stage = entry.stage
        path = self._notes[stage.job.ticket.id].path
        return device_ahead(path, stage.job, stage.request, self._predictions, entry.predicted_s)

    def _choose_loan(self, at_s: float) -> Start | None:
        while self._loans.hosts:
            name = next(iter(self._loans.hosts))
            for group in (self._host_lines.get(name), self._host_lines[None]):
                line = group.get(1) if group else None
                entry = line.first_lendable() if line is not None else None
                device = self._loans.device_for(name, entry, at_s) if entry is not None else None
                if entry is not None and device is not None:
                    return Start(entry.stage, Grant(resource=device.resource.name))
            self._loans.looked_at(name)
        return None

    def _look_at(self, name: str) -> None:
        seat = self._floor.seats.get(name)
        if seat is None:
            return
        if seat.key is None:
            self._hosts_to_look_at[name] = None
            return
        self._keys_to_look_at[seat.key] = None
        self._loans.device_idle(seat)

    def _join_device_line(self, entry: Entry, key: str) -> None:
        line = self._device_lines.get(key)
        if line is None:
            line = self._device_lines[key] = Line()
        line.add(entry)
        self._pressure.queue(key, entry.predicted_s or 0.0)
        self._keys_to_look_at[key] = None

    def _join_host_line(self, entry: Entry, host: str | None, slots: int, *, lendable: bool) -> None:
        group = self._host_lines.setdefault(host, {})
        line = group.get(slots)
        if line is None:
            line = group[slots] = Line()
        line.add(entry, lendable=lendable and slots == 1)
        if host is None:
            self._look_for_any_host = True
        else:
            self._hosts_to_look_at[host] = None

    def _leave_line(self, stage: Stage) -> Entry:
        entry, needs = self._entries.pop(stage), stage.request.needs
        if isinstance(needs, DeviceDemand):
            line = self._device_lines[needs.key]
            line.remove(entry)
            self._pressure.unqueue(needs.key, entry.predicted_s or 0.0, empty=not line.size)
        else:
            self._host_lines[needs.host][needs.slots].remove(entry)
            if entry.reserved is not None:
                self._hosts_to_look_at[entry.reserved] = None
        return entry
