"""Scratch memory of kernels as memory of the model.

What a function allocates while it runs comes from a pool of its thread, which frees it when another function
needs more, or when the thread ends. A CUDA graph keeps the addresses that it was captured with.
"""

from typing import Any

from tuneloom.compiler.lazy import relax, s_tir, tirx, tvm_ffi
from tuneloom.compiler.renewing import function_variable
from tuneloom.compiler.rewriting import Lookup, name_of, rewritten


def scratch_outside(module: Any) -> Any:
    """The module whose kernels get their scratch memory as further outputs, which nobody reads."""
    changed = {str(one.name_hint): _with_outputs(f) for one, f in module.functions.items() if _scratch(f)}
    if not changed or any(_is_other_main(*one) for one in module.functions.items()):
        return module
    callees = {name: function_variable(name, function) for name, (function, _) in changed.items()}

    def rule(builder: Any, call: Any, _made: Lookup) -> Any | None:
        name = str(call.args[0].name_hint) if name_of(call) == "call_tir" else ""
        if name not in changed or len(call.args) != 2:
            return None
        (kind,), scratch = call.ty_args, changed[name][1]
        own = list(kind.fields) if hasattr(kind, "fields") else [kind]
        more = [relax.TensorType([int(n) for n in one.shape], str(one.dtype)) for one in scratch]
        made = builder.emit(relax.call_tir(callees[name], call.args[1], [*own, *more]))
        results = [builder.emit(made[number]) for number in range(len(own))]
        return relax.Tuple(results) if hasattr(kind, "fields") else results[0]

    made = rewritten(module, rule)
    functions = {
        callees.get(str(one.name_hint), one): changed[str(one.name_hint)][0]
        if str(one.name_hint) in changed
        else function
        for one, function in made.functions.items()
    }
    return type(module)(functions, attrs=module.attrs)


def _is_other_main(gvar: Any, function: Any) -> bool:
    return isinstance(function, relax.Function) and gvar.name_hint != "main"


def _with_outputs(function: Any) -> tuple[Any, list[Any]]:
    """A function with its scratch buffers behind its parameters, and these buffers."""
    scratch, block = _scratch(function), function.body.block
    kept = [one for one in block.alloc_buffers if not any(one.same_as(other) for other in scratch)]
    root = s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        block.body,
        block.init,
        kept,
        block.match_buffers,
        block.annotations,
    )
    body = s_tir.SBlockRealize(function.body.iter_values, function.body.predicate, root)
    params = [*function.params, *scratch]
    return tirx.PrimFunc(params, body, function.ret_type, function.attrs), scratch


def _scratch(function: Any) -> list[Any]:
    """The buffers that the host allocates: those of several kernels, or of what is not TVM's."""
    if not isinstance(function, tirx.PrimFunc) or not isinstance(function.body, s_tir.SBlockRealize):
        return []
    if not all(isinstance(one, tirx.Buffer) for one in function.params):
        return []
    block = function.body.block
    parts = list(block.body.seq) if isinstance(block.body, tirx.SeqStmt) else [block.body]
    found = [one for one in block.alloc_buffers if one.scope() == "global" and _is_static(one)]
    return [one for one in found if _allocated_by_host(one, parts)]


def _is_static(buffer: Any) -> bool:
    return all(isinstance(extent, (int, tirx.IntImm)) for extent in buffer.shape)


def _allocated_by_host(buffer: Any, parts: list[Any]) -> bool:
    users = [part for part in parts if any(one.same_as(buffer) for one in _all(part, tirx.Buffer))]
    return len(users) > 1 or not all(map(_is_launched, parts))


def _is_launched(part: Any) -> bool:
    return any(loop.thread_binding is not None for loop in _all(part, tirx.For))


def _all(part: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(part, ((kind, found.append),))
    return found
