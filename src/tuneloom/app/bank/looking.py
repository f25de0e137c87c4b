"""Looking at the bank: what is known, of which kernels, from which devices."""

from collections.abc import Iterator
from dataclasses import dataclass

from tuneloom.errors import InputError
from tuneloom.model.fields import COUNT
from tuneloom.model.space import implementer_of
from tuneloom.store import BankRow, Store, open_existing


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownWorkload:
    """The best record of one workload on one target family."""

    name: str
    shapes: str
    family: str
    gflop: float
    best_s: float
    device_key: str
    record: int
    job: str
    implementer: str

    @property
    def gflops(self) -> float:
        """GFLOP/s of the best record."""
        return self.gflop / self.best_s


def bank_stats(place: str | None = None) -> list[BankRow]:
    """How many workloads and records there are, by kernel class and target family."""
    with open_existing(place) as store:
        return store.bank()


def bank_class(kernel_class: str, place: str | None = None) -> list[KnownWorkload]:
    """The workloads of a class, fastest first; raises InputError naming classes if there is none."""
    with open_existing(place) as store:
        rows = store.bank()
        families = [row.family for row in rows if row.kernel_class == kernel_class]
        if not families:
            known = ", ".join(sorted({row.kernel_class for row in rows})[:8]) or "none yet"
            raise InputError(f"the bank has no class {kernel_class!r}; known: {known}")
        found = [known for family in families for known in _workloads(store, kernel_class, family)]
    return sorted(found, key=lambda known: -known.gflops)


def _workloads(store: Store, kernel_class: str, family: str) -> Iterator[KnownWorkload]:
    workloads = {workload.key: workload for workload in store.workloads(kernel_class, family)}
    for record in store.donors(kernel_class, family, 1):
        workload = workloads[record.task_key]
        assert record.seconds is not None
        yield KnownWorkload(
            name=workload.name,
            shapes=workload.shapes,
            family=family,
            gflop=workload.gflop,
            best_s=record.seconds,
            device_key=record.provenance.device_key,
            record=record.id,
            job=record.job,
            implementer=implementer_of(record.trial.candidate.configuration),
        )


def prune(keep: int, place: str | None = None) -> int:
    """Keep only so many records of every workload; returns how many were dropped."""
    COUNT.require("keep", keep)
    with open_existing(place) as store:
        return store.prune_bank(keep)
