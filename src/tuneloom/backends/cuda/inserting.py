"""Machine code inside a TVM module: a host function that launches it, and the module that holds it."""

import json
from typing import Any

from tuneloom.backends.cuda.code import Argument, DeviceCode, Launch
from tuneloom.backends.cuda.driverless import load_cuda_part
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.wrapping import placeholders, pointer

_TAGS = (*(f"blockIdx.{axis}" for axis in "xyz"), "threadIdx.x", "tirx.use_dyn_shared_memory")
"""What a launch is told beside a kernel's parameters, in this order."""


def launching(meaning: Meaning, code: DeviceCode) -> Any:
    """A PrimFunc with a kernel's parameters that launches the code; scratch tensors are its own.

    It counts as scheduled: TVM's default schedules would try to bind its loops to threads.
    """
    from tvm import te, tirx

    inputs = placeholders(meaning.inputs)
    results = [meaning.type_of(number) for number in meaning.outputs]
    written = [*results, *code.scratch]

    def call(ins: Any, outs: Any) -> Any:
        buffers = {"input": ins, "output": outs[: len(results)], "scratch": outs[len(results) :]}
        launches = [tirx.Evaluate(_call(each, buffers)) for each in code.launches]
        return launches[0] if len(launches) == 1 else tirx.SeqStmt(launches)

    shapes, dtypes = [each.shape for each in written], [each.dtype for each in written]
    made = te.extern(shapes, inputs, call, name="launched", dtype=dtypes)
    outputs = made if isinstance(made, (list, tuple)) else [made]
    function = te.create_prim_func([*inputs, *outputs[: len(results)]])
    return function.with_attr("tirx.is_scheduled", True)


def _call(launch: Launch, buffers: dict[str, Any]) -> Any:
    from tvm import tirx

    pointers = [_pointer(each, buffers) for each in launch.arguments]
    return tirx.call_packed(launch.symbol, *pointers, *launch.grid, launch.threads, launch.shared_bytes)


def _pointer(argument: Argument, buffers: dict[str, Any]) -> Any:
    from tvm import tirx

    if argument.role == "null":
        return tirx.reinterpret("handle", tirx.const(0, "uint64"))
    return pointer(buffers[argument.role][argument.number], "r" if argument.role == "input" else "rw")


def device_modules(code: DeviceCode) -> tuple[Any, ...]:
    """One CUDA module of TVM for each kernel."""
    import tvm
    import tvm_ffi

    create = tvm_ffi.get_global_func("ffi.Module.create.cuda", allow_missing=True)
    if create is None:
        load_cuda_part()
        create = tvm_ffi.get_global_func("ffi.Module.create.cuda")
    read = tvm_ffi.get_global_func("runtime.LoadMetaDataFromJSON")
    return tuple(
        create(each.cubin, "cubin", read(_metadata(each, tvm.__version__)), {}) for each in code.launches
    )


def _metadata(launch: Launch, version: str) -> str:
    kinds = ["handle"] * len(launch.arguments)
    facts = {"name": "", "arg_types": kinds, "launch_param_tags": list(_TAGS)}
    return json.dumps({"tvm_version": version, "func_info": {launch.symbol: facts}})
