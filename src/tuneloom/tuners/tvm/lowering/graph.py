"""From an imported model to kernels that can be tuned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tuneloom.backends.base import PLAIN, USUAL, Backend
from tuneloom.backends.finding import backend_of
from tuneloom.backends.meaning import Meaning
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.compiler.tensor_expressions import kernels_made_once
from tuneloom.model import LAYOUTS, TensorInfo
from tuneloom.tuners.tvm.importing.relax import ForeignPart, KeptValue
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.meanings import Meanings, marked
from tuneloom.tuners.tvm.lowering.passes import fusing_passes, preparing_passes, simplifying_passes


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerOptions:
    """How a model is laid out: as its backend likes it best, as it came, or in a layout of the backend's."""

    layout: str = USUAL

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, got {self.layout!r}")


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
    state: tuple[KeptValue, ...] = ()
    meanings: Mapping[str, Meaning] = field(default_factory=dict, repr=False, compare=False)
    """What kernels compute, by their names, where that is known and somebody may ask for it."""


def lower(imported: ImportedModel, target: TargetSpec, options: LowerOptions | None = None) -> LoweredModel:
    """Simplify, lay out and fuse a model for a target."""
    chosen = options or LowerOptions()
    backend = backend_of(target)
    usual = chosen.layout in (USUAL, *backend.layouts[:1])
    layout = backend.layout if usual else chosen.layout
    meanings = Meanings()
    module = lowered_module(imported.module, target, chosen, imported.dtype, meanings)
    module, known = marked(module, meanings.known, partial(backend.further_attributes, imported.dtype))
    return LoweredModel(
        name=imported.name,
        module=module,
        target=target,
        inputs=imported.inputs,
        outputs=imported.outputs,
        digest=f"{imported.digest}-{layout}",
        notes=imported.notes,
        foreign=imported.foreign,
        state=imported.state,
        meanings=known,
    )


def lowered_module(
    module: Any,
    target: TargetSpec,
    options: LowerOptions,
    dtype: str = "float32",
    meanings: Meanings | None = None,
) -> Any:
    """The module as calls of fused kernels, products in this type; raises whatever TVM raises."""
    tvm = load_tvm()
    backend = backend_of(target)
    wanted = meanings if backend.implementers(target) else None
    passes = [
        *simplifying_passes(),
        *_laying_out(backend, options.layout, target, dtype),
        *preparing_passes(),
        *fusing_passes(target, wanted),
    ]
    with target.to_tvm(), tvm.transform.PassContext(opt_level=3), kernels_made_once():
        return tvm.transform.Sequential(passes)(module)


def _laying_out(backend: Backend, layout: str, target: TargetSpec, dtype: str) -> list[Any]:
    if layout == PLAIN:
        return []
    named = layout in backend.layouts
    return backend.laying_out_in(layout, target, dtype) if named else backend.laying_out(target, dtype)
