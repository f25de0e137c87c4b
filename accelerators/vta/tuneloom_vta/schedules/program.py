"""The program of a convolution: instructions in order, with the tokens that keep the modules in step.

A round computes one tile for each virtual thread. Loads for a thread wait for the thread's
own last products only, so the loads of one thread overlap with the products of another;
with a single thread nothing overlaps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom_vta.instructions import Alu, Memory, Numbers, Opcode, Uops, Words, encoded
from tuneloom_vta.schedules import kernels, patterns
from tuneloom_vta.schedules.tiling import Tiling

PAGE = 4096
_HEAD, _TAIL = 2, 5
"""Clearing and the bias; then shift, bias, both ends of clipping, and the store."""
_HEAD_OF_SUMS, _TAIL_OF_SUMS = 1, 7
"""Clearing; then a store for each of four bytes, and a shift between two of them."""


@dataclass(frozen=True)
class Program:
    """Instructions and micro-ops, where everything lies in memory (bytes), and what is needed on chip."""

    words: Words
    uops: Uops
    addresses: dict[str, int]
    memory_bytes: int
    plan: dict[str, int]


def program_of(tiling: Tiling) -> Program:
    """Generate the program; raises ScheduleError or EncodingError where there is none.

    Whether tiles fit into the scratchpads is not looked at: a device that runs the program finds out.
    """
    uops = np.concatenate([kernels.products(tiling), kernels.operations(tiling)])
    addresses, size = _addresses(tiling, len(uops))
    body = _Writer(tiling, addresses, len(uops)).body()
    setup = _encode(
        tiling, Opcode.LOAD, memory=Memory.UOP, dram=addresses["uop"] // 4, y_size=1, x_size=len(uops)
    )
    wait = _encode(tiling, Opcode.LOAD, memory=Memory.UOP, pop_next=np.ones(tiling.threads, dtype=np.int64))
    words = np.concatenate([setup, body, wait, _encode(tiling, Opcode.FINISH)])
    return Program(words, uops, addresses, size, {**tiling.plan, "uop": len(uops)})


def _encode(tiling: Tiling, opcode: Opcode, **fields: Any) -> Words:
    return encoded(tiling.configuration, opcode, **fields)


def _addresses(tiling: Tiling, uops: int) -> tuple[dict[str, int], int]:
    blocks_in, blocks_out = tiling.workload.blocks(tiling.configuration)
    each, workload = tiling.configuration.element_bytes, tiling.workload
    sizes = {
        "uop": uops * each["uop"],
        "inp": blocks_in * workload.height * workload.width * each["inp"],
        "wgt": blocks_out * blocks_in * workload.kernel**2 * each["wgt"],
        "acc": blocks_out * each["acc"],
        "out": workload.planes * blocks_out * workload.out_height * workload.out_width * each["acc"] // 4,
    }
    addresses, at = {}, 0
    for name, size in sizes.items():
        addresses[name] = at
        at += -(-size // PAGE) * PAGE
    return addresses, at


class _Writer:
    """Writes the rounds: every kind of instruction for all rounds at once, each to its places."""

    def __init__(self, tiling: Tiling, addresses: dict[str, int], uops: int) -> None:
        self._tiling, self._addresses = tiling, addresses
        self._threads, self._steps = tiling.threads, tiling.steps
        self._rounds = len(tiling.places[0])
        self._sums = tiling.workload.sums
        self._head = _HEAD_OF_SUMS if self._sums else _HEAD
        self._tail = self._head + 3 * self._steps
        self._each = self._tail + (_TAIL_OF_SUMS if self._sums else _TAIL)  # of a thread in a round
        self._round = np.arange(self._rounds).reshape(-1, 1)
        self._thread = np.arange(self._threads).reshape(1, -1)
        self._per_thread = (uops - self._threads) // self._threads
        self._single = uops - self._threads  # where the micro-ops of the threads' operations begin
        self._words = np.zeros((self._rounds * self._each * self._threads, 2), dtype=np.uint64)

    def body(self) -> Words:
        """All rounds."""
        self._write_start()
        self._write_steps()
        (self._write_sums if self._sums else self._write_end)()
        return self._words

    def _put(self, at: Numbers, opcode: Opcode, **fields: Any) -> None:
        shaped = {
            name: np.broadcast_to(field, at.shape).reshape(-1) if np.ndim(field) else field
            for name, field in fields.items()
        }
        self._words[at.reshape(-1)] = _encode(self._tiling, opcode, **shaped)

    def _at(self, slot: int) -> Numbers:
        """Places of the slot-th instruction of every round and thread, slots of all threads side by side."""
        return (self._round * self._each + slot) * self._threads + self._thread

    def _base(self, name: str, memory: str) -> int:
        each = self._tiling.configuration.element_bytes[memory]
        return self._addresses[name] // (each // 4 if name == "out" else each)

    def _write_start(self) -> None:
        """Sums are cleared once the thread's last results are stored; the bias is loaded behind them."""
        tiling, uop = self._tiling, self._single + self._thread
        knobs = tiling.knobs
        loops = {"iter_out": knobs.tile_co * knobs.tile_h, "iter_in": knobs.tile_w, "dst_out": knobs.tile_w}
        self._put(
            self._at(0),
            Opcode.GEMM,
            reset=1,
            pop_next=self._round > 0,
            uop_begin=uop,
            uop_end=uop + 1,
            dst_in=1,
            **loops,
        )
        if self._sums:
            return
        self._put(
            self._at(1),
            Opcode.LOAD,
            memory=Memory.ACC,
            sram=self._thread * tiling.sums + tiling.results,
            dram=self._base("acc", "acc") + tiling.places[2] * knobs.tile_co,
            y_size=1,
            x_size=knobs.tile_co,
        )

    def _write_steps(self) -> None:
        tiling = self._tiling
        step = np.arange(self._steps).reshape(1, -1, 1)
        round_, thread = self._round[:, None, :], self._thread[:, None, :]
        first = (round_ * self._each + self._head + 3 * step) * self._threads
        group = (round_ * self._steps + step) * self._threads + thread
        total = self._rounds * self._steps * self._threads
        inputs, weights = patterns.input_transfers(tiling), patterns.weight_transfers(tiling)
        self._put(
            first + 2 * thread,
            Opcode.LOAD,
            **inputs | {"dram": inputs["dram"] + self._base("inp", "inp")},
            memory=Memory.INP,
            sram=thread * tiling.inputs,
            pop_next=group >= self._threads,
        )
        self._put(
            first + 2 * thread + 1,
            Opcode.LOAD,
            **weights | {"dram": weights["dram"] + self._base("wgt", "wgt")},
            memory=Memory.WGT,
            sram=thread * tiling.weights,
            push_next=1,
        )
        self._put(
            first + 2 * self._threads + thread,
            Opcode.GEMM,
            pop_prev=1,
            push_prev=group + self._threads < total,
            push_next=np.logical_and(self._sums, step == self._steps - 1),
            uop_begin=thread * self._per_thread,
            uop_end=(thread + 1) * self._per_thread,
            **kernels.folded(tiling),
        )

    def _write_end(self) -> None:
        """Shift, bias, clipping, and the store."""
        low, slot = 0 if self._tiling.workload.relu else -128, self._tail
        self._operate(slot, Alu.SHR, self._tiling.workload.shift)
        self._operate(slot + 1, Alu.ADD, None)
        self._operate(slot + 2, Alu.MIN, 127)
        self._operate(slot + 3, Alu.MAX, low, push_next=1)
        self._store(slot + 4)

    def _write_sums(self) -> None:
        """The lowest byte of every sum, and the next ones after shifts that wait for the store."""
        self._store(self._tail)
        for plane in range(1, self._tiling.workload.planes):
            slot = self._tail + 2 * plane - 1
            self._operate(slot, Alu.SHR, 8, pop_next=1, push_next=1)
            self._store(slot + 1, plane)

    def _store(self, slot: int, plane: int = 0) -> None:
        tiling, stores = self._tiling, patterns.result_transfers(self._tiling)
        blocks = tiling.workload.blocks(tiling.configuration)[1]
        first = plane * blocks * tiling.workload.out_height * tiling.workload.out_width
        self._put(
            self._at(slot),
            Opcode.STORE,
            **stores | {"dram": stores["dram"] + first + self._base("out", "acc")},
            memory=Memory.OUT,
            sram=self._thread * tiling.sums,
            pop_prev=1,
            push_prev=1,
        )

    def _operate(
        self, slot: int, alu: Alu, value: int | None, *, pop_next: int = 0, push_next: int = 0
    ) -> None:
        knobs, uop = self._tiling.knobs, self._single + self._thread
        pixels = knobs.tile_h * knobs.tile_w
        source = {"src_out": 1} if value is None else {"use_imm": 1, "imm": value}
        self._put(
            self._at(slot),
            Opcode.ALU,
            alu=alu,
            pop_next=pop_next,
            push_next=push_next,
            uop_begin=uop,
            uop_end=uop + 1,
            iter_out=knobs.tile_co,
            iter_in=pixels,
            dst_out=pixels,
            dst_in=1,
            **source,
        )
