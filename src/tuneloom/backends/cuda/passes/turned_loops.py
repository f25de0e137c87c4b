"""Loops of transposed convolutions with channels behind pixels, which TVM has only for channels in front."""

from collections.abc import Callable, Mapping
from typing import Any

_ORDERS = {
    "NWC": ("group_conv1d_transpose_ncw", (0, 2, 1), (2, 0, 1), (0, 2, 1)),
    "NHWC": ("group_conv2d_transpose_nchw", (0, 3, 1, 2), (3, 0, 1, 2), (0, 2, 3, 1)),
}
"""By layout: TVM's loops, and the axes of image, filters (OWI or OHWI) and result that they need."""


def turned_loops() -> Mapping[str, Any]:
    """How transposed convolutions become loops, by name."""
    return {name: _legaliser(name) for name in ("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose")}


def _legaliser(name: str) -> Callable[[Any, Any], Any]:
    def legalise(builder: Any, call: Any) -> Any:
        from tvm.ir import Op

        if str(call.attrs.data_layout) not in _ORDERS:
            return Op.get(name).get_attr("FLegalize")(builder, call)
        hint = name.removeprefix("relax.nn.")
        return builder.call_te(_loops(call), *call.args, primfunc_name_hint=hint)

    return legalise


def _loops(call: Any) -> Callable[[Any, Any], Any]:
    attrs = call.attrs
    loops, image, filters, result = _ORDERS[str(attrs.data_layout)]
    strides, padding, more, gaps = (
        [int(one) for one in values]
        for values in (attrs.strides, attrs.padding, attrs.output_padding, attrs.dilation)
    )

    def turned(data: Any, kernel: Any) -> Any:
        from tvm import topi

        wide = topi.nn.dilate(topi.transpose(kernel, filters), [1, 1, *gaps])
        plain = topi.transpose(data, image)
        done = getattr(topi.nn, loops)(plain, wide, strides, padding, call.ty.dtype, more, int(attrs.groups))
        return topi.transpose(done, result)

    return turned
