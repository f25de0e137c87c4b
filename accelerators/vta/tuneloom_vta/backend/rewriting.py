"""Models laid out as for the CPU, with convolutions and products of whole numbers left to the accelerator.

Three kernels take the place of one: data become blocks of the accelerator, padded with their zero point;
the accelerator sums; bytes of sums become the floats that the CPU's own kernel would have made.
"""

import json
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.blocking import blocking_passes
from tuneloom.backends.cpu.layouts.kernels.dots import HALF, Scale
from tuneloom.backends.cpu.layouts.rewriter import Rewriter
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom_vta.backend import computing
from tuneloom_vta.backend.implementer import WORKLOAD
from tuneloom_vta.backend.target import NO_DOTS, VtaTarget
from tuneloom_vta.configuration import Configuration
from tuneloom_vta.schedules.workloads import Convolution

NAME = "vta_conv2d"
"""How kernels of the accelerator are called."""
_OPAQUE = 8


def passes(target: VtaTarget, dtype: str) -> list[Any]:
    """The passes that lay a model out, with products in this type."""
    host = target if target.dots is not None else replace(target, dots=NO_DOTS)
    return blocking_passes(host, dtype, partial(VtaRewriter, target.accelerator))  # type: ignore[arg-type]


class VtaRewriter(Rewriter):
    """Emits three kernels for what the accelerator computes, and the CPU's for the rest."""

    def __init__(self, accelerator: Configuration, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._accelerator = accelerator

    def conv2d_of_wholes(self, data: Any, weight: Any, last: list[Any], window: Window, scale: Scale) -> Any:
        fits = window.kernel[0] == window.kernel[1] and window.stride[0] == window.stride[1]
        batch, _, height, width, lanes = (int(extent) for extent in data.ty.shape.values)
        if not fits or window.dilation != (1, 1) or batch != 1:
            return super().conv2d_of_wholes(data, weight, last, window, scale)
        packed = self.kernel(
            computing.blocked_data,
            [data],
            "to_vta",
            channels=weight.shape[1],
            window=window,
            scale=scale,
            block=self._accelerator.block_in,
        )
        top, left, bottom, right = window.padding
        size = (height + top + bottom, width + left + right)
        planes = self._accelerated(packed, weight, size, window.stride[0])
        arguments = [planes, *last, *self._moved(weight, scale)]
        return self.kernel(
            computing.blocked_floats, arguments, "from_vta", channels=weight.shape[0], lanes=lanes
        )

    def product_of_wholes(self, data: Any, weight: Any, last: list[Any], panel: int, scale: Scale) -> Any:
        shape = tuple(int(extent) for extent in data.ty.shape.values)
        rows = int(np.prod(shape[:-1]))
        packed = self.kernel(
            computing.blocked_rows, [data], "to_vta", rows=rows, scale=scale, block=self._accelerator.block_in
        )
        planes = self._accelerated(packed, weight[:, :, None, None], (rows, 1), 1)
        arguments = [planes, *last, *self._moved(weight, scale)]
        return self.kernel(computing.row_floats, arguments, "from_vta", shape=(*shape[:-1], weight.shape[0]))

    def _accelerated(self, packed: Any, weight: Any, size: tuple[int, int], stride: int) -> Any:
        """The accelerator's own kernel: nothing is fused with it, and it says what it computes."""
        from tvm import relax

        accelerator = self._accelerator
        blocks = computing.packed_weight(weight, accelerator.block_in, accelerator.block_out)
        workload = Convolution(
            name="conv2d",
            height=size[0],
            width=size[1],
            kernel=weight.shape[2],
            stride=stride,
            sums=True,
            in_channels=blocks.shape[1] * accelerator.block_in,
            out_channels=blocks.shape[0] * accelerator.block_out,
        )
        make = partial(computing.planes_of_sums, stride=stride)
        call = self._builder.call_te(make, packed, relax.const(blocks), primfunc_name_hint=NAME)
        kernel = call.args[0]
        told = {WORKLOAD: json.dumps(asdict(workload), sort_keys=True), "op_pattern": _OPAQUE}
        self._builder.update_func(kernel, self._builder.get()[kernel].with_attrs(told))
        return self._builder.emit(call)

    def _moved(self, weight: Any, scale: Scale) -> list[Any]:
        """Where the CPU takes data without a sign: what moving them by 128 took from every sum."""
        from tvm import relax

        if scale.dtype == "int8":
            return []
        totals = HALF * weight.reshape(len(weight), -1).sum(axis=1, dtype=np.int32)
        return [relax.const(totals.astype(np.int32))]
