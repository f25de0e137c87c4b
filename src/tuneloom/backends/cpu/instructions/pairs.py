"""Instructions that add two products of bfloat16 numbers in every lane of a vector, as TVM can use them.

TVM computes in single precision wherever a program has the type bfloat16, so programs have the numbers as
16-bit patterns, and the instruction is a small function in LLVM's own language that each kernel includes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.instructions.known import found_in
from tuneloom.compiler.lazy import T


@dataclass(frozen=True, slots=True, kw_only=True)
class PairInstruction:
    """An instruction: which feature of a CPU it is, its name in LLVM, and its lanes."""

    feature: str
    llvm: str
    lanes: int

    @property
    def name(self) -> str:
        """Under which name schedules ask for it, and kernels call it."""
        return f"tuneloom_pairs_{self.lanes}x2"

    @property
    def source(self) -> str:
        """The function that kernels call."""
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


KNOWN = (
    PairInstruction(feature="avx512bf16", llvm="llvm.x86.avx512bf16.dpbf16ps.512", lanes=16),
    PairInstruction(feature="bf16", llvm="llvm.aarch64.neon.bfdot.v4f32.v8bf16", lanes=4),
)


def pairs_of(features: Collection[str]) -> PairInstruction | None:
    """The instruction of a CPU with these features, if it has one; this process can schedule with it then."""
    return found_in(features, KNOWN, _loops, _instruction)


def _loops(pair: PairInstruction) -> Any:
    """What the instruction computes, as loops: they are what a schedule replaces."""
    lanes = pair.lanes

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def loops(a: T.handle, b: T.handle, c: T.handle) -> None:
        x = T.match_buffer(a, (2,), "uint16", offset_factor=1)
        w = T.match_buffer(b, (lanes, 2), "uint16", offset_factor=1)
        s = T.match_buffer(c, (lanes,), "float32", offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(s[0:lanes], x[0:2], w[0:lanes, 0:2])
            T.writes(s[0:lanes])
            for i in T.serial(0, lanes):
                for k in T.serial(0, 2):
                    with T.sblock("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        s[vi] = s[vi] + T.reinterpret(
                            T.shift_left(T.cast(x[vk], "uint32"), T.uint32(16)), dtype="float32"
                        ) * T.reinterpret(
                            T.shift_left(T.cast(w[vi, vk], "uint32"), T.uint32(16)), dtype="float32"
                        )

    return loops


def _instruction(pair: PairInstruction) -> Any:
    """The same as one instruction: two numbers of the data meet two of the weights in every lane."""
    lanes, name = pair.lanes, pair.name
    halves, words, sums = f"uint16x{2 * lanes}", f"int32x{lanes}", f"float32x{lanes}"

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def instruction(a: T.handle, b: T.handle, c: T.handle) -> None:
        x = T.match_buffer(a, (2,), "uint16", offset_factor=1)
        w = T.match_buffer(b, (lanes, 2), "uint16", offset_factor=1)
        s = T.match_buffer(c, (lanes,), "float32", offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(s[0:lanes], x[0:2], w[0:lanes, 0:2])
            T.writes(s[0:lanes])
            s[T.ramp(T.int32(0), 1, lanes)] = T.call_pure_extern(
                sums,
                name,
                s.vload([0], dtype=sums),
                T.broadcast(T.reinterpret(x.vload([0], "uint16x2"), dtype="int32"), lanes),
                T.reinterpret(w.vload([0, 0], dtype=halves), dtype=words),
            )

    return instruction
