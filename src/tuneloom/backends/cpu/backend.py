"""CPUs as a backend: blocked layouts, templates that fill vector registers, special instructions."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tuneloom.backends.base import Backend
from tuneloom.backends.cpu.dot_products import DotQuantiser
from tuneloom.backends.cpu.features import cpu_features_needed, kernel_flags
from tuneloom.backends.cpu.instructions.tiles import make_known, tile_features
from tuneloom.backends.cpu.target import CpuTarget, cpu_features_of, cpu_of, cpu_target
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError


class CpuBackend(Backend):
    """Code by LLVM for the cores of a machine."""

    name: ClassVar[str] = "cpu"
    kinds: ClassVar[tuple[str, ...]] = ("llvm",)
    layout: ClassVar[str] = "blocked"
    on_host: ClassVar[bool] = True
    has_canary: ClassVar[bool] = True

    def resolve(self, config: dict[str, Any], cores: int) -> CpuTarget:
        return cpu_target(config, cores)

    def dtypes(self, target: TargetSpec) -> frozenset[str]:
        cpu = cpu_of(target)
        extra = (("int8", cpu.dots), ("bfloat16", cpu.pairs))
        return frozenset(("float32", *(name for name, instruction in extra if instruction is not None)))

    def require_dtype(self, dtype: str, target: TargetSpec) -> None:
        needed = {"int8": "AVX-512 VNNI or ARM's dot product", "bfloat16": "AVX512-BF16 or ARM's BF16"}
        if dtype in needed and dtype not in self.dtypes(target):
            raise TargetError(
                f"{dtype} needs {needed[dtype]} instructions, and {target.chip} has neither; omit --dtype"
            )
        super().require_dtype(dtype, target)

    def quantiser(self, target: TargetSpec) -> DotQuantiser:
        return DotQuantiser(cpu_of(target))

    def laying_out(self, target: TargetSpec, dtype: str) -> list[Any]:
        from tuneloom.backends.cpu.layouts.blocking import blocking_passes

        return blocking_passes(cpu_of(target), dtype)

    def legalisers(self) -> Mapping[str, Any]:
        from tuneloom.backends.cpu.layouts.kernels.extremes import legalisers

        return legalisers()

    def finishing(self, target: TargetSpec) -> list[Any]:
        return [
            relax.transform.RewriteDataflowReshape(),
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.StaticPlanBlockMemory(),
            relax.transform.LowerAllocTensor(),
            relax.transform.KillAfterLastUse(),
            relax.transform.LowerRuntimeBuiltin(),
            relax.transform.ComputePrimValue(),
            relax.transform.VMShapeLower(),
            relax.transform.AttachGlobalSymbol(),
        ]

    def build_settings(self, target: TargetSpec) -> dict[str, Any]:
        """Looking for repeated expressions takes a good part of a build's time, and LLVM finds them too."""
        return {"tirx.disable_cse_tir": True}

    def space(self, module: Any, target: TargetSpec) -> Any:
        from tuneloom.backends.cpu.templates.generator import space_for

        return space_for(module, cpu_of(target))

    def last_resort(self, module: Any, target: TargetSpec) -> Any:
        from tuneloom.backends.cpu.templates.generator import last_resort

        return last_resort(module, cpu_of(target))

    def first_guess(self, module: Any, target: TargetSpec) -> Any | None:
        from tuneloom.backends.cpu.templates.generator import first_guess

        return first_guess(module, cpu_of(target))

    def follow(self, trace: str, target: TargetSpec) -> None:
        make_known(trace, cpu_of(target).tiles)

    def facts(self, target: TargetSpec, kernels: Iterable[str]) -> dict[str, Any]:
        from tuneloom.backends.cpu.templates.tile_products import in_tiles

        cpu = cpu_of(target)
        features = cpu_features_needed(cpu_features_of(cpu.to_tvm()))
        needed = (*features, *tile_features(in_tiles(kernels, cpu)))
        return {"cpu_features": list(needed), "cpu_flags": kernel_flags(needed)}


BACKEND = CpuBackend()
