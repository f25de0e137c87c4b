"""Kernels and traces as bytes and text, so that they can travel and be kept."""

import json
from typing import Any

from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec

NO_TRACE = "[[],[]]"
"""The configuration of a kernel that runs as its backend runs it when nobody tuned it."""


def pack_kernel(module: Any, target: TargetSpec, meaning: Meaning | None = None) -> bytes:
    """A kernel as bytes; as data, not as code."""
    content = {"module": load_tvm().ir.save_json(module), "target": target.text}
    return json.dumps(content | ({} if meaning is None else {"meaning": meaning.to_json()})).encode()


def unpack_kernel(payload: bytes) -> ModelKernel:
    """What `pack_kernel` packed."""
    content = json.loads(payload)
    meaning = Meaning.from_json(content["meaning"]) if "meaning" in content else None
    return ModelKernel(
        module=module_of(content["module"]), meaning=meaning, target=resolve_target(content["target"])
    )


def module_of(text: str) -> Any:
    """A module that this version of TVM saved: `load_json` would first look for forms of older ones."""
    load_tvm()
    from tvm_ffi.serialization import from_json_graph_str

    return from_json_graph_str(text)


def trace_text(trace: Any) -> str:
    """A trace as one line of JSON, the form stock databases use."""
    return json.dumps(_plain(trace.as_json()), separators=(",", ":"))


def _plain(value: Any) -> Any:
    """TVM's containers and numbers as Python's."""
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return int(value)
    if hasattr(value, "items"):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if hasattr(value, "__iter__"):
        return [_plain(inner) for inner in value]
    return value.value  # IntImm and FloatImm
