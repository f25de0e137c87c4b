"""Our simulator of VTA against the published functional simulator: the same memory after the same programs?

    pip install accelerators/vta
    python benchmarks/vta_functional.py TVM_VTA [--convolutions 200] [--random 1000]

TVM_VTA is a checkout of https://github.com/apache/tvm-vta; it is compiled in a temporary folder, with headers
that stand for the little it takes from TVM. Programs are those of small convolutions with random knobs, and
random products and operations on random data. Products finish at once here (`sum_latency=1`): the published
simulator has no pipeline.
"""

import argparse
import ctypes
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tuneloom_vta.configuration import DEFAULT, Configuration
from tuneloom_vta.errors import VtaError
from tuneloom_vta.instructions import Alu, Memory, Opcode, Words, encoded, micro_ops
from tuneloom_vta.measuring import refused
from tuneloom_vta.schedules.data import data_of
from tuneloom_vta.schedules.knobs import Knobs, space_of
from tuneloom_vta.schedules.program import program_of
from tuneloom_vta.schedules.tiling import Tiling
from tuneloom_vta.schedules.workloads import Convolution
from tuneloom_vta.simulator.device import Bytes, Fault, run
from vta_published import published

OURS = replace(DEFAULT, sum_latency=1)
Piece = tuple[Words, Bytes]
"""A program and the memory that it finds."""


def convolutions(count: int, seed: int) -> Iterator[Piece]:
    """Programs of small convolutions, with the knobs of the published schedules drawn at random."""
    random = np.random.default_rng([seed, 1])
    while count:
        workload = _workload(random)
        space = space_of(workload, OURS)
        points = space.points()
        values = space.configuration(points[int(random.integers(len(points)))])
        piece = _convolution(workload, {name: int(value) for name, value in values.items()})
        if piece is not None:
            count -= 1
            yield piece


def _workload(random: np.random.Generator) -> Convolution:
    kernel, stride = int(random.choice([1, 3])), int(random.choice([1, 2]))
    size = int(random.choice([4, 6, 7, 8]))
    side = (size - 1) * stride + kernel
    channels = [16 * int(random.integers(1, 5)) for _ in range(2)]
    return Convolution(
        name="small",
        height=side,
        width=side,
        kernel=kernel,
        stride=stride,
        in_channels=channels[0],
        out_channels=channels[1],
        sums=bool(random.integers(2)),
    )


def _convolution(workload: Convolution, values: dict[str, int]) -> Piece | None:
    """A program with its data; None for knobs that no program exists for."""
    try:
        tiling = Tiling(workload, Knobs.of(values), OURS)
        if refused(tiling):
            return None
        program = program_of(tiling)
    except VtaError:
        return None
    data, memory = data_of(workload, OURS), np.zeros(program.memory_bytes, dtype=np.uint8)
    parts = {"uop": program.uops.tobytes(), "inp": data.inputs, "wgt": data.weights, "acc": data.bias}
    for name, content in parts.items():
        begin = program.addresses[name]
        memory[begin : begin + len(content)] = np.frombuffer(content, dtype=np.uint8)
    return program.words, memory


_UOP, _INP, _WGT, _ACC, _OUT, _BYTES = 0x1000, 0x2000, 0x3000, 0x7000, 0x8000, 0x9000
_PLACES = 64  # of each scratchpad are filled before a random program, which reads no others
_STARTS = 16


def random_programs(count: int, seed: int) -> Iterator[Piece]:
    """Loads with padding, then products and operations on sums in any order, then a store."""
    random = np.random.default_rng([seed, 2])
    for _ in range(count):
        memory = random.integers(0, 256, _BYTES, dtype=np.uint8)
        uops = micro_ops(OURS, *(random.integers(0, _STARTS, 8) for _ in range(3)))
        memory[_UOP : _UOP + uops.nbytes] = np.frombuffer(uops.tobytes(), dtype=np.uint8)
        steps = [_step(random) for _ in range(int(random.integers(1, 12)))]
        wait = encoded(OURS, Opcode.GEMM, uop_begin=0, uop_end=0, pop_prev=1)
        tell = encoded(OURS, Opcode.GEMM, uop_begin=0, uop_end=0, push_next=1)
        yield np.concatenate([*_loads(random), wait, *steps, tell, *_end()]), memory


