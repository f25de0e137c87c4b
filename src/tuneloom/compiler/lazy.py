"""Modules of TVM and ONNX under their own names, each imported when something of it is first used.

Importing them takes seconds, which programs that compile nothing should not have to wait for.
"""

import importlib
from typing import Any


class _Lazy:
    """Has what a module has."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(importlib.import_module(self._module), name)
        return value


ir: Any = _Lazy("tvm.ir")
ms: Any = _Lazy("tvm.s_tir.meta_schedule")
onnx: Any = _Lazy("onnx")
relax: Any = _Lazy("tvm.relax")
s_tir: Any = _Lazy("tvm.s_tir")
T: Any = _Lazy("tvm.script.tirx")
"""What TVMScript is written in."""
te: Any = _Lazy("tvm.te")
tirx: Any = _Lazy("tvm.tirx")
topi: Any = _Lazy("tvm.topi")
tvm: Any = _Lazy("tvm")
tvm_ffi: Any = _Lazy("tvm_ffi")
