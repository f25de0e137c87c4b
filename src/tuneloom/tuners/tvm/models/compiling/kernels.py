"""Kernels of a model with their schedules, and which of those TVM can't compile."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import Implementer
from tuneloom.backends.meaning import Meaning
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import s_tir
from tuneloom.compiler.objects import renamed
from tuneloom.compiler.statements import is_scheduled
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import reason_of
from tuneloom.model.space import TVM, implementer_of
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE
from tuneloom.tuners.tvm.lowering.tasks import kernel_key, kernel_module, vanishing
from tuneloom.tuners.tvm.models.compiling.converting import with_arguments_converted
from tuneloom.tuners.tvm.models.compiling.inserts import Inserts
from tuneloom.tuners.tvm.models.compiling.kept_kernels import KeptKernels

_ENTRY = "__tvm_ffi_"
"""How symbols of functions that TVM calls begin."""


def with_schedules(
    lowered: LoweredModel,
    schedules: Mapping[str, str],
    *,
    guess: bool = False,
    without: Collection[str] = (),
    built: Collection[str] = (),
    kept: KeptKernels | None = None,
) -> Any:
    """The model's module with scheduled kernels in place of plain ones.

    Tasks in `without` keep theirs, and so do kernels that are `built` already, by their names. Schedules
    that were followed before are `kept`.
    """
    replaced, inserts = dict(lowered.module.functions.items()), Inserts(lowered)
    foreign: dict[str, Any] = {}
    named = [(str(gvar.name_hint), key) for gvar, key, _ in _kernels(lowered) if key not in without]
    inserts.compile_ahead((name, key, schedules[key]) for name, key in named if _foreign(schedules.get(key)))
    for gvar, key, function in _kernels(lowered):
        text, name = schedules.get(key), str(gvar.name_hint)
        if key in without or name in built:
            continue
        if _foreign(text):
            foreign[name] = inserts.function(name, key, text or "")
        replaced[gvar] = foreign.get(name) or _chosen(function, text, lowered, guess, kept)
    plain = load_tvm().IRModule(replaced, attrs=lowered.module.attrs)
    module = with_arguments_converted(plain, foreign)
    return module.with_attr("external_mods", inserts.modules) if inserts.modules else module


def built_before(
    lowered: LoweredModel, schedules: Mapping[str, str], objects: Mapping[tuple[str, str], bytes]
) -> dict[str, bytes]:
    """Kernels, by name, that were built alone with their schedules: object files under the model's names."""
    found: dict[str, bytes] = {}
    if not objects or any(_foreign(text) for text in schedules.values()):
        return found
    for gvar, key, _ in _kernels(lowered):
        name = str(gvar.name_hint)
        code = renamed(objects.get((key, schedules.get(key, "")), b""), f"{_ENTRY}main", f"{_ENTRY}{name}")
        if code is not None:
            found[name] = code
    return found


def failing(lowered: LoweredModel, schedules: Mapping[str, str], *, guess: bool = False) -> dict[str, str]:
    """Tasks whose kernel TVM can't compile with its schedule, and why; each kernel is compiled by itself."""
    tvm = load_tvm()
    failed: dict[str, str] = {}
    inserts = Inserts(lowered)
    for gvar, key, function in _kernels(lowered):
        text = schedules.get(key)
        try:
            own = _foreign(text) and inserts.function(str(gvar.name_hint), key, text or "")
            chosen = own or _chosen(function, text, lowered, guess)
            if key not in failed and not chosen.same_as(function):
                with lowered.target.to_tvm() as target, tvm.transform.PassContext(opt_level=3):
                    tvm.tirx.build(kernel_module(chosen), target=target)
        except Exception as error:
            failed[key] = reason_of(error)
    return failed


def implementers_in(
    lowered: LoweredModel, schedules: Mapping[str, str], without: Collection[str] = ()
) -> list[Implementer]:
    """Whose code beside TVM's is in the model that `with_schedules` makes."""
    keys = {key for _, key, _ in _kernels(lowered)} - set(without)
    used = {implementer_of(text) for key, text in schedules.items() if key in keys}
    return [one for one in backend_of(lowered.target).implementers(lowered.target) if one.name in used]


def meanings_by_key(lowered: LoweredModel) -> dict[str, Meaning]:
    """What kernels compute, by the key of their task, where that is known."""
    named = ((str(gvar.name_hint), key) for gvar, key, _ in _kernels(lowered))
    return {key: lowered.meanings[name] for name, key in named if name in lowered.meanings}


def kernels_by_name(lowered: LoweredModel) -> dict[str, str]:
    """The key of each kernel's task, for those that may have a schedule."""
    return {str(gvar.name_hint): key for gvar, key, _ in _kernels(lowered)}


def _kernels(lowered: LoweredModel) -> Iterator[tuple[Any, str, Any]]:
    """Kernels that may have a schedule: where the module has them, the key of their task, and their loops."""
    tvm = load_tvm()
    views = vanishing(lowered.module)  # under a schedule the compiler would not know them as such
    for gvar, function in lowered.module.functions.items():
        name = str(gvar.name_hint)
        if not isinstance(function, tvm.tirx.PrimFunc) or name in views:
            continue
        if name in lowered.meanings or not is_scheduled(function):
            yield gvar, kernel_key(function, lowered.target), function


def _foreign(configuration: str | None) -> bool:
    return configuration is not None and implementer_of(configuration) != TVM


def _chosen(
    function: Any, trace_text: str | None, lowered: LoweredModel, guess: bool, kept: KeptKernels | None = None
) -> Any:
    if trace_text == NO_TRACE or is_scheduled(function) or (trace_text is None and not guess):
        return function  # whatever the backend does to kernels without a schedule
    target = lowered.target

    def make() -> Any:
        return guessed(function, lowered) if trace_text is None else scheduled(function, trace_text, target)

    how = f"{target.text} {target.cores} {trace_text}"
    return make() if kept is None else kept.scheduled(function, how, make)


def guessed(function: Any, lowered: LoweredModel) -> Any:
    """One kernel under the template's first guess, or as it is when no template fits."""
    schedule = backend_of(lowered.target).first_guess(kernel_module(function), lowered.target)
    return function if schedule is None else _taken_out(schedule)


def scheduled(function: Any, trace_text: str, target: TargetSpec) -> Any:
    """One kernel under a trace; raises ValueError when the trace does not fit."""
    module = kernel_module(function)  # held, or TVM would change its function in place, and the model's too
    schedule = s_tir.Schedule(module)
    backend_of(target).follow(trace_text, target)
    try:
        s_tir.Trace.apply_json_to_schedule(json.loads(trace_text), schedule)
    except Exception as error:
        raise ValueError(f"a schedule does not fit its kernel: {reason_of(error)}") from error
    return _taken_out(schedule)


def _taken_out(schedule: Any) -> Any:
    done = schedule.mod["main"].without_attr("global_symbol")
    return done.with_attr("tirx.is_scheduled", True)
