"""The last step of compiling: scheduled kernels put into a model, and that made an executable."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.measuring.building import kernel_settings
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel, linked
from tuneloom.tuners.tvm.models.compiling.kept_kernels import KeptKernels
from tuneloom.tuners.tvm.models.compiling.kernels import (
    built_before,
    failing,
    kernels_by_name,
    with_schedules,
)
from tuneloom.tuners.tvm.models.compiling.parameters import split_parameters
from tuneloom.tuners.tvm.models.compiling.side_by_side import built, compiled_ahead


def build_model(
    lowered: LoweredModel,
    schedules: Mapping[str, str],
    *,
    guess: bool = False,
    objects: Mapping[tuple[str, str], bytes] = MappingProxyType({}),
    kept: KeptKernels | None = None,
) -> CompiledModel:
    """Compile a model with these schedules (task key → trace as JSON text).

    Kernels without a schedule are compiled as they are, or with `guess` by the template's
    first guess. Those of which there are `objects`, by task key and trace, built alone for the same target,
    are linked as they are, and so is what was `kept` of models compiled before. A schedule that TVM can't
    compile is not used, and the model's `unscheduled` says why. Raises ModelError if TVM can't compile the
    model without it either.
    """
    made = built_before(lowered, schedules, objects) if backend_of(lowered.target).on_host else {}
    try:
        module = with_schedules(lowered, schedules, guess=guess, built=made, kept=kept)
        return _built(lowered, module, made, kept)
    except Exception as error:
        failed = failing(lowered, schedules, guess=guess)
        if not failed:
            raise ModelError(f"TVM can't compile {lowered.name}: {reason_of(error)}") from error
    rest = with_schedules(lowered, schedules, guess=guess, without=failed)
    try:
        return replace(_built(lowered, rest), unscheduled=failed)
    except Exception as error:
        raise ModelError(f"TVM can't compile {lowered.name}: {reason_of(error)}") from error


def _built(
    lowered: LoweredModel,
    scheduled_module: Any,
    made: Mapping[str, bytes] = MappingProxyType({}),
    kept: KeptKernels | None = None,
) -> CompiledModel:
    module, parameters = split_parameters(scheduled_module)
    with _compiling(lowered) as target:
        module = _finished(lowered, module)
        if backend_of(lowered.target).on_host:
            executable = built(module, target, made, kept)
        else:
            executable = relax.build(module, target, relax_pipeline=None)
    return CompiledModel(
        library=linked(executable, lowered.target.linker if lowered.target.cross else ""),
        parameters=tuple(parameters),
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        foreign=lowered.foreign,
        threads=lowered.target.cores,
        device=lowered.target.device,
    )


@contextmanager
def _compiling(lowered: LoweredModel) -> Iterator[Any]:
    """The target of a model, and the settings that its kernels are compiled with."""
    target, backend = lowered.target.to_tvm(), backend_of(lowered.target)
    settings = {**kernel_settings(lowered.target), **backend.model_settings(lowered.target)}
    with target, load_tvm().transform.PassContext(opt_level=3, config=settings):
        yield target


def _finished(lowered: LoweredModel, module: Any) -> Any:
    return load_tvm().transform.Sequential(backend_of(lowered.target).finishing(lowered.target))(module)


def guess_ahead(
    lowered: LoweredModel, keys: Collection[str], kept: KeptKernels
) -> tuple[Any, dict[str, str]]:
    """A model's module with first guesses for these tasks, and the keys of their kernels by name."""
    keys_of = kernels_by_name(lowered)
    names = {name: key for name, key in keys_of.items() if key in keys}
    guesses = with_schedules(lowered, {}, guess=True, built=keys_of.keys() - names.keys(), kept=kept)
    with _compiling(lowered):
        return _finished(lowered, split_parameters(guesses)[0]), names


def compile_ahead(
    lowered: LoweredModel, module: Any, names: Collection[str], kept: KeptKernels, seconds: float
) -> bool:
    """Compile kernels of such a module for so long; whether none of these is left."""
    with _compiling(lowered) as target:
        return compiled_ahead(module, names, target, kept, seconds)


def build_plain(lowered: LoweredModel) -> CompiledModel:
    """Compile a model as it came in, whose loops have no schedule."""
    return build_model(replace(lowered, target=lowered.target.in_little_time()), {})
