"""The last step of compiling: scheduled kernels put into a model, and that made an executable."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.measuring.building import kernel_settings
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel, linked
from tuneloom.tuners.tvm.models.compiling.kernels import failing, with_schedules
from tuneloom.tuners.tvm.models.compiling.parameters import split_parameters
from tuneloom.tuners.tvm.models.compiling.side_by_side import built


def build_model(lowered: LoweredModel, schedules: Mapping[str, str], *, guess: bool = False) -> CompiledModel:
    """Compile a model with these schedules (task key → trace as JSON text).

    Kernels without a schedule are compiled as they are, or with `guess` by the template's
    first guess. A schedule that TVM can't compile is not used, and the model's `unscheduled`
    says why. Raises ModelError if TVM can't compile the model without it either.
    """
    try:
        return _built(lowered, with_schedules(lowered, schedules, guess=guess))
    except Exception as error:
        failed = failing(lowered, schedules, guess=guess)
        if not failed:
            raise ModelError(f"TVM can't compile {lowered.name}: {reason_of(error)}") from error
    rest = with_schedules(lowered, schedules, guess=guess, without=failed)
    try:
        return replace(_built(lowered, rest), unscheduled=failed)
    except Exception as error:
        raise ModelError(f"TVM can't compile {lowered.name}: {reason_of(error)}") from error


def _built(lowered: LoweredModel, scheduled_module: Any) -> CompiledModel:
    tvm = load_tvm()
    module, parameters = split_parameters(scheduled_module)
    target = lowered.target.to_tvm()
    backend = backend_of(lowered.target)
    settings = {**kernel_settings(lowered.target), **backend.model_settings(lowered.target)}
    with target, tvm.transform.PassContext(opt_level=3, config=settings):
        module = tvm.transform.Sequential(backend.finishing(lowered.target))(module)
        if backend.on_host:
            executable = built(module, target)
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


def build_plain(lowered: LoweredModel) -> CompiledModel:
    """Compile a model as it came in, whose loops have no schedule."""
    return build_model(replace(lowered, target=lowered.target.in_little_time()), {})
