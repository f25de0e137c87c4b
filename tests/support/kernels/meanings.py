"""Meanings computed by NumPy in float64, to hold kernels against; and a short way to write them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType

Array = NDArray[Any]


class MeaningWriter:
    """Collects inputs and steps; every method returns the value's number."""

    def __init__(self) -> None:
        self._inputs: list[TensorType] = []
        self._steps: list[MeaningStep] = []

    def input(self, shape: Sequence[int], dtype: str = "float16") -> int:
        """An input; all inputs come before all steps."""
        assert not self._steps, "inputs come first"
        self._inputs.append(TensorType(shape=tuple(shape), dtype=dtype))
        return len(self._inputs) - 1

    def step(
        self,
        name: str,
        operands: Sequence[int],
        shape: Sequence[int],
        dtype: str = "float16",
        **attributes: Any,
    ) -> int:
        """A step `relax.NAME`, or of a name that is whole."""
        result = TensorType(shape=tuple(shape), dtype=dtype)
        operator = name if name.startswith("tuneloom.") else f"relax.{name}"
        self._steps.append(
            MeaningStep(operator=operator, operands=tuple(operands), attributes=attributes, result=result)
        )
        return len(self._inputs) + len(self._steps) - 1

    def const(self, value: float, dtype: str = "float16") -> int:
        """A scalar constant."""
        return self.step("const", (), (), dtype, value=value)

    def meaning(self, *outputs: int) -> Meaning:
        """The finished meaning."""
        return Meaning(inputs=tuple(self._inputs), steps=tuple(self._steps), outputs=outputs)


def numpy_type(dtype: str) -> Any:
    """The NumPy type of a tensor's numbers."""
    return np.dtype(getattr(ml_dtypes, dtype, None) or dtype)


def random_inputs(meaning: Meaning, seed: int = 0) -> list[Array]:
    """Random numbers about 0 for every input."""
    random = np.random.default_rng(seed)
    return [_random(random, each) for each in meaning.inputs]


def _random(random: np.random.Generator, tensor: TensorType) -> Array:
    if tensor.dtype == "bool":
        return random.random(tensor.shape) < 0.7
    if "int" in tensor.dtype:
        return random.integers(-5, 6, tensor.shape).astype(tensor.dtype)
    return random.standard_normal(tensor.shape).astype(numpy_type(tensor.dtype))


