"""The accelerator as a backend: matrix products run on it, everything else on the CPU beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tuneloom.backends.base import Backend
from tuneloom.backends.cpu.backend import CpuBackend
from tuneloom.backends.cpu.target import CpuTarget, cpu_target
from tuneloom.backends.implementers import Implementer
from tuneloom.compiler.target import TargetSpec
from tuneloom_abacus.products import ProductImplementer

SCRATCHPAD_BYTES = 16384


@dataclass(frozen=True, slots=True, kw_only=True)
class AbacusTarget(CpuTarget):
    """The CPU beside the accelerator, and how large its scratchpad is."""

    backend: ClassVar[str] = "abacus"

    @property
    def scratchpad_bytes(self) -> int:
        return int(self.config.get("scratchpad", SCRATCHPAD_BYTES))

    @property
    def family(self) -> str:
        return f"abacus-{self.scratchpad_bytes}"

    def _compiled_rightly(self) -> dict[str, Any]:
        own = CpuTarget._compiled_rightly(self)
        return {name: value for name, value in own.items() if name != "scratchpad"} | {"kind": "llvm"}


class AbacusBackend(CpuBackend):
    """What the CPU's backend does, but for products, and for layouts that only suit vectors."""

    name: ClassVar[str] = "abacus"
    kinds: ClassVar[tuple[str, ...]] = ("abacus",)
    layout: ClassVar[str] = "plain"
    on_host: ClassVar[bool] = False

    def resolve(self, config: dict[str, Any], cores: int) -> AbacusTarget:
        own = {"scratchpad": SCRATCHPAD_BYTES, **config}
        host = cpu_target({k: v for k, v in own.items() if k not in ("kind", "scratchpad")}, cores)
        known = {one.name: getattr(host, one.name) for one in fields(host)}
        return AbacusTarget(**(known | {"kind": "abacus", "config": {**host.config, **own}}))

    def laying_out(self, target: TargetSpec, dtype: str) -> list[Any]:
        return Backend.laying_out(self, target, dtype)

    def implementers(self, target: TargetSpec) -> Sequence[Implementer]:
        assert isinstance(target, AbacusTarget)
        return (ProductImplementer(target.scratchpad_bytes),)


BACKEND = AbacusBackend()
