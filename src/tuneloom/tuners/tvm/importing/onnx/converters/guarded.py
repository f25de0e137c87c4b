"""Converters of TVM that are silently wrong for some attributes: those are refused."""

from collections.abc import Callable
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import array, is_constant, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import Usual, around
from tuneloom.tuners.tvm.importing.onnx.converters.suppression import limited


def guarded(frontend: Any) -> dict[str, Any]:
    """Converters by the name of their operator."""
    return {
        "Resize": around(frontend.Resize, _checked(_check_resize)),
        "RoiAlign": around(frontend.RoiAlign, _checked(_check_regions)),
        "SplitToSequence": around(frontend.SplitToSequence, _checked(_check_split)),
        "NonMaxSuppression": around(frontend.NonMaxSuppression, _suppressed),
    }


def _checked(check: Callable[[list[Any], Any], None]) -> Any:
    """TVM's own converter, asked only if the check raises nothing."""

    def checked(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
        check(list(inputs), attr)
        return usual()

    return checked


def _suppressed(bb: Any, inputs: Any, attr: Any, usual: Usual) -> Any:
    """A result whose first size is not known: TVM's own says the most it could be."""
    _check_suppression(list(inputs), attr)
    return bb.match_cast(bb.emit(usual(limited(inputs))), relax.TensorType(dtype="int64", ndim=2))


def _check_resize(inputs: list[Any], attr: Any) -> None:
    """TVM derives scales from sizes, so a scale that was rounded to a size would be another one."""
    mode = attr.get("coordinate_transformation_mode", b"half_pixel")
    mode = mode.decode() if isinstance(mode, bytes) else mode
    if attr.get("antialias", 0) or mode == "half_pixel_symmetric":
        raise NotImplementedError(f"Resize with antialias or {mode} is not implemented")
    scales = array(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else None
    if scales is None or not scales.size or len(scales) != len(shape_of(inputs[0])):
        return
    sizes = [size * float(scale) for size, scale in zip(shape_of(inputs[0]), scales, strict=True)]
    if any(abs(size - round(size)) > 1e-4 for size in sizes):
        raise NotImplementedError("Resize by a scale that gives no whole size is not implemented")
    if mode == "align_corners" and any(round(size) == 1 for size in sizes[2:]):
        raise NotImplementedError("Resize to one pixel with aligned corners is not implemented")


def _check_regions(inputs: list[Any], attr: Any) -> None:
    """TVM's own computes another maximum than ONNX says; its average is right."""
    if attr.get("mode", b"avg") not in (b"avg", "avg"):
        raise NotImplementedError("RoiAlign of maxima is not implemented")


def _check_split(inputs: list[Any], attr: Any) -> None:
    """TVM's own keeps the axis that was split even where it should go."""
    if not attr.get("keepdims", 1) and len(inputs) < 2:
        raise NotImplementedError("SplitToSequence without keepdims is not implemented")


def _check_suppression(inputs: list[Any], attr: Any) -> None:
    """Limits that are known only when the model runs are taken for others."""
    if any(one is not None and not is_constant(one) for one in inputs[2:]):
        raise NotImplementedError("NonMaxSuppression with limits that are not constants is not implemented")