def computed(meaning: Meaning, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a meaning, floating point computed in float64 and not rounded between steps."""
    values: list[Any] = [_wide(each) for each in inputs]
    for step in meaning.steps:
        function = _FUNCTIONS[step.operator]
        value = np.asarray(function(step, *(values[each] for each in step.operands)))
        assert value.shape == step.result.shape, f"{step.operator}: {value.shape}, not {step.result.shape}"
        values.append(value)
    return [values[each] for each in meaning.outputs]


def _wide(array: Array) -> Array:
    return array if array.dtype == bool or array.dtype.kind in "iu" else array.astype(np.float64)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda step, *values: function(*values)


def _axis(step: MeaningStep) -> tuple[int, ...] | None:
    axis = step.attributes.get("axis")
    return None if axis is None else tuple(np.atleast_1d(axis).tolist())


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda step, x: function(
        x, axis=_axis(step), keepdims=bool(step.attributes.get("keepdims", False))
    )


def _softmax(step: MeaningStep, x: Array) -> Array:
    axis = step.attributes.get("axis", -1)
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(raised / raised.sum(axis=axis, keepdims=True))


def _layer_norm(step: MeaningStep, x: Array, gamma: Array, beta: Array) -> Array:
    axes = tuple(step.attributes["axes"])
    middle = x - x.mean(axis=axes, keepdims=True)
    scaled = middle / np.sqrt((middle**2).mean(axis=axes, keepdims=True) + step.attributes["epsilon"])
    return np.asarray(scaled * gamma + beta)


def _rms_norm(step: MeaningStep, x: Array, weight: Array) -> Array:
    axes = tuple(step.attributes["axes"])
    mean = (x**2).mean(axis=axes, keepdims=True)
    return np.asarray(x / np.sqrt(mean + step.attributes["epsilon"]) * weight)


def _attention(step: MeaningStep, q: Array, k: Array, v: Array, bias: Array | None = None) -> Array:
    repeat = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeat, axis=2), np.repeat(v, repeat, axis=2)
    scale = step.attributes.get("scale") or q.shape[-1] ** -0.5
    scores = np.einsum("bihd,bjhd->bhij", q, k) * scale
    if bias is not None:
        scores = scores + bias
    causal = step.attributes.get("causal_mask")
    if causal:
        shift = k.shape[1] - q.shape[1] if causal == "BottomRight" else 0
        scores = np.where(np.tri(q.shape[1], k.shape[1], shift, dtype=bool), scores, -np.inf)
    raised = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))  # all may be hidden
    total = np.maximum(raised.sum(-1, keepdims=True), 1e-300)
    return np.asarray(np.einsum("bhij,bjhe->bihe", raised / total, v))


def _windows(step: MeaningStep, x: Array, size: Sequence[int], fill: float) -> Array:
    """Windows of an image in NHWC: batch, rows, columns, channels, height, width."""
    attributes: Mapping[str, Any] = step.attributes
    top, left, bottom, right = attributes["padding"]
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    dilation = attributes.get("dilation", (1, 1))
    reach = [(extent - 1) * gap + 1 for extent, gap in zip(size, dilation, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(1, 2))
    strides = attributes["strides"]
    return seen[:, :: strides[0], :: strides[1], :, :: dilation[0], :: dilation[1]]


def _to_nhwc(x: Array, layout: str) -> Array:
    return x.transpose([layout.index(axis) for axis in "NHWC"])


def _from_nhwc(x: Array, layout: str) -> Array:
    return x.transpose(["NHWC".index(axis) for axis in layout])


def _conv2d(step: MeaningStep, x: Array, weight: Array) -> Array:
    attributes = step.attributes
    image = _to_nhwc(x, attributes["data_layout"])
    kernel = weight.transpose([attributes["kernel_layout"].index(axis) for axis in "OHWI"])
    groups = attributes["groups"]
    seen = _windows(step, image, kernel.shape[1:3], 0.0)
    parts = [
        np.einsum("nhwcrs,orsc->nhwo", part, filters)
        for part, filters in zip(np.split(seen, groups, axis=3), np.split(kernel, groups), strict=True)
    ]
    return _from_nhwc(
        np.concatenate(parts, axis=3), attributes.get("out_layout") or attributes["data_layout"]
    )


def _conv1d(step: MeaningStep, x: Array, weight: Array) -> Array:
    """As a convolution of images with one row."""
    before, behind = step.attributes["padding"]
    attributes = {
        **step.attributes, "padding": (0, before, 0, behind), "strides": (1, *step.attributes["strides"]),
        "dilation": (1, *step.attributes["dilation"]), "data_layout": "NHWC", "kernel_layout": "OHWI",
        "out_layout": "NHWC",
    }  # fmt: skip
    layout, filters = step.attributes["data_layout"], step.attributes["kernel_layout"]
    image = x.transpose([layout.index(axis) for axis in "NWC"])[:, None]
    window = weight.transpose([filters.index(axis) for axis in "OWI"])[:, None]
    done = _conv2d(replace(step, attributes=attributes), image, window)[:, 0]
    return np.asarray(done.transpose(["NWC".index(axis) for axis in layout]))


def _conv2d_transpose(step: MeaningStep, x: Array, weight: Array) -> Array:
    attributes: Mapping[str, Any] = step.attributes
    image = _to_nhwc(x, attributes["data_layout"])
    filters = weight.transpose([attributes["kernel_layout"].index(axis) for axis in "IOHW"])
    (high, wide), (top, left, bottom, right) = attributes["strides"], attributes["padding"]
    number, rows, columns, _ = image.shape
    _, channels, height, width = filters.shape
    more_high, more_wide = attributes["output_padding"]
    shape = ((rows - 1) * high + height + more_high, (columns - 1) * wide + width + more_wide)
    result = np.zeros((number, *shape, channels))
    for y in range(height):
        for x_ in range(width):
            part = result[:, y : y + rows * high : high, x_ : x_ + columns * wide : wide]
            part += np.einsum("nhwi,io->nhwo", image, filters[:, :, y, x_])
    return _from_nhwc(result[:, top : shape[0] - bottom, left : shape[1] - right], attributes["data_layout"])


def _pool(reduce: Callable[..., Any], fill: float) -> Callable[..., Any]:
    def pool(step: MeaningStep, x: Array) -> Array:
        layout = step.attributes["layout"]
        size = step.attributes["pool_size"]
        result = reduce(_windows(step, _to_nhwc(x, layout), size, fill), axis=(4, 5))
        if reduce is np.sum:
            counted = np.ones_like(_to_nhwc(x, layout)) if not step.attributes["count_include_pad"] else None
            count = (
                size[0] * size[1] if counted is None else _windows(step, counted, size, 0.0).sum(axis=(4, 5))
            )
            result = result / count
        return _from_nhwc(result, layout)

    return pool


def _sliced(step: MeaningStep, x: Array) -> Array:
    where = [slice(None)] * x.ndim
    attributes = step.attributes
    strides = attributes.get("strides") or [1] * len(attributes["axes"])
    for axis, begin, end, stride in zip(
        attributes["axes"], attributes["begin"], attributes["end"], strides, strict=True
    ):
        where[axis] = slice(begin, end, stride)
    return x[tuple(where)]


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


_SAME_NAME = (
    "add subtract multiply divide maximum minimum negative square power exp log sqrt tanh sin cos floor ceil "
    "where less greater equal isnan less_equal greater_equal not_equal logical_and logical_or logical_not abs"
)


def _lstm(step: MeaningStep, x: Array, r: Array, h: Array, c: Array, lengths: Array, _p: Array) -> Array:
    """Gates: input, output, forget, cell."""

    def cell(gates: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        into, out, kept, fresh = np.split(gates + state[0] @ _rows(r).T, 4, axis=1)
        memory = _sigmoid(kept) * state[1] + _sigmoid(into) * np.tanh(fresh)
        return _sigmoid(out) * np.tanh(memory), memory

    return _sequence(step, x, (h, c), lengths, cell)


def _gru(step: MeaningStep, x: Array, r: Array, h: Array, lengths: Array, bias: Array) -> Array:
    """Gates: update, reset, hidden; the reset applies to the product."""

    def cell(gates: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        given, products = np.split(gates, 3, axis=1), np.split(state[0] @ _rows(r).T, 3, axis=1)
        update, reset = (_sigmoid(given[n] + products[n]) for n in range(2))
        fresh = np.tanh(given[2] + reset * (products[2] + bias))
        return (fresh + update * (state[0] - fresh),)

    return _sequence(step, x, (h,), lengths, cell)


def _sequence(
    step: MeaningStep,
    x: Array,
    state: tuple[Array, ...],
    lengths: Array,
    cell: Callable[..., tuple[Array, ...]],
) -> Array:
    """All states, or one of the last."""
    steps, batch, _ = x.shape
    every = np.zeros((steps, *state[0].shape))
    for t in range(steps):
        for b in range(batch):
            if t >= lengths[b]:
                continue
            place = lengths[b] - 1 - t if step.attributes["backwards"] else t
            fresh = cell(x[place, b][None], tuple(one[b][None] for one in state))
            state = tuple(_put(one, b, new) for one, new in zip(state, fresh, strict=True))
            every[place, b] = fresh[0][0]
    return np.asarray((every, *state)[step.attributes["result"]])


def _put(values: Array, row: int, new: Array) -> Array:
    changed = values.copy()
    changed[row] = new[0]
    return changed


def _rows(packed: Array) -> Array:
    """A matrix that was packed in blocks of outputs."""
    return packed.transpose(0, 2, 1).reshape(-1, packed.shape[1])


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "relax.const": lambda step: step.attributes["value"],
    "relax.matmul": _plain(lambda a, b: np.matmul(_exact(a), _exact(b))),
    **{f"relax.{name}": _plain(getattr(np, name)) for name in _SAME_NAME.split()},
    "relax.rsqrt": _plain(lambda x: 1 / np.sqrt(x)),
    "relax.erf": _plain(erf),
    "relax.sigmoid": _plain(_sigmoid),
    "relax.nn.relu": _plain(lambda x: np.maximum(x, 0)),
    "relax.nn.gelu": _plain(lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2)))),
    "relax.nn.gelu_tanh": _plain(_gelu_tanh),
    "relax.nn.silu": _plain(lambda x: x * _sigmoid(x)),
    "relax.nn.leakyrelu": lambda step, x: np.where(x > 0, x, x * step.attributes["alpha"]),
    "relax.nn.softplus": lambda step, x: (
        np.log1p(np.exp(x * step.attributes["beta"])) / step.attributes["beta"]
    ),
    "relax.clip": lambda step, x: np.clip(x, step.attributes["min"], step.attributes["max"]),
    "relax.astype": lambda step, x: _wide(x.astype(numpy_type(step.result.dtype))),
    **dict.fromkeys(
        ("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims"),
        lambda step, x: x.reshape(step.result.shape),
    ),
    "relax.permute_dims": lambda step, x: x.transpose(step.attributes.get("axes")),
    "relax.broadcast_to": lambda step, x: np.broadcast_to(x, step.result.shape),
    "relax.strided_slice": _sliced,
    "relax.concat": lambda step, *parts: np.concatenate(parts, step.attributes["axis"]),
    "relax.take": lambda step, x, at: np.take(x, at, step.attributes["axis"], mode="clip"),
    "relax.sum": _reduction(np.sum),
    "relax.mean": _reduction(np.mean),
    "relax.max": _reduction(np.max),
    "relax.min": _reduction(np.min),
    "relax.nn.softmax": _softmax,
    "relax.nn.log_softmax": lambda step, x: np.log(_softmax(step, x)),
    "relax.nn.layer_norm": _layer_norm,
    "relax.nn.rms_norm": _rms_norm,
    "relax.nn.attention": _attention,
    "relax.nn.attention_bias": _attention,
    "tuneloom.lstm": _lstm,
    "tuneloom.gru": _gru,
    "relax.nn.conv1d": _conv1d,
    "relax.nn.conv2d": _conv2d,
    "relax.nn.conv2d_transpose": _conv2d_transpose,
    "relax.nn.max_pool2d": _pool(np.max, -np.inf),
    "relax.nn.avg_pool2d": _pool(np.sum, 0.0),
}


def _exact(x: Array) -> Array:
    return x.astype(np.int64) if x.dtype.kind in "iu" else x
