"""From an imported model to kernels that can be tuned."""

from dataclasses import dataclass, field
from typing import Any

from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.layouts.blocking import block_layouts
from tuneloom.tuners.tvm.lowering.passes import (
    batch_norm_pass,
    folding,
    fusing_passes,
    own_pass,
    preparing_passes,
    vectorising_passes,
)
from tuneloom.tuners.tvm.targets.target import TargetSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerOptions:
    """How a model is laid out: `blocked` channels on CPUs, or `plain` as it came."""

    layout: str = "blocked"

    def __post_init__(self) -> None:
        if self.layout not in ("blocked", "plain"):
            raise ValueError(f"layout must be 'blocked' or 'plain', got {self.layout!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredModel:
    """A model as calls of fused kernels, none of them scheduled yet."""

    name: str
    module: Any = field(repr=False, compare=False)
    target: TargetSpec
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    digest: str
    notes: tuple[str, ...] = ()
    foreign: tuple[ForeignPart, ...] = field(default=(), repr=False)


def lower(imported: ImportedModel, target: TargetSpec, options: LowerOptions | None = None) -> LoweredModel:
    """Simplify, lay out and fuse a model for a target."""
    chosen = options or LowerOptions()
    blocked = chosen.layout == "blocked" and target.kind == "llvm"
    return LoweredModel(
        name=imported.name,
        module=lowered_module(imported.module, target, chosen, imported.dtype),
        target=target,
        inputs=imported.inputs,
        outputs=imported.outputs,
        digest=f"{imported.digest}-{'blocked' if blocked else 'plain'}",
        notes=imported.notes,
        foreign=imported.foreign,
    )


def lowered_module(module: Any, target: TargetSpec, options: LowerOptions, dtype: str = "float32") -> Any:
    """The module as calls of fused kernels, products in this type; raises whatever TVM raises."""
    tvm = load_tvm()
    blocked = options.layout == "blocked" and target.kind == "llvm"
    folds = not blocked and options.layout != "plain"
    first = _blocking(target, dtype) if blocked else [batch_norm_pass()] if folds else []
    passes = [*first, *preparing_passes(), *fusing_passes(target.kind)]
    with target.to_tvm(), tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential(passes)(module)


def _blocking(target: TargetSpec, dtype: str) -> list[Any]:
    whole = target.dots.data if target.dots is not None else ""
    dots = whole if dtype == "int8" else ""

    def block(module: Any) -> Any:
        pairs = dtype == "bfloat16"
        return block_layouts(module, target.lanes, dots, whole, pairs=pairs, tiles=target.tiles)

    return [folding(), own_pass("BlockLayouts", block), *vectorising_passes()]
