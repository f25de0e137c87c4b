"""Transposed convolutions with channels last, which TVM imports but has no loops for."""

from typing import Any

from tuneloom.compiler.lazy import relax


def channels_first(module: Any) -> Any:
    """The module with these convolutions between two changes of layout; all else as it was."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Turner(PyExprMutator):  # type: ignore[misc]
        """Turns the data of a transposed convolution, and its result back."""

        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            name = getattr(call.op, "name", "")
            if name != "relax.nn.conv2d_transpose" or call.attrs.data_layout != "NHWC":
                return call
            data = self.builder_.emit(relax.op.permute_dims(call.args[0], (0, 3, 1, 2)))
            product = self.builder_.emit(_turned(data, call.args[1], call.attrs))
            return relax.op.permute_dims(product, (0, 2, 3, 1))

    changed = type(module)(dict(module.functions.items()), attrs=module.attrs)
    changed["main"] = Turner(changed).visit_expr(module["main"])
    return changed


def _turned(data: Any, weights: Any, attrs: Any) -> Any:
    lists = ("strides", "padding", "output_padding", "dilation")
    return relax.op.nn.conv2d_transpose(
        data,
        weights,
        **{name: [int(size) for size in getattr(attrs, name)] for name in lists},
        groups=int(attrs.groups),
        data_layout="NCHW",
        kernel_layout=attrs.kernel_layout,
    )
