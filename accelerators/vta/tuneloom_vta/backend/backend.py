"""The backend that `--target vta` names."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from tuneloom.backends.cpu.backend import CpuBackend, DotQuantiser
from tuneloom.backends.implementers import Implementer
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError
from tuneloom_vta.backend.implementer import VtaImplementer
from tuneloom_vta.backend.rewriting import NAME, passes
from tuneloom_vta.backend.target import NO_DOTS, VtaTarget, vta_target


class VtaBackend(CpuBackend):
    """What the CPU's backend does, but for int8 convolutions and products that fit the accelerator."""

    name: ClassVar[str] = "vta"
    kinds: ClassVar[tuple[str, ...]] = ("vta",)
    on_host: ClassVar[bool] = False
    claims_alone: ClassVar[bool] = True

    def resolve(self, config: dict[str, Any], cores: int) -> VtaTarget:
        return vta_target(config, cores)

    def dtypes(self, target: TargetSpec) -> frozenset[str]:
        return frozenset(("int8",))

    def require_dtype(self, dtype: str, target: TargetSpec) -> None:
        if dtype != "int8":
            raise TargetError(f"{target.chip} computes in int8, not in {dtype}; give --dtype int8")

    def quantiser(self, target: TargetSpec) -> "VtaQuantiser":
        return VtaQuantiser(_own(target))

    def laying_out(self, target: TargetSpec, dtype: str) -> list[Any]:
        return passes(_own(target), dtype)

    def implementers(self, target: TargetSpec) -> Sequence[Implementer]:
        return (VtaImplementer(_own(target).accelerator),)

    def require_kernels(self, model: str, kernels: Iterable[str], target: TargetSpec) -> None:
        if not any(NAME in name for name in kernels):
            raise TargetError(
                f"{model}: nothing in it runs on {target.chip}, which computes convolutions and products "
                "of int8 numbers with constant weights; give --dtype int8, or use --target cpu"
            )


class VtaQuantiser(DotQuantiser):
    """Rounds where the CPU's own quantiser does, so that both compute the same numbers."""

    def __init__(self, target: VtaTarget) -> None:
        self._lanes, self._data = target.lanes, (target.dots or NO_DOTS).data


def _own(target: TargetSpec) -> VtaTarget:
    assert isinstance(target, VtaTarget), f"{target.kind} is not VTA"
    return target


BACKEND = VtaBackend()
