"""What code is generated for: the host's own CPU, a GPU, or anything TVM can name."""

import json
import platform
from dataclasses import dataclass, field, replace
from typing import Any

from tuneloom.errors import TargetError
from tuneloom.tuners.tvm.fast_import import load_intrinsics, load_tvm
from tuneloom.tuners.tvm.targets.dots import DotInstruction, dots_of
from tuneloom.tuners.tvm.targets.gpu import cuda_config
from tuneloom.tuners.tvm.targets.linking import linker_of, machine_of
from tuneloom.tuners.tvm.targets.pairs import PairInstruction, pairs_of
from tuneloom.tuners.tvm.targets.tiles import tiles_of

_FLOAT_BITS = 32
_SHORT_NAMES = ("cpu", "llvm", "cuda")
_MANY_REGISTERS = frozenset(("avx512f", "neon", "sve"))
_VECTOR_FEATURES = (
    ("avx512f", 512),
    ("avx2", 256),
    ("avx", 256),
    ("sve", 128),
    ("neon", 128),
    ("sse2", 128),
)


_NO_LOOPS_TO_VECTORS = "-vectorize-loops:bool=false"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpec:
    """A target with all that was left open filled in; `config` is what TVM is given."""

    kind: str
    config: dict[str, Any] = field(hash=False)
    mcpu: str = ""
    cores: int = 1
    vector_bits: int = 128
    vector_registers: int = 16
    broadcasts_from_memory: bool = True
    """Whether a product takes one number from memory for all lanes; else it needs a register."""

    dots: DotInstruction | None = None
    """The instruction that adds four products of 8-bit numbers in every lane, if there is one."""
    pairs: PairInstruction | None = None
    """The instruction that adds two products of bfloat16 numbers in every lane, if there is one."""
    tiles: frozenset[str] = frozenset()
    """Which numbers it multiplies in tile registers: `bf16`, `int8`."""

    @property
    def lanes(self) -> int:
        """How many float32 values one vector register holds."""
        return self.vector_bits // _FLOAT_BITS

    @property
    def text(self) -> str:
        """The target as one line of JSON, the same for equal targets."""
        return json.dumps(self.config, sort_keys=True)

    @property
    def family(self) -> str:
        """What schedules of one target have in common with another's: `llvm-512`, `llvm-128x4`, `cuda`."""
        if self.kind != "llvm":
            return self.kind
        threads = f"x{self.cores}" if self.cores > 1 else ""
        return f"{self.kind}-{self.vector_bits}{threads}"

    @property
    def cross(self) -> bool:
        """Whether its code is for machines of another kind than this one."""
        return machine_of(self.config) != platform.machine()

    @property
    def linker(self) -> str:
        """The program that links code for it."""
        return linker_of(self.config)

    def in_little_time(self) -> "TargetSpec":
        """The same with LLVM's second level instead of its third, for loops without a schedule.

        The third takes seconds for one kernel of reshapes and slices on ARM.
        """
        return replace(self, config={"opt-level": 2, **self.config}) if self.kind == "llvm" else self

    def to_tvm(self) -> Any:
        """The `tvm.target.Target` of this spec."""
        return _make_target(self.config, self.text)


def resolve_target(text: str | None = None, *, cores: int = 1) -> TargetSpec:
    """Turn `cpu`, `llvm`, `cuda` or a TVM target in JSON into a complete target.

    A CPU that is not described further is the host's own; `cores` says how many of
    its cores one run of the model may use. Raises TargetError for anything TVM does
    not know.
    """
    if cores < 1:
        raise TargetError(f"a target needs at least 1 core, got {cores}")
    wanted = (text or "cpu").strip()
    config = json_config(wanted) if wanted.startswith("{") else {"kind": _known_kind(wanted)}
    if config.get("kind") == "llvm":
        return _cpu_spec(config, cores)
    if config.get("kind") == "cuda":
        config = cuda_config(config)
    _make_target(config, wanted)
    return TargetSpec(kind=str(config["kind"]), config=_with_host(config))