def _loads(random: np.random.Generator) -> list[Words]:
    pads = {name: int(random.integers(0, 3)) for name in ("y_before", "y_after", "x_before", "x_after")}
    padded = {"y_size": 2, "x_size": 3, "x_stride": int(random.integers(3, 8)), **pads}
    whole = {"y_size": 1, "x_size": _PLACES, "x_stride": _PLACES}
    return [
        _load(Memory.INP, _INP, **whole),
        _load(Memory.INP, _INP, sram=int(random.integers(0, 8)), **padded),
        _load(Memory.WGT, _WGT, push_next=1, **whole),
        _load(Memory.UOP, _UOP, y_size=1, x_size=8),
        _load(Memory.ACC, _ACC, y_size=1, x_size=_PLACES, x_stride=_PLACES),
    ]


def _load(memory: Memory, address: int, **fields: int) -> Words:
    each = OURS.element_bytes[memory.name.lower()]
    return encoded(OURS, Opcode.LOAD, memory=memory, dram=address // each, **fields)


def _step(random: np.random.Generator) -> Words:
    begin = int(random.integers(0, 8))
    loops = {"uop_begin": begin, "uop_end": int(random.integers(begin + 1, 9))}
    loops |= {name: int(random.integers(1, 4)) for name in ("iter_out", "iter_in")}
    names = ["dst_out", "dst_in", "src_out", "src_in"]
    if random.integers(2):
        return encoded(
            OURS,
            Opcode.GEMM,
            reset=int(random.integers(8) == 0),
            **loops,
            **{name: int(random.integers(0, 4)) for name in [*names, "wgt_out", "wgt_in"]},
        )
    alu = Alu(int(random.integers(len(Alu) - 1)))
    given = {"use_imm": 1, "imm": int(random.integers(-9, 10))}
    moved = {name: int(random.integers(0, 4)) for name in names}
    own = given if alu is Alu.SHR or random.integers(2) else {}
    return encoded(OURS, Opcode.ALU, alu=alu, **loops, **moved, **own)


def _end() -> list[Words]:
    places = {"y_size": 1, "x_size": _PLACES, "x_stride": _PLACES}
    store = encoded(OURS, Opcode.STORE, memory=Memory.OUT, dram=_OUT // 16, pop_prev=1, push_prev=1, **places)
    wait = encoded(OURS, Opcode.GEMM, uop_begin=0, uop_end=0, pop_next=1)
    return [store, wait, encoded(OURS, Opcode.FINISH)]


def same(other: ctypes.CDLL, piece: Piece, configuration: Configuration = OURS) -> bool:
    """Whether both leave the same memory."""
    words, before = piece
    mine, theirs, program = before.copy(), before.copy(), np.ascontiguousarray(words)
    outcome = run(configuration, words, mine)
    failed = other.run_published(
        program.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(len(program)),
        theirs.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(theirs.size),
    )
    return outcome.fault is Fault.NONE and not failed and bool((mine == theirs).all())


def main() -> int:
    """Print how many programs leave the same memory; a failure if one does not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, metavar="TVM_VTA")
    parser.add_argument("--convolutions", type=int, default=200)
    parser.add_argument("--random", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        other = published(arguments.checkout.resolve(), Path(folder))
        kinds = {
            "convolutions": convolutions(arguments.convolutions, arguments.seed),
            "random": random_programs(arguments.random, arguments.seed),
        }
        for name, pieces in kinds.items():
            results = [same(other, piece) for piece in pieces]
            print(f"{name}: {sum(results)} of {len(results)} programs leave the same memory", flush=True)
            equal = equal and all(results)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
