"""CPUs as targets: what LLVM knows of one, and which of its instructions schedules may ask for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tuneloom.backends.cpu.features import present_cpu_features
from tuneloom.backends.cpu.instructions.lanes import DOTS, PAIRS, LaneInstruction, found_in
from tuneloom.backends.cpu.instructions.tiles import KNOWN, tile_features, tiles_of
from tuneloom.compiler.lazy import tvm
from tuneloom.compiler.target import TargetSpec, host_cpu, in_given_vectors, tvm_target
from tuneloom.errors import TargetError

_FLOAT_BITS = 32
_NAMING = frozenset(("mcpu", "mattr", "mtriple"))
"""What says which CPU is meant."""
_MANY_REGISTERS = frozenset(("avx512f", "neon", "sve"))
_VECTOR_FEATURES = (
    ("avx512f", 512),
    ("avx2", 256),
    ("avx", 256),
    ("sve", 128),
    ("neon", 128),
    ("sse2", 128),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTarget(TargetSpec):
    """A CPU with its vectors and special instructions."""

    backend: ClassVar[str] = "cpu"

    mcpu: str = ""
    vector_bits: int = 128
    vector_registers: int = 16
    broadcasts_from_memory: bool = True
    """Whether a product takes one number from memory for all lanes; else it needs a register."""

    dots: LaneInstruction | None = None
    """The instruction that adds four products of 8-bit numbers in every lane, if there is one."""
    pairs: LaneInstruction | None = None
    """The instruction that adds two products of bfloat16 numbers in every lane, if there is one."""
    tiles: frozenset[str] = frozenset()
    """Which numbers it multiplies in tile registers: `bf16`, `int8`."""

    @property
    def lanes(self) -> int:
        """How many float32 values one vector register holds."""
        return self.vector_bits // _FLOAT_BITS

    @property
    def family(self) -> str:
        threads = f"x{self.cores}" if self.cores > 1 else ""
        return f"{self.kind}-{self.vector_bits}{threads}"

    @property
    def chip(self) -> str:
        return self.mcpu or self.kind

    def in_little_time(self) -> "CpuTarget":
        """The same with LLVM's second level instead of its third.

        The third takes seconds for one kernel of reshapes and slices on ARM.
        """
        return replace(self, config={"opt-level": 2, **self.config})

    def _compiled_rightly(self) -> dict[str, Any]:
        return in_given_vectors(self.config)


def cpu_of(target: TargetSpec) -> CpuTarget:
    """A target that the CPU's backend resolved, as what it is."""
    assert isinstance(target, CpuTarget), f"{target.kind} is not a CPU"
    return target


def cpu_target(config: Mapping[str, Any], cores: int) -> CpuTarget:
    """A CPU by its description; one that is not described further is the host's own."""
    full: dict[str, Any] = {"kind": "llvm", "mcpu": host_cpu(), "num-cores": cores, **config}
    if "mcpu" not in config and "mtriple" in config:
        del full["mcpu"]
    target = tvm_target(in_given_vectors(full), json.dumps(config))
    if not _NAMING & config.keys() and (unnamed := _unnamed(cpu_features_of(target))):
        full["mattr"] = [f"+{feature}" for feature in unnamed]
        target = tvm_target(in_given_vectors(full), json.dumps(config))
    mcpu = str(full.get("mcpu", ""))
    _check_cpu(mcpu, target)
    features = cpu_features_of(target)
    return CpuTarget(
        kind="llvm",
        config=full,
        mcpu=mcpu,
        cores=int(full["num-cores"]),
        vector_bits=_vector_bits(features),
        vector_registers=32 if features & _MANY_REGISTERS else 16,
        broadcasts_from_memory="neon" not in features,
        dots=found_in(features, DOTS),
        pairs=found_in(features, PAIRS),
        tiles=tiles_of(features, here=mcpu == host_cpu()),
    )


def _unnamed(known: frozenset[str]) -> list[str]:
    """What schedules ask for and this CPU has, although LLVM's name for it doesn't say so.

    Virtual machines often show the name of an older CPU.
    """
    asked = {one.feature for one in (*DOTS, *PAIRS)} | set(tile_features(KNOWN))
    return sorted(present_cpu_features(asked - known))


def _check_cpu(mcpu: str, target: Any) -> None:
    known = [str(name) for name in tvm.target.codegen.llvm_get_cpu_archlist(target)]
    if mcpu and mcpu not in known:
        near = [name for name in known if name[:4] == mcpu[:4]] or known
        raise TargetError(f"LLVM knows no CPU {mcpu!r}; known: {', '.join(near[:12])}, …")


def _vector_bits(features: frozenset[str]) -> int:
    return next((bits for name, bits in _VECTOR_FEATURES if name in features), 128)


def cpu_features_of(target: Any) -> frozenset[str]:
    """The instruction-set features LLVM assumes for a CPU target."""
    return frozenset(str(name) for name in tvm.target.codegen.llvm_get_cpu_features(target))
