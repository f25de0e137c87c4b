"""Images at other sizes as PyTorch computes them, axis by axis.

How much of which element goes where, PyTorch tells itself, for each axis: TVM knows neither its way to round
to the nearest pixel, nor scales that sizes don't tell, nor smoothing, nor one or three axes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import shape_of
from tuneloom.tuners.tvm.importing.torch.indexing import Emit
from tuneloom.tuners.tvm.importing.torch.schemas import arguments_of

_BESIDE = 2
"""Columns of the image whose rows tell what PyTorch does: with a single one, smoothing goes wrong there."""
NAMES = tuple(
    f"{name}.{overload}"
    for name in (
        *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
        *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
        *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
        *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
    )
    for overload in ("default", "vec")
)
"""PyTorch's operators for it."""
_DIRECT = {"upsample_nearest2d": "nearest_neighbor", "upsample_bilinear2d": "linear"}
"""Those that TVM computes alike where sizes tell the scale; to the nearest where it is whole."""


def resampled(emit: Emit, x: Any, node: Any) -> Any:
    """The image that a node makes of `x`."""
    name = node.target.__name__.partition(".")[0]
    given = arguments_of(node)
    before = shape_of(x)[2:]
    after = [int(extent) for extent in node.meta["val"].shape[2:]]
    scales = _scales(given, before, after)
    method = _DIRECT.get(name)
    whole = all(m % n == 0 for n, m in zip(before, after, strict=True))
    if method is not None and not any(scales) and (whole or method == "linear"):
        mode = "align_corners" if given.get("align_corners") else "half_pixel"
        image = relax.op.image.resize2d
        return emit(image(x, after, method=method, coordinate_transformation_mode=mode))
    for axis, sizes in enumerate(zip(before, after, scales, strict=True), start=2):
        matrix = _matrix(name, *sizes, align=bool(given.get("align_corners")))
        x = _along(emit, x, axis, matrix, "nearest" in name)
    return x


def _scales(given: Mapping[str, Any], before: Sequence[int], after: Sequence[int]) -> Sequence[float | None]:
    """By how much each axis grows, where that is not what the sizes say."""
    told = given.get("scale_factors") or [
        given[name] for name in ("scales_d", "scales_h", "scales_w", "scales") if name in given
    ]
    scales = [*([None] * (len(before) - len(told))), *told]
    return [
        None if scale is None or scale * n == m else scale
        for scale, n, m in zip(scales, before, after, strict=True)
    ]


def _matrix(name: str, before: int, after: int, scale: float | None, *, align: bool) -> Any:
    """What an axis of so many elements becomes: how much of each goes into each of the new ones."""
    import torch
    from torch.nn import functional

    each = torch.eye(before).reshape(before, 1, before, 1).repeat(1, 1, 1, _BESIDE)
    options: dict[str, Any] = {"size": (after, _BESIDE)} if scale is None else {"scale_factor": (scale, 1.0)}
    if "nearest" in name:
        options["mode"] = "nearest-exact" if "exact" in name else "nearest"
    else:
        options["mode"] = "bicubic" if "bicubic" in name else "bilinear"
        options |= {"align_corners": align, "antialias": name.endswith("_aa")}
    return functional.interpolate(each, **options)[:, 0, :, 0].numpy()


def _along(emit: Emit, x: Any, axis: int, matrix: Any, picks: bool) -> Any:
    """The image with one axis mixed: a product with a constant, which is what backends are best at."""
    shape = shape_of(x)
    if matrix.shape[0] == matrix.shape[1] and (matrix.diagonal() == 1).all():
        return x
    if picks:
        return emit(relax.op.take(x, relax.const(matrix.argmax(0), "int64"), axis))
    dtype = str(x.ty.dtype)
    if "float" not in dtype:
        raise ValueError(f"images of {dtype} are resized to the nearest pixel only")
    order = [*(other for other in range(len(shape)) if other != axis), axis]
    kept = [shape[other] for other in order[:-1]]
    lines = emit(relax.op.reshape(_turned(emit, x, order), (math.prod(kept), shape[axis])))
    mixed = emit(relax.op.matmul(lines, relax.const(matrix.astype(dtype))))
    return _turned(emit, emit(relax.op.reshape(mixed, (*kept, matrix.shape[1]))), np.argsort(order).tolist())


def _turned(emit: Emit, x: Any, order: Sequence[int]) -> Any:
    return x if list(order) == sorted(order) else emit(relax.op.permute_dims(x, list(order)))
