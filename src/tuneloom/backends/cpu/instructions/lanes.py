"""Instructions that add several products in every lane of a vector, as TVM can use them.

Some add four products of 8-bit numbers, some two of bfloat16 numbers. TVM computes in single precision
wherever a program has the type bfloat16, so programs have those numbers as 16-bit patterns, and the
instruction is a small function in LLVM's own language that each kernel includes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tuneloom.compiler.lazy import T, s_tir

_registered: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneInstruction:
    """An instruction: which feature of a CPU it is, its name in LLVM, its lanes, and the types it takes."""

    feature: str
    llvm: str
    lanes: int
    data: str
    weights: str
    sums: str
    each: int
    """How many products it adds in a lane."""

    @property
    def name(self) -> str:
        """Under which name schedules ask for it, and kernels call it if it needs a function."""
        return (
            f"tuneloom_pairs_{self.lanes}x2" if self.is_pairs else f"tuneloom_dots_{self.lanes}x4_{self.data}"
        )

    @property
    def is_pairs(self) -> bool:
        """Whether its numbers are patterns that stand for bfloat16."""
        return self.sums == "float32"

    @property
    def source(self) -> str:
        """The function that kernels call for pairs."""
        sums, words, numbers = (
            f"<{self.lanes} x float>",
            f"<{self.lanes} x i32>",
            f"<{2 * self.lanes} x bfloat>",
        )
        return f"""
declare {sums} @{self.llvm}({sums}, {numbers}, {numbers})
define linkonce_odr hidden {sums} @{self.name}({sums} %s, {words} %x, {words} %w) alwaysinline nounwind {{
  %a = bitcast {words} %x to {numbers}
  %b = bitcast {words} %w to {numbers}
  %r = call {sums} @{self.llvm}({sums} %s, {numbers} %a, {numbers} %b)
  ret {sums} %r
}}
"""


def _dots(feature: str, llvm: str, lanes: int, data: str) -> LaneInstruction:
    types = {"data": data, "weights": "int8", "sums": "int32"}
    return LaneInstruction(feature=feature, llvm=llvm, lanes=lanes, each=4, **types)


def _pairs(feature: str, llvm: str, lanes: int) -> LaneInstruction:
    types = {"data": "uint16", "weights": "uint16", "sums": "float32"}
    return LaneInstruction(feature=feature, llvm=llvm, lanes=lanes, each=2, **types)


DOTS = (
    _dots("avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, "uint8"),
    _dots("dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8", 4, "int8"),
)
PAIRS = (
    _pairs("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512", 16),
    _pairs("bf16", "llvm.aarch64.neon.bfdot.v4f32.v8bf16", 4),
)


def found_in(features: Collection[str], known: Sequence[LaneInstruction]) -> LaneInstruction | None:
    """The instruction of a CPU with these features, if it has one; this process can schedule with it then."""
    found = next((one for one in known if one.feature in features), None)
    if found is not None and found.name not in _registered:
        loops, instruction = _written(found, by_loops=True), _written(found, by_loops=False)
        s_tir.TensorIntrin.register(found.name, loops, instruction, override=True)
        _registered.add(found.name)
    return found


def times(x: Any, w: Any, sums: str) -> Any:
    """A number of the data times one of the weights, in the type of the sums."""
    if sums == "int32":
        return T.cast(x, "int32") * T.cast(w, "int32")
    one, other = (
        T.reinterpret(T.shift_left(T.cast(half, "uint32"), T.uint32(16)), dtype="float32") for half in (x, w)
    )
    return one * other


def _called(one: LaneInstruction, x: Any, w: Any, s: Any) -> Any:
    """The new sums in all lanes: numbers of the data meet as many of the weights in every lane."""
    sums, many = f"{one.sums}x{one.lanes}", f"{one.weights}x{one.each * one.lanes}"
    data = T.broadcast(T.reinterpret(x.vload([0], f"{one.data}x{one.each}"), dtype="int32"), one.lanes)
    weights = w.vload([0, 0], dtype=many)
    if one.is_pairs:
        words = T.reinterpret(weights, dtype=f"int32x{one.lanes}")
        return T.call_pure_extern(sums, one.name, s.vload([0], dtype=sums), data, words)
    known, given = T.llvm_lookup_intrinsic_id(one.llvm), T.reinterpret(data, dtype=many)
    return T.call_llvm_pure_intrin(known, s.vload([0], dtype=sums), given, weights, dtype=sums)


def _written(one: LaneInstruction, *, by_loops: bool) -> Any:
    """What the instruction computes, as loops, which a schedule replaces, or as the instruction itself."""
    lanes, each, data, weights, sums = one.lanes, one.each, one.data, one.weights, one.sums

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def written(a: T.handle, b: T.handle, c: T.handle) -> None:
        x = T.match_buffer(a, (each,), data, offset_factor=1)
        w = T.match_buffer(b, (lanes, each), weights, offset_factor=1)
        s = T.match_buffer(c, (lanes,), sums, offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(s[0:lanes], x[0:each], w[0:lanes, 0:each])
            T.writes(s[0:lanes])
            if by_loops:
                for i, k in T.grid(lanes, each):
                    with T.sblock("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        s[vi] = s[vi] + times(x[vk], w[vi, vk], sums)
            else:
                s[T.ramp(T.int32(0), 1, lanes)] = _called(one, x, w, s)

    return written
