"""TVM's importer of PyTorch programs, with converters of our own; import it where a program is read.

TVM's module loads torch, which takes seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from tuneloom.compiler.lazy import relax, topi, tvm
from tuneloom.compiler.number_types import numpy_type
from tuneloom.compiler.uneven_windows import are_uneven, pooled
from tuneloom.tuners.tvm.importing.torch import resampling
from tuneloom.tuners.tvm.importing.torch.indexing import by_indices, select
from tuneloom.tuners.tvm.importing.torch.lacking import CONVERTERS, Converter
from tuneloom.tuners.tvm.importing.torch.schemas import arguments_of
from tuneloom.tuners.tvm.importing.torch.types import computed_in, require_shape, torch_type

Usual = Callable[[Any], Any]
"""How TVM converts a node."""


def _is_open(value: Any) -> bool:
    """Whether a tensor has dimensions that are not known."""
    return not all(hasattr(extent, "value") for extent in value.ty.shape.values)


def _require_maxima_alone(node: Any) -> None:
    """Raise ValueError if a program asks a pool where the maxima are, for which TVM has no operator."""
    if any(user.args[1] != 0 for user in node.users):
        raise ValueError(f"where the maxima of {node.name} are is not imported")


class TypedImporter(ExportedProgramImporter):  # type: ignore[misc]
    """Converts a node in the types that PyTorch uses for it."""

    def create_convert_map(self) -> dict[str, Callable[[Any], Any]]:
        own = {
            "floor_divide.default": self._floor_divide,
            "adaptive_max_pool2d.default": self._adaptive_max_pool,
            "scatter_add.default": self._scatter_add,
        }
        theirs = super().create_convert_map()
        own |= {name: partial(self._converted, one, theirs.get(name)) for name, one in CONVERTERS.items()}
        own |= {name: partial(self._resampled, theirs.get(name)) for name in resampling.NAMES}
        own["mul.Tensor"] = partial(self._multiply, theirs["mul.Tensor"])
        for name, operator in (("eq.Scalar", relax.op.equal), ("ne.Scalar", relax.op.not_equal)):
            own[name] = partial(self._compare, theirs[name], operator)
        table = {**theirs, **own}
        return {name: self._typed(name.partition(".")[0], convert) for name, convert in table.items()}

    def _converted(self, convert: Converter, usual: Usual | None, node: Any) -> Any:
        values = self._retrieve_args(list(arguments_of(node).values()))
        if usual is not None and _is_open(values[0]):
            return usual(node)
        return convert(self.block_builder.emit, *values)

    def _resampled(self, usual: Usual | None, node: Any) -> Any:
        x = self.env[node.args[0]]
        if usual is not None and _is_open(x):
            return usual(node)
        return resampling.resampled(self.block_builder.emit, x, node)

    def _multiply(self, usual: Usual, node: Any) -> Any:
        """TVM does not multiply truth values."""
        if torch_type(node) != "bool":
            return usual(node)
        return self.block_builder.emit(relax.op.logical_and(*self.retrieve_args(node)))

    def _compare(self, usual: Usual, operator: Callable[[Any, Any], Any], node: Any) -> Any:
        """TVM does not compare truth values with numbers."""
        value, number = self.retrieve_args(node)
        if str(value.ty.dtype) != "bool":
            return usual(node)
        return self.block_builder.emit(operator(self._as(value, "float32"), relax.const(number, "float32")))

    def _max_pool2d_with_indices(self, node: Any) -> Any:
        _require_maxima_alone(node)
        return super()._max_pool2d_with_indices(node)

    @staticmethod
    def _convert_pytorch_tensor_to_tvm(tensor_value: Any) -> Any:
        """A parameter on the CPU, wherever it was; PyTorch gives NumPy nothing in bfloat16."""
        here = tensor_value.detach().to_dense().cpu().contiguous()
        if here.dtype is torch.bfloat16:
            return tvm.runtime.tensor(here.view(torch.int16).numpy().view(numpy_type("bfloat16")))
        return ExportedProgramImporter._convert_pytorch_tensor_to_tvm(here)

    def _typed(self, kind: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def typed(node: Any) -> Any:
            wanted = torch_type(node)
            if wanted is None:
                return convert(node)
            with self._with_values(self._operands_as(node, computed_in(kind, wanted))):
                result = self._as(convert(node), wanted)
            require_shape(kind, result, node.meta["val"])
            return result

        return typed

    def _cat(self, node: Any) -> Any:
        """PyTorch skips operands of shape (0,), with which caches begin."""
        parts = [one for one in node.args[0] if tuple(one.meta["val"].shape) != (0,)]
        if len(parts) == 1:
            return self.env[parts[0]]
        axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        return self.block_builder.emit(relax.op.concat([self.env[one] for one in parts], axis=axis))

    def _select(self, node: Any) -> Any:
        x, axis, index = self.retrieve_args(node)
        return select(self.block_builder.emit, x, axis, index)

    def _index_tensor(self, node: Any) -> Any:
        data, indices = self.retrieve_args(node)
        return by_indices(self.block_builder.emit, data, indices)

    def _grid_sampler_2d(self, node: Any) -> Any:
        """TVM's coordinates come before the places, PyTorch's behind them."""
        grid = self.env[node.args[1]]
        turned = self.block_builder.emit(relax.op.permute_dims(grid, [0, 3, 1, 2]))
        with self._with_values({node.args[1]: turned}):
            return super()._grid_sampler_2d(node)

    def _adaptive_max_pool(self, node: Any) -> Any:
        """The maxima; nothing in place of where they are."""
        x, size = self.env[node.args[0]], list(node.args[1])
        _require_maxima_alone(node)
        if int(x.ty.ndim) != 4:
            raise ValueError("adaptive_max_pool2d is imported for four dimensions only")
        if are_uneven(list(x.ty.shape)[2:], size):
            return self.block_builder.emit_te(pooled, x, (2, 3), size, "max"), None
        return self.block_builder.emit_te(topi.nn.adaptive_pool, x, size, "max", "NCHW"), None

    def _scatter_add(self, node: Any) -> Any:
        """PyTorch ignores values beyond the shape of the indices."""
        x, axis, index, values = self.retrieve_args(node)
        shape = [int(extent) for extent in index.ty.shape]
        if shape != [int(extent) for extent in values.ty.shape]:
            axes = list(range(len(shape)))
            values = self.block_builder.emit(relax.op.strided_slice(values, axes, [0] * len(shape), shape))
        return self.block_builder.emit(relax.op.scatter_elements(x, index, values, axis, "add"))

    def _div(self, node: Any) -> Any:
        floor = node.kwargs.get("rounding_mode") == "floor"
        return self._floor_divide(node) if floor else super()._div(node)

    def _floor_divide(self, node: Any) -> Any:
        """TVM's own takes a plain number for a whole one."""
        kind = torch_type(node)
        operands = [
            value if isinstance(value, relax.Expr) else relax.const(value, kind)
            for value in self.retrieve_args(node)
        ]
        return self.block_builder.emit(relax.op.floor_divide(*operands))

    @contextmanager
    def _with_values(self, values: dict[Any, Any]) -> Iterator[None]:
        """Let a node see other values of its operands while it is converted."""
        found = {one: self.env[one] for one in values}
        self.env.update(values)
        try:
            yield
        finally:
            self.env.update(found)

    def _operands_as(self, node: Any, kind: str | None) -> dict[Any, Any]:
        found = {one: self.env[one] for one in node.all_input_nodes if one in self.env}
        return {} if kind is None else {one: self._as(value, kind) for one, value in found.items()}

    def _as(self, value: Any, kind: str) -> Any:
        tensor = isinstance(getattr(value, "ty", None), relax.TensorType)
        if not tensor or str(value.ty.dtype) == kind:
            return value
        return self.block_builder.emit(relax.op.astype(value, kind))
