"""Instructions that add four products of 8-bit numbers in every lane of a vector, as TVM can use them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.instructions.known import found_in
from tuneloom.compiler.lazy import T


@dataclass(frozen=True, slots=True, kw_only=True)
class DotInstruction:
    """An instruction: which feature of a CPU it is, its name in LLVM, its lanes, and the type of its data."""

    feature: str
    llvm: str
    lanes: int
    data: str

    @property
    def name(self) -> str:
        """Under which name schedules ask for it."""
        return f"tuneloom_dots_{self.lanes}x4_{self.data}"


KNOWN = (
    DotInstruction(feature="avx512vnni", llvm="llvm.x86.avx512.vpdpbusd.512", lanes=16, data="uint8"),
    DotInstruction(feature="dotprod", llvm="llvm.aarch64.neon.sdot.v4i32.v16i8", lanes=4, data="int8"),
)


def dots_of(features: Collection[str]) -> DotInstruction | None:
    """The instruction of a CPU with these features, if it has one; this process can schedule with it then."""
    return found_in(features, KNOWN, _loops, _instruction)


def _loops(dot: DotInstruction) -> Any:
    """What the instruction computes, as loops: they are what a schedule replaces."""
    lanes, kind = dot.lanes, dot.data

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def loops(a: T.handle, b: T.handle, c: T.handle) -> None:
        x = T.match_buffer(a, (4,), kind, offset_factor=1)
        w = T.match_buffer(b, (lanes, 4), "int8", offset_factor=1)
        s = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(s[0:lanes], x[0:4], w[0:lanes, 0:4])
            T.writes(s[0:lanes])
            for i in T.serial(0, lanes):
                for k in T.serial(0, 4):
                    with T.sblock("update"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        s[vi] = s[vi] + T.cast(x[vk], "int32") * T.cast(w[vi, vk], "int32")

    return loops


def _instruction(dot: DotInstruction) -> Any:
    """The same as one instruction: four bytes of data meet four of the weights in every lane."""
    lanes, kind, name = dot.lanes, dot.data, dot.llvm
    four, bytes_, sums = f"{kind}x4", f"int8x{4 * lanes}", f"int32x{lanes}"

    @T.prim_func(s_tir=True)  # type: ignore[untyped-decorator]
    def instruction(a: T.handle, b: T.handle, c: T.handle) -> None:
        x = T.match_buffer(a, (4,), kind, offset_factor=1)
        w = T.match_buffer(b, (lanes, 4), "int8", offset_factor=1)
        s = T.match_buffer(c, (lanes,), "int32", offset_factor=1, scope="local")
        with T.sblock("root"):
            T.reads(s[0:lanes], x[0:4], w[0:lanes, 0:4])
            T.writes(s[0:lanes])
            data = T.broadcast(T.reinterpret(x.vload([0], four), dtype="int32"), lanes)
            s[T.ramp(T.int32(0), 1, lanes)] = T.call_llvm_pure_intrin(
                T.llvm_lookup_intrinsic_id(name),
                s.vload([0], dtype=sums),
                T.reinterpret(data, dtype=bytes_),
                w.vload([0, 0], dtype=bytes_),
                dtype=sums,
            )

    return instruction