def json_config(text: str) -> dict[str, Any]:
    """Read a target written as JSON; raises TargetError when it is none."""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise TargetError(f"target {text!r} is not valid JSON: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("kind"), str):
        raise TargetError(f'target {text!r} needs a "kind", such as {{"kind": "llvm"}}')
    return config


def host_cpu() -> str:
    """The name LLVM gives to the CPU this process runs on."""
    load_tvm()
    from tvm.target import codegen

    return str(codegen.llvm_get_system_cpu())


def _known_kind(wanted: str) -> str:
    load_tvm()
    from tvm.target import Target

    if wanted == "cpu":
        return "llvm"
    if wanted not in _SHORT_NAMES and wanted not in Target.list_kinds():
        known = ", ".join(repr(name) for name in _SHORT_NAMES)
        raise TargetError(f"unknown target {wanted!r}; known: {known}, or a TVM target in JSON")
    return wanted


def _cpu_spec(config: dict[str, Any], cores: int) -> TargetSpec:
    full: dict[str, Any] = {"kind": "llvm", "mcpu": host_cpu(), "num-cores": cores, **config}
    if "mcpu" not in config and "mtriple" in config:
        del full["mcpu"]
    target = _make_target(full, json.dumps(config))
    mcpu = str(full.get("mcpu", ""))
    _check_cpu(mcpu, target)
    features = cpu_features_of(target)
    return TargetSpec(
        kind="llvm",
        config=full,
        mcpu=mcpu,
        cores=int(full["num-cores"]),
        vector_bits=_vector_bits(features),
        vector_registers=32 if features & _MANY_REGISTERS else 16,
        broadcasts_from_memory="neon" not in features,
        dots=dots_of(features),
        pairs=pairs_of(features),
        tiles=tiles_of(features, here=mcpu == host_cpu()),
    )


def _make_target(config: dict[str, Any], shown: str) -> Any:
    load_intrinsics(str(config["kind"]))
    load_tvm()
    from tvm.target import Target

    try:
        return Target(_compiled_rightly(config))
    except (ValueError, TypeError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[-1].partition(" Target creation from config dict failed")[0].rstrip(".")
        raise TargetError(f"TVM does not accept target {shown}: {reason}") from error


def _compiled_rightly(config: dict[str, Any]) -> dict[str, Any]:
    """Without LLVM's own vectoriser of loops, which reads `x[i % 4]` as if it were `x[i]` (LLVM 22.1).

    Schedules say themselves what becomes a vector; loops without a schedule are not meant to be fast.
    """
    if config.get("kind") != "llvm":
        host = config.get("host")
        return {**config, "host": _compiled_rightly(host)} if isinstance(host, dict) else config
    given = config.get("cl-opt", [])
    if not isinstance(given, list):
        return config  # TVM says what is wrong with it
    return {**config, "cl-opt": [*given, _NO_LOOPS_TO_VECTORS]}


def _with_host(config: dict[str, Any]) -> dict[str, Any]:
    """GPU code comes with host code, which is compiled for this very CPU."""
    if "host" in config:
        return config
    return {**config, "host": {"kind": "llvm", "mcpu": host_cpu()}}


def _check_cpu(mcpu: str, target: Any) -> None:
    from tvm.target import codegen

    known = [str(name) for name in codegen.llvm_get_cpu_archlist(target)]
    if mcpu and mcpu not in known:
        near = [name for name in known if name[:4] == mcpu[:4]] or known
        raise TargetError(f"LLVM knows no CPU {mcpu!r}; known: {', '.join(near[:12])}, …")


def _vector_bits(features: frozenset[str]) -> int:
    return next((bits for name, bits in _VECTOR_FEATURES if name in features), 128)


def cpu_features_of(target: Any) -> frozenset[str]:
    """The instruction-set features LLVM assumes for a CPU target."""
    from tvm.target import codegen

    return frozenset(str(name) for name in codegen.llvm_get_cpu_features(target))
