"""Load-aware: keeps the scarcest resource fed, the shares fair and the urgent ahead."""

from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.invariants import idle_devices_with_work, require
from tuneloom.scheduling.policies.base import Choice
from tuneloom.scheduling.policies.load_aware.chains import Chains
from tuneloom.scheduling.policies.load_aware.fairness import Account, Pool
from tuneloom.scheduling.policies.load_aware.feeding import Feeding
from tuneloom.scheduling.policies.load_aware.host_lines import HostLines
from tuneloom.scheduling.policies.load_aware.lines import JobNotes, Line, LineEntry
from tuneloom.scheduling.policies.load_aware.loans import Loans
from tuneloom.scheduling.policies.load_aware.predictions import Predictions, Speeds
from tuneloom.scheduling.policies.load_aware.pressure import Pressure
from tuneloom.scheduling.policies.load_aware.residences import Residences
from tuneloom.scheduling.records import Job, Seat, Stage
from tuneloom.scheduling.stages import DeviceDemand, Grant, SlotDemand


class LoadAware:
    """Orders waiting stages by fair share, then bends that order to keep devices fed.

    A host stage that leads to a device which is about to run dry goes before others,
    the one with the least work until then first; so the stages that bring one job back
    to the device run back to back. This may put a job ahead of its fair share by one
    such way to the device, and by half a level of priority at most. A job whose own chain
    decides when everything ends counts for more.
    """

    name = "load-aware"
    overlaps = False

    def __init__(self, *, ageing_s: float = 600.0) -> None:
        self._ageing_s = ageing_s
        self._host_pool = Pool("", ageing_s)
        self._device_pools: dict[str, Pool] = {}
        self._predictions = Predictions()
        self._speeds = Speeds()
        self._notes: dict[str, JobNotes] = {}
        self._shares: dict[str, dict[str, float]] = {}
        self._weights: dict[str, float] = {}
        self._device_lines: dict[str, Line] = {}
        self._keys_to_look_at: dict[str, None] = {}
        self._kept_free = False
        self._entered = 0
        self._just_done: Stage | None = None
        self.attach(Floor())

    def attach(self, floor: Floor) -> None:
        self._floor = floor
        self._pressure = Pressure(floor)
        self._chains = Chains(floor)
        self._loans = Loans(floor, self._pressure)
        self._host_lines = HostLines(floor)
        self._residences = Residences(floor, self._speeds)
        self._feeding = Feeding(self._pressure, self._predictions)

    def job_entered(self, job: Job) -> None:
        ticket = job.ticket
        account = Account(job)
        if ticket.share:
            # Kept when its last job leaves: the next one does not begin anew.
            account.used = self._shares.setdefault(ticket.share, {})
            self._weights[ticket.share] = ticket.weight
        job.notes = self._notes[ticket.id] = JobNotes(account)

    def job_left(self, job: Job) -> None:
        appetite, job.notes = self._notes.pop(job.ticket.id).appetite, None
        self._pressure.left(appetite)
        self._chains.left(appetite)
        self._residences.job_left(job.ticket.id)

    def queued(self, stage: Stage, at_s: float) -> None:
        notes: JobNotes = stage.job.notes
        needs = stage.request.needs
        self._note_order(stage, notes)
        if isinstance(needs, DeviceDemand):
            self._join_device_line(self._entry(stage, notes, self._device_pool(needs.key), at_s), needs.key)
        else:
            entry = self._entry(stage, notes, self._host_pool, at_s)
            self._feeding.look_ahead(entry)
            self._host_lines.add(entry, needs)

    def withdrawn(self, stage: Stage) -> None:
        entry: LineEntry = stage.notes
        stage.notes = None
        self._leave_line(entry)
        entry.notes.account.drop(stage)

    def started(self, stage: Stage, at_s: float) -> None:
        entry: LineEntry = stage.notes
        self._leave_line(entry)
        request = stage.request
        if request.home:
            self._residences.started(stage)
        entry.average_s = expected_s = entry.predicted_s or 0.0
        if isinstance(request.needs, SlotDemand):
            assert stage.grant is not None
            expected_s *= self._speeds.factor(stage.grant.resource)
            if isinstance(request.then, DeviceDemand):
                self._loans.feeder_started(request.then.key, entry, at_s, at_s + expected_s)
            entry.predicted_s = expected_s
            expected_s *= request.needs.slots
        else:
            entry.predicted_s = expected_s
        entry.pool.charge(entry.notes.account, entry.tag, expected_s)

    def ended(self, stage: Stage, at_s: float, *, finished: bool) -> None:
        entry: LineEntry = stage.notes
        stage.notes, seconds, seat = None, at_s - stage.started_s, stage.seat
        notes, request = entry.notes, stage.request
        charged_s, needs = entry.predicted_s or 0.0, request.needs
        if isinstance(needs, DeviceDemand):
            entry.pool.settle(notes.account, charged_s, seconds)
            self._pressure.used(notes.appetite, needs.key, seconds)
        else:
            entry.pool.settle(notes.account, charged_s * needs.slots, seconds * needs.slots)
            self._pressure.used(notes.appetite, None, seconds)
            if seconds > notes.path.reach_s:
                notes.path.reach_s = seconds
        notes.account.drop(stage)
        assert seat is not None
        if finished:
            average_s = seconds
            if seat.key is None:
                host = seat.resource.name
                average_s /= self._speeds.factor(host)
                self._speeds.learn(host, entry.average_s, seconds)
            self._predictions.learn(request, notes.durations, average_s)
            notes.appetite.compare(request.expected_s, seconds)
            self._just_done = stage
        if seat.present:
            self._look_at(seat)

    def resource_came(self, seat: Seat) -> None:
        self._look_at(seat)
        if seat.key is None:
            self._loans.look_at(seat.resource.name)

    def resource_went(self, seat: Seat) -> None:
        self._residences.host_went(seat.resource.name)
        self._speeds.forget(seat.resource.name)
        self._host_lines.look_at_any = True

    def share_used(self, share: str, key: str, seconds: float) -> None:
        used = self._shares.get(share)
        if used is not None and key in used:
            used[key] += seconds / self._weights[share]

    def choose(self, at_s: float) -> Choice | None:
        self._just_done = None
        choice = self._choose_device_stage() if self._keys_to_look_at else None
        if choice is None and (self._host_lines.named_to_look_at or self._host_lines.look_at_any):
            choice = self._choose_host_stage()
        if choice is None and self._loans.hosts:
            choice = self._choose_loan(at_s)
        return choice

    def check(self) -> None:
        waiting = {key: line.size for key, line in self._device_lines.items()}
        require(not idle_devices_with_work(self._floor, waiting), "no device idles while stages wait")
        count = sum(waiting.values()) + self._host_lines.size
        stages = [stage for notes in self._notes.values() for stage in notes.account.job.stages.values()]
        alive = sum(stage.notes is not None and stage.notes.live for stage in stages)
        require(count == alive, "every waiting stage stands in one line")
        for key, line in self._device_lines.items():
            drift = self._pressure.backlog_s.get(key, 0.0)
            require(line.size > 0 or abs(drift) < 1e-3, f"nothing waits for {key}, so no work does")

    def _note_order(self, stage: Stage, notes: JobNotes) -> None:
        """Remember which kind of stage follows which."""
        before = self._just_done
        if before is not None and before.job is stage.job:
            notes.path.saw(before.request.kind, stage.request)
            self._just_done = None
        else:
            notes.path.saw(None, stage.request)

    def _entry(self, stage: Stage, notes: JobNotes, pool: Pool, at_s: float) -> LineEntry:
        request, account, appetite = stage.request, notes.account, notes.appetite
        chain = self._chains.weight(appetite, request.remaining_s, stage.job, account.steps)
        if stage.job.ticket.share:
            chain = 0.0  # what a share is ahead is never forgiven: others have a right to theirs
        tag = pool.tag(account, stage, chain)
        rank = pool.rank(account, tag, stage, at_s, chain)
        self._entered += 1
        predicted_s = self._predictions.of(request, notes.durations)
        stage.notes = entry = LineEntry(stage, notes, pool, self._entered, rank, tag, predicted_s)
        return entry

    def _device_pool(self, key: str) -> Pool:
        pool = self._device_pools.get(key)
        if pool is None:
            pool = self._device_pools[key] = Pool(key, self._ageing_s)
        return pool

    def _choose_device_stage(self) -> Choice | None:
        while self._keys_to_look_at:
            key = next(iter(self._keys_to_look_at))
            line = self._device_lines.get(key)
            head = line.head() if line is not None else None
            if head is not None:
                device = self._floor.idle_device(key)
                if device is not None:
                    head.pool.turn(head.tag)
                    return (head.stage, device.one_slot)
            del self._keys_to_look_at[key]
        return None

    def _choose_host_stage(self) -> Choice | None:
        lines = self._host_lines
        if not lines.size:
            lines.looked_at_all()
            return None
        while lines.named_to_look_at:
            name = next(iter(lines.named_to_look_at))
            host = self._floor.hosts.get(name)
            choice = self._choose_for(host) if host is not None and host.taken < host.slots else None
            if choice is not None:
                return choice
            del lines.named_to_look_at[name]
            self._loans.look_at(name)
        return self._choose_for_any_host() if lines.look_at_any else None

    def _choose_for_any_host(self) -> Choice | None:
        """A stage for the host with most room; if that is kept free, one for some other host."""
        host = self._floor.roomiest_host()
        choice = self._choose_for(host) if host is not None else None
        if choice is not None:
            return choice
        self._host_lines.look_at_any = False
        self._loans.look_at_all()
        if host is None or not self._kept_free:
            return None
        self._host_lines.named_to_look_at.update(dict.fromkeys(self._floor.hosts))
        return self._choose_host_stage()

    def _choose_for(self, host: Seat) -> Choice | None:
        """The best stage for a host with room, unless it is kept free for a wide one."""
        fitting, head, wide = self._host_lines.heads(host)
        self._kept_free = False
        if head is None:
            return None
        if wide is not None and head.rank > wide.rank + wide.patience_s:
            wide.reserved = host.resource.name
            self._kept_free = True
            return None
        first_rank = head.rank if wide is None else min(head.rank, wide.rank)
        self._host_pool.turn(head.tag)
        chosen = self._feeding.soonest(fitting, first_rank) or head
        needs = chosen.stage.request.needs
        assert isinstance(needs, SlotDemand)
        if needs.slots == 1:
            seat = self._residences.host_for(chosen.stage, host) if chosen.stage.request.home else host
            return (chosen.stage, seat.one_slot)
        return (chosen.stage, Grant(resource=host.resource.name, slots=needs.slots))

    def _choose_loan(self, at_s: float) -> Choice | None:
        while self._loans.hosts:
            name = next(iter(self._loans.hosts))
            for entry in self._host_lines.lendable_for(name):
                device = self._loans.device_for(name, entry, at_s)
                if device is not None:
                    return (entry.stage, device.one_slot)
            self._loans.looked_at(name)
        return None

    def _look_at(self, seat: Seat) -> None:
        if seat.key is None:
            self._host_lines.named_to_look_at[seat.resource.name] = None
            return
        self._keys_to_look_at[seat.key] = None
        self._loans.device_idle(seat)

    def _join_device_line(self, entry: LineEntry, key: str) -> None:
        line = self._device_lines.get(key)
        if line is None:
            line = self._device_lines[key] = Line()
        line.add(entry)
        self._pressure.queue(key, entry.predicted_s or 0.0)
        self._keys_to_look_at[key] = None

    def _leave_line(self, entry: LineEntry) -> None:
        needs = entry.stage.request.needs
        if isinstance(needs, DeviceDemand):
            line = self._device_lines[needs.key]
            line.remove(entry)
            self._pressure.unqueue(needs.key, entry.predicted_s or 0.0, empty=not line.size)
        else:
            self._host_lines.remove(entry, needs)
