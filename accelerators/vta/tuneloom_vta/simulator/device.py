"""One run of a program on the simulated accelerator, its outcome as a value."""

import ctypes
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tuneloom_vta.configuration import Configuration
from tuneloom_vta.simulator.library import library

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
MODULES = ("load", "compute", "store")
_MEMORIES = ("uop", "wgt", "inp", "acc", "out", "acc8")


class Fault(IntEnum):
    """Why the accelerator stopped; in the order of vta.h."""

    NONE = 0
    BAD_INSTRUCTION = 1
    SCRATCHPAD_OVERFLOW = 2
    MICRO_OPS_EXCEEDED = 3
    OUTSIDE_MEMORY = 4
    MISALIGNED = 5
    DEADLOCK = 6
    WATCHDOG = 7
    OUT_OF_HOST_MEMORY = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: cycles, or the fault and the instruction that met it.

    `busy` are the cycles each module worked; `stale_sums` counts products that read a sum
    still on its way through the pipeline, which makes results wrong without a fault.
    """

    fault: Fault
    instruction: int
    cycles: int
    busy: dict[str, int]
    transferred: dict[str, int]
    products: int
    operations: int
    stale_sums: int


_CONFIG_FIELDS = (
    *("batch", "block_in", "block_out"),
    *("uop_depth", "inp_depth", "wgt_depth", "acc_depth"),
    *("uop_bits", "inp_bits", "wgt_bits", "acc_bits"),
    *("queue_depth", "token_depth"),
    *("bus_bytes", "align_bytes", "latency_cycles", "row_cycles"),
    *("fetch_cycles", "issue_cycles", "gemm_cycles", "alu_cycles", "sum_latency"),
    "watchdog_cycles",
)


class _Config(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int64) for name in _CONFIG_FIELDS)


class _Report(ctypes.Structure):
    _fields_ = (
        ("fault", ctypes.c_int64),
        ("instruction", ctypes.c_int64),
        ("cycles", ctypes.c_int64),
        ("busy", ctypes.c_int64 * len(MODULES)),
        ("transferred", ctypes.c_int64 * len(_MEMORIES)),
        ("products", ctypes.c_int64),
        ("operations", ctypes.c_int64),
        ("stale_sums", ctypes.c_int64),
    )


def run(configuration: Configuration, words: Words, memory: Bytes, with_data: bool = True) -> Outcome:
    """Run instructions (rows of two words) on a memory, which is changed in place.

    Without data only cycles are counted; they are the same.
    """
    program = np.ascontiguousarray(words, dtype=np.uint64).reshape(-1, 2)
    if not (memory.dtype == np.uint8 and memory.flags.c_contiguous and memory.flags.writeable):
        raise ValueError("the memory must be a writeable, contiguous array of bytes")
    report = _Report()
    library().tuneloom_vta_run(
        ctypes.byref(_config(configuration)),
        program.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(len(program)),
        memory.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(memory.size),
        ctypes.c_int64(with_data),
        ctypes.byref(report),
    )
    return Outcome(
        fault=Fault(report.fault),
        instruction=report.instruction,
        cycles=report.cycles,
        busy=dict(zip(MODULES, report.busy, strict=True)),
        transferred=dict(zip(_MEMORIES, report.transferred, strict=True)),
        products=report.products,
        operations=report.operations,
        stale_sums=report.stale_sums,
    )


def _config(configuration: Configuration) -> _Config:
    return _Config(*config_numbers(configuration))


def config_numbers(configuration: Configuration) -> tuple[int, ...]:
    """A configuration in the order of vta.h."""
    derived = {f"{memory}_depth": depth for memory, depth in configuration.depths.items()}
    derived |= {f"{memory}_bits": bits for memory, bits in configuration.index_bits.items()}
    return tuple(
        derived[name] if name in derived else int(getattr(configuration, name)) for name in _CONFIG_FIELDS
    )
