"""Where calls go: the resources that engines offer, and the machines on which named workers live."""

from dataclasses import dataclass, replace

from tuneloom.engine.calls import Call, Place, ReadFiles
from tuneloom.engine.machine import Offer
from tuneloom.model import Host

REACHING_S = 10.0
"""How much longer than its limit a call may take on a device that is reached through a function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWorker:
    """A named worker that keeps something for a job; `device` is the GPU that it used first, if any.

    A process stays with its first GPU, whichever it is granted later.
    """

    name: str
    job: str
    machine: str
    device: str = ""


class Placing:
    """What is offered now, by resource, and who keeps something where."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._places: dict[str, Place] = {}
        self._workers: dict[tuple[str, str], KeptWorker] = {}
        self._reads: dict[str, ReadFiles] = {}

    def note_files(self, job: str, reads: ReadFiles) -> None:
        """The calls of a job may read these."""
        self._reads[job] = reads

    def add(self, offer: Offer) -> None:
        """A resource can be used from now on."""
        name = offer.resource.name
        self._offers[name] = offer
        self._places[name] = Place(resource=name, machine=offer.resource.machine)

    def remove(self, resource: str) -> None:
        """A resource can't be used any more."""
        del self._offers[resource], self._places[resource]

    def __contains__(self, resource: str) -> bool:
        return resource in self._offers

    def offer(self, resource: str) -> Offer:
        """What is offered under this name."""
        return self._offers[resource]

    def of_machine(self, machine: str) -> list[str]:
        """The resources of a machine, devices before hosts.

        A stage that was lent a device and lost it should find its host gone soon after, not before.
        """
        offers = [offer for offer in self._offers.values() if offer.resource.machine == machine]
        return [offer.resource.name for offer in sorted(offers, key=_is_host)]

    def placed(self, call: Call, job: str, resource: str) -> Call:
        """A call where its resource is: on its cores, or in the one process that owns a GPU."""
        offer = self._offers[resource]
        machine = offer.resource.machine
        owned = offer.resident and call.worker is None
        if call.worker is not None:
            device = self._device_of(call.worker, offer)
            kept = KeptWorker(name=call.worker, job=job, machine=machine, device=device)
            self._workers[call.worker, machine] = kept
            offer = self._offers[device] if offer.resident else offer
        if offer.through:
            call = _reaching(call, offer)
        return Call(  # every stage passes here, and `replace` takes three times as long
            function=call.function,
            arguments=call.arguments,
            timeout_s=call.timeout_s,
            worker=resident_of(resource) if owned else call.worker,
            group=call.group,
            cores=call.cores if owned else self._spread(offer) if call.spread else offer.cores,
            alone=not (_is_host(offer) or call.spread),
            locks=offer.locks,
            memory_bytes=None if owned else call.memory_bytes,
            place=self._places[resource],
            environment=offer.environment,
            reads=self._reads.get(job),
            writes=call.writes,
        )

    def _spread(self, offer: Offer) -> frozenset[int] | None:
        """The cores of a device and of the hosts of its machine; none in particular if it has none."""
        there = [self._offers[name] for name in self.of_machine(offer.resource.machine)]
        hosts = [each.cores or frozenset() for each in there if _is_host(each)]
        return None if offer.cores is None else offer.cores.union(*hosts)

    def _device_of(self, worker: str, offer: Offer) -> str:
        """The GPU that a named worker stays with, as long as that is there; empty before its first."""
        kept = self._workers.get((worker, offer.resource.machine))
        if kept is not None and kept.device in self._offers:
            return kept.device
        return offer.resource.name if offer.resident else ""

    def workers_on(self, machine: str) -> list[KeptWorker]:
        """The named workers that live on a machine."""
        return [worker for worker in self._workers.values() if worker.machine == machine]

    def forget_worker(self, name: str, machine: str) -> KeptWorker | None:
        """A named worker is gone; None if nothing was known of it."""
        return self._workers.pop((name, machine), None)

    def forget_job(self, job: str) -> list[str]:
        """A job ended; the answer is which named workers nobody asks for any more."""
        self._reads.pop(job, None)
        names = {worker.name: None for worker in self._workers.values() if worker.job == job}
        self._workers = {key: worker for key, worker in self._workers.items() if worker.job != job}
        return list(names)


def resident_of(resource: str) -> str:
    """The name of the process that owns a device."""
    return f"resident:{resource}"


def _reaching(call: Call, offer: Offer) -> Call:
    """A call for a device that is reached through a function, which has time to see what is wrong."""
    arguments = (call.function, call.timeout_s, *call.arguments)
    limit_s = None if call.timeout_s is None else call.timeout_s + REACHING_S
    return replace(call, function=offer.through, arguments=arguments, timeout_s=limit_s)


def _is_host(offer: Offer) -> bool:
    return isinstance(offer.resource, Host)
