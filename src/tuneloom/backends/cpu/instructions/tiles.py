"""Instructions that multiply whole tiles of numbers (AMX), as TVM can use them.

A tile is 16 rows of 64 bytes in a register of its own kind. One instruction adds the product of a tile of
data, 16 rows of 32 bfloat16 or 64 8-bit numbers, and a tile of weights to a tile of 16 by 16 sums. The
weights are packed as for instructions that work on vectors: the numbers that meet in a lane lie together.

A kernel calls a function, in LLVM's own language, for a block of its result. It is made for the block's
size: its name says which. It asks Linux for the registers when it is called first, describes the tiles to the
CPU, and lets go of them in the end, so that nobody else finds them in another state.
"""

import ctypes
import functools
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.features import missing_cpu_features
from tuneloom.backends.cpu.instructions.lanes import times
from tuneloom.compiler.lazy import T, s_tir

SIDE = 16
_NAME = re.compile(r"tuneloom_tiles_(\w+?)_(\d+)x(\d+)x(\d+)")
ASKING = (158, 0x1023, 18)
"""The call of Linux, on x86-64, by which a process asks for the registers (`arch_prctl`)."""
_registered: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class TileInstruction:
    """An instruction: which feature of a CPU it is, its name in LLVM, and the types of its numbers."""

    feature: str
    llvm: str
    each: int
    """How many numbers of the data meet as many weights in one lane."""
    data: str
    weights: str
    sums: str

    @property
    def inner(self) -> int:
        """How many products one instruction adds to every sum."""
        return SIDE * self.each


KNOWN = {
    "bf16": TileInstruction(
        feature="amx-bf16",
        llvm="llvm.x86.tdpbf16ps",
        each=2,
        data="uint16",
        weights="uint16",
        sums="float32",
    ),
    "int8": TileInstruction(
        feature="amx-int8", llvm="llvm.x86.tdpbusd", each=4, data="uint8", weights="int8", sums="int32"
    ),
}


def tiles_of(features: Collection[str], *, here: bool) -> frozenset[str]:
    """Which kinds of numbers a CPU with these features multiplies in tiles.

    LLVM knows features by a CPU's name; whether this very machine lets programs use them, only it can tell.
    """
    found = {kind for kind, one in KNOWN.items() if one.feature in features}
    if not here:
        return frozenset(found)
    return frozenset(kind for kind in found if _usable(kind))


def tile_features(kinds: Collection[str]) -> tuple[str, ...]:
    """The features that a CPU needs to multiply numbers of these kinds in tiles."""
    return ("amx-tile", *sorted(KNOWN[kind].feature for kind in kinds)) if kinds else ()


@functools.cache
def _usable(kind: str) -> bool:
    if missing_cpu_features(tile_features((kind,))):
        return False
    return bool(ctypes.CDLL(None).syscall(*ASKING) == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileProduct:
    """A block of a product: rows of data times a panel of so many columns, `inner` numbers each."""

    kind: str
    rows: int
    columns: int
    inner: int

    @property
    def name(self) -> str:
        """Under which name schedules ask for it, and kernels call it."""
        return f"tuneloom_tiles_{self.kind}_{self.rows}x{self.columns}x{self.inner}"

    @property
    def instruction(self) -> TileInstruction:
        return KNOWN[self.kind]

    def known(self) -> "TileProduct":
        """The same, and this process can schedule with it."""
        if self.name not in _registered:
            loops, call = _written(self, by_loops=True), _written(self, by_loops=False)
            s_tir.TensorIntrin.register(self.name, loops, call, override=True)
            _registered.add(self.name)
        return self


def make_known(trace: str, kinds: Collection[str]) -> None:
    """Let this process follow a trace that asks for blocks in tiles, if the target has them."""
    for kind, *sizes in _NAME.findall(trace):
        if kind in kinds:
            rows, columns, inner = map(int, sizes)
            TileProduct(kind=kind, rows=rows, columns=columns, inner=inner).known()


def _written(product: TileProduct, *, by_loops: bool) -> Any:
    """What the function computes, as loops, which a schedule replaces, or as a call of the function."""
    rows, columns, inner, name = product.rows, product.columns, product.inner, product.name
    one = product.instruction
    each, groups = one.each, inner // one.each

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def written(a: T.handle, b: T.handle, c: T.handle) -> None:
        x_row = T.int32()
        s_row = T.int32()
        x = T.match_buffer(a, (rows, inner), one.data, strides=[x_row, 1], offset_factor=1)
        w = T.match_buffer(b, (groups, columns, each), one.weights, offset_factor=1)
        s = T.match_buffer(c, (rows, columns), one.sums, strides=[s_row, 1], offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(s[0:rows, 0:columns], x[0:rows, 0:inner], w[0:groups, 0:columns, 0:each])
            T.writes(s[0:rows, 0:columns])
            if by_loops:
                for i, j, k, n in T.grid(rows, columns, groups, each):
                    with T.sblock("update"):
                        vi, vj, vk, vn = T.axis.remap("SSRR", [i, j, k, n])
                        s[vi, vj] = s[vi, vj] + times(x[vi, vk * each + vn], w[vk, vj, vn], one.sums)
            else:
                T.evaluate(
                    T.call_extern(
                        "int32",
                        name,
                        s.access_ptr("rw"),
                        T.cast(s_row, "int64"),  # models count in 64 bits, other kernels in 32
                        x.access_ptr("r"),
                        T.cast(x_row, "int64"),
                        w.access_ptr("r"),
                    )
                )

    return written
