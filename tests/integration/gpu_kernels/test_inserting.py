"""Machine code in TVM modules: the host's part is compiled here, the GPU's part needs one."""

from typing import Any

import pytest

from support.kernels.cases import plain_product
from tuneloom.backends.cuda.code import Argument, DeviceCode, Launch
from tuneloom.backends.cuda.inserting import launching
from tuneloom.backends.meaning import Meaning, TensorType
from tuneloom.compiler.fast_import import load_tvm

pytestmark = pytest.mark.integration


def sample_launch(symbol: str, *roles: str) -> Launch:
    arguments = tuple(Argument(role, 0, "float16") for role in roles)
    return Launch(
        symbol=symbol, cubin=b"", grid=(3, 2, 1), threads=128, shared_bytes=1024, arguments=arguments
    )


def host_code(meaning: Meaning, code: DeviceCode) -> str:
    tvm = load_tvm()
    function = launching(meaning, code).with_attr("global_symbol", "main")
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host="llvm")
    built: Any = tvm.compile(tvm.IRModule({"main": function}), target=target)
    return str(built.mod.inspect_source())


def test_the_function_has_the_parameters_of_its_kernel_and_is_left_unscheduled() -> None:
    meaning = plain_product(8, 16, 32)
    function = launching(meaning, DeviceCode(launches=(sample_launch("kernel", "input", "output"),)))
    assert len(function.params) == 3 and function.attrs["tirx.is_scheduled"]


def test_every_kernel_is_called_by_its_name() -> None:
    launches = (sample_launch("first", "input", "null"), sample_launch("second", "output", "null"))
    text = host_code(plain_product(8, 16, 32), DeviceCode(launches=launches))
    assert "__tvm_func_handle_init.first" in text and "__tvm_func_handle_init.second" in text


def test_scratch_tensors_are_allocated_on_the_gpu() -> None:
    scratch = (TensorType(shape=(4096,), dtype="float32"),)
    code = DeviceCode(launches=(sample_launch("kernel", "input", "output", "scratch"),), scratch=scratch)
    text = host_code(plain_product(8, 16, 32), code)
    assert "(i32 2, i32 %dev_id, i64 16384" in text
