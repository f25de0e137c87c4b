"""Conversions of ONNX operators that TVM's importer lacks or does badly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tuneloom.tuners.tvm.importing.onnx.converters.elementwise import elementwise
from tuneloom.tuners.tvm.importing.onnx.converters.guarded import guarded
from tuneloom.tuners.tvm.importing.onnx.converters.lacking import lacking
from tuneloom.tuners.tvm.importing.onnx.converters.quantised import QUANTISED
from tuneloom.tuners.tvm.importing.onnx.converters.quantised_contrib import CONTRIB
from tuneloom.tuners.tvm.importing.onnx.converters.recurrent import RECURRENT
from tuneloom.tuners.tvm.importing.onnx.converters.spectral import spectral
from tuneloom.tuners.tvm.importing.onnx.converters.types import typed


@contextmanager
def better_converters() -> Iterator[None]:
    """Replace TVM's table of ONNX converters while a model is imported."""
    from tvm.relax.frontend.onnx import onnx_frontend

    original = onnx_frontend._get_convert_map
    table = {**original(), **own_converters(onnx_frontend)}
    onnx_frontend._get_convert_map = lambda: table
    try:
        yield
    finally:
        onnx_frontend._get_convert_map = original


def own_converters(frontend: Any) -> dict[str, Any]:
    """Our converters by the name of their operator; with its domain if that is not ONNX's own."""
    return {
        **elementwise(frontend),
        **guarded(frontend),
        **lacking(frontend),
        **spectral(),
        **RECURRENT,
        **QUANTISED,
        **CONTRIB,
        **typed(frontend),
    }
