"""What code is generated for, as far as it is the same for all kinds of hardware."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import tvm
from tuneloom.compiler.linking import linker_of, machine_of
from tuneloom.errors import TargetError

_NO_LOOPS_TO_VECTORS = "-vectorize-loops:bool=false"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpec:
    """A target with everything filled in that was left open; `config` is what TVM is given.

    Each backend derives its own from this, with what only its hardware has.
    """

    backend: ClassVar[str]
    """The backend that resolved it."""
    device: ClassVar[str] = "cpu"
    """What TVM's runtime calls the device that holds its tensors."""

    kind: str
    config: dict[str, Any] = field(hash=False)
    cores: int = 1

    @property
    def text(self) -> str:
        """The target as one line of JSON, the same for equal targets."""
        return json.dumps(self.config, sort_keys=True)

    @property
    def family(self) -> str:
        """What schedules of one target have in common with another's: `llvm-512`, `llvm-128x4`, `sm_90`."""
        return self.kind

    @property
    def relatives(self) -> tuple[str, ...]:
        """Families whose records may start a search here, the most alike first."""
        return ()

    @property
    def chip(self) -> str:
        """The hardware by its name, for messages."""
        return self.kind

    @property
    def cross(self) -> bool:
        """Whether its code is for machines of another kind than this one."""
        return machine_of(self.config) != platform.machine()

    @property
    def linker(self) -> str:
        """The program that links code for it."""
        return linker_of(self.config)

    def in_little_time(self) -> "TargetSpec":
        """The same with less effort of the compiler, for loops without a schedule."""
        return self

    def to_tvm(self) -> Any:
        """The `tvm.target.Target` of this spec."""
        return tvm_target(self._compiled_rightly(), self.text)

    def _compiled_rightly(self) -> dict[str, Any]:
        host = self.config.get("host")
        return {**self.config, "host": in_given_vectors(host)} if isinstance(host, Mapping) else self.config


def tvm_target(config: Mapping[str, Any], shown: str) -> Any:
    """TVM's own target; raises TargetError for one that it refuses."""
    load_tvm()
    try:
        return tvm.target.Target(dict(config))
    except (ValueError, TypeError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[-1].partition(" Target creation from config dict failed")[0].rstrip(".")
        raise TargetError(f"TVM does not accept target {shown}: {reason}") from error


def in_given_vectors(llvm: Mapping[str, Any]) -> dict[str, Any]:
    """A target of LLVM without its own vectoriser of loops, which reads `x[i % 4]` as `x[i]` (LLVM 22.1).

    Schedules say themselves what becomes a vector; loops without a schedule are not meant to be fast.
    """
    given = llvm.get("cl-opt", [])
    if not isinstance(given, list):
        return dict(llvm)  # TVM says what is wrong with it
    return {**llvm, "cl-opt": [*given, _NO_LOOPS_TO_VECTORS]}


def host_cpu() -> str:
    """The name LLVM gives to the CPU this process runs on."""
    load_tvm()
    return str(tvm.target.codegen.llvm_get_system_cpu())


def with_host(config: Mapping[str, Any]) -> dict[str, Any]:
    """Code for a device comes with host code, compiled for this very CPU unless `config` says otherwise."""
    return {"host": {"kind": "llvm", "mcpu": host_cpu()}, **config}
