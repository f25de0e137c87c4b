"""TensorFlow Lite files written by hand: small enough to tune in seconds, and checkable with NumPy.

Needs the package `tflite`, which knows the file format.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
_TYPES = {"float32": 0, "float16": 1, "int32": 2, "bool": 6, "complex64": 8, "resource": 13}
SIZE, CHANNELS, FILTERS, CLASSES = 8, 4, 8, 5


@dataclass(slots=True)
class FlatModel:
    """A flatbuffer under construction: tensors, operators, and the bytes of constants."""

    builder: Any
    buffers: list[int] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    operators: list[int] = field(default_factory=list)
    graphs: list[int] = field(default_factory=list)

    def table(self, kind: str, **values: Any) -> int:
        """A table of the schema with these fields; those left out keep their defaults."""
        import tflite

        getattr(tflite, f"{kind}Start")(self.builder)
        for name, value in values.items():
            getattr(tflite, f"{kind}Add{name}")(self.builder, value)
        return int(getattr(tflite, f"{kind}End")(self.builder))

    def offsets(self, tables: Sequence[int]) -> int:
        self.builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            self.builder.PrependUOffsetTRelative(table)
        return int(self.builder.EndVector())

    def numbers(self, values: Sequence[int]) -> int:
        return int(self.builder.CreateNumpyVector(np.asarray(values, dtype=np.int32)))

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        value: NDArray[Any] | None = None,
        signature: Sequence[int] | None = None,
        dtype: str = "float32",
    ) -> int:
        """Add a tensor, constant if it has a value, whose type then counts; returns its number."""
        data = {} if value is None else {"Data": self.builder.CreateByteVector(value.tobytes())}
        self.buffers.append(self.table("Buffer", **data))
        more = {} if signature is None else {"ShapeSignature": self.numbers(signature)}
        more["Type"] = _TYPES[dtype if value is None else str(value.dtype)]
        named, shaped = self.builder.CreateString(name), self.numbers(shape)
        self.tensors.append(
            self.table("Tensor", Name=named, Shape=shaped, Buffer=len(self.buffers) - 1, **more)
        )
        return len(self.tensors) - 1

    def operator(
        self,
        kind: str,
        inputs: Sequence[int],
        output: int | Sequence[int],
        options: str = "",
        custom: str = "",
        **values: Any,
    ) -> None:
        """Add an operator with its options."""
        import tflite

        code = getattr(tflite.BuiltinOperator, kind)
        named = {"CustomCode": self.builder.CreateString(custom)} if custom else {}
        self.codes.append(
            self.table("OperatorCode", DeprecatedBuiltinCode=min(code, 127), BuiltinCode=code, **named)
        )
        more: dict[str, Any] = {}
        if options:
            more["BuiltinOptions"] = self.table(options, **values)
            more["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, options)
        ins, outs = self.numbers(inputs), self.numbers([output] if isinstance(output, int) else output)
        self.operators.append(
            self.table("Operator", OpcodeIndex=len(self.codes) - 1, Inputs=ins, Outputs=outs, **more)
        )

    def graph(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """All tensors and operators so far are a graph; another one begins. The first is the model."""
        ins, outs = self.numbers(inputs), self.numbers(outputs)
        tensors, operators = self.offsets(self.tensors), self.offsets(self.operators)
        self.graphs.append(
            self.table("SubGraph", Inputs=ins, Outputs=outs, Tensors=tensors, Operators=operators)
        )
        self.tensors, self.operators = [], []

    def finished(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The whole file, with the last graph."""
        self.graph(inputs, outputs)
        codes, graphs = self.offsets(self.codes), self.offsets(self.graphs)
        buffers = self.offsets(self.buffers)
        root = self.table("Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers)
        self.builder.Finish(root, file_identifier=b"TFL3")
        return bytes(self.builder.Output())


def write_tflite(path: Path, *, batch: int = 1, open_batch: bool = False) -> Callable[[Values], Values]:
    """Write a 3×3 convolution with ReLU, a maximum pool and a dense layer; returns what it computes."""
    random = np.random.default_rng(0)
    kernel = random.normal(size=(FILTERS, 3, 3, CHANNELS)).astype("float32")
    bias = random.normal(size=FILTERS).astype("float32")
    dense = random.normal(size=(CLASSES, FILTERS * SIZE * SIZE // 4)).astype("float32")
    path.write_bytes(_network(kernel, bias, dense, batch, open_batch))
    return lambda x: _computed(x, kernel, bias, dense)


def write_unknown_tflite(path: Path, custom: str = "") -> Path:
    """A graph with an operator that TVM does not import, or with a custom one of this name."""
    import flatbuffers

    flat = FlatModel(flatbuffers.Builder(1024))
    flat.buffers.append(flat.table("Buffer"))
    x, y = flat.tensor("x", (1, 4)), flat.tensor("hashed", (1, 4))
    flat.operator("CUSTOM" if custom else "LSH_PROJECTION", [x], y, custom=custom)
    path.write_bytes(flat.finished([x], [y]))
    return path


def write_hashing_tflite(path: Path) -> Path:
    """A dense layer, the input projected to bits, which TVM does not import, and the sum of both."""
    import flatbuffers
    import tflite

    random = np.random.default_rng(0)
    flat = FlatModel(flatbuffers.Builder(4096))
    flat.buffers.append(flat.table("Buffer"))
    x, seen = flat.tensor("x", (2, 4)), flat.tensor("seen", (2, 6))
    matrix = flat.tensor("matrix", (6, 4), random.normal(size=(6, 4)).astype("float32"))
    flat.operator("FULLY_CONNECTED", [x, matrix], seen, "FullyConnectedOptions")
    seeds = flat.tensor("seeds", (6, 1), random.normal(size=(6, 1)).astype("float32"))
    bits = flat.tensor("bits", (6,), dtype="int32")
    dense = tflite.LSHProjectionType.DENSE
    flat.operator("LSH_PROJECTION", [seeds, x], bits, "LSHProjectionOptions", Type=dense)
    numbers, y = flat.tensor("numbers", (6,)), flat.tensor("y", (2, 6))
    flat.operator("CAST", [bits], numbers, "CastOptions", InDataType=_TYPES["int32"], OutDataType=0)
    flat.operator("ADD", [seen, numbers], y, "AddOptions")
    path.write_bytes(flat.finished([x], [y]))
    return path


def write_derived_tflite(path: Path) -> Callable[[Values], Values]:
    """Weights kept in half precision, and a shape computed from the input's; returns what it computes."""
    import flatbuffers

    random = np.random.default_rng(0)
    half = random.normal(size=(6, 4)).astype("float16")
    flat = FlatModel(flatbuffers.Builder(4096))
    flat.buffers.append(flat.table("Buffer"))
    x, matrix = flat.tensor("x", (2, 3, 4)), flat.tensor("matrix", (6, 4))
    flat.operator("DEQUANTIZE", [flat.tensor("half", (6, 4), half)], matrix)
    shape, first = flat.tensor("shape", (3,), dtype="int32"), flat.tensor("first", (), dtype="int32")
    flat.operator("SHAPE", [x], shape, "ShapeOptions", OutType=_TYPES["int32"])
    numbers = [flat.tensor(f"n{n}", (1,), np.array([n], dtype=np.int32)) for n in range(3)]
    flat.operator(
        "STRIDED_SLICE",
        [shape, numbers[0], numbers[1], numbers[1]],
        first,
        "StridedSliceOptions",
        ShrinkAxisMask=1,
    )
    rest = [flat.tensor(f"s{n}", (), np.array(n, dtype=np.int32)) for n in (3, 4)]
    wanted = flat.tensor("wanted", (3,), dtype="int32")
    flat.operator("PACK", [first, *rest], wanted, "PackOptions", ValuesCount=3)
    again, product = flat.tensor("again", (2, 3, 4)), flat.tensor("product", (6, 6))
    flat.operator("RESHAPE", [x, wanted], again)
    line = flat.tensor("line", (6, 4))
    flat.operator("RESHAPE", [again, flat.tensor("flat", (2,), np.array([6, 4], dtype=np.int32))], line)
    flat.operator("FULLY_CONNECTED", [line, matrix], product, "FullyConnectedOptions")
    y = flat.tensor("y", (6, 6, 1))
    flat.operator("EXPAND_DIMS", [product, numbers[2]], y, "ExpandDimsOptions")
    path.write_bytes(flat.finished([x], [y]))
    return lambda values: (values.reshape(6, 4) @ half.astype("float32").T)[..., None]


def write_spectral_tflite(path: Path) -> Callable[[Values], Values]:
    """Frames of a signal, some of them, and the real parts of their spectra; returns what it computes.

    How many frames there are is computed from the input's shape; as in files that TensorFlow converted, the
    shapes of what follows say one. A number's own shape has no elements.
    """
    import flatbuffers

    flat = FlatModel(flatbuffers.Builder(4096))
    flat.buffers.append(flat.table("Buffer"))
    x, shape = flat.tensor("x", (1, 512)), flat.tensor("shape", (2,), dtype="int32")
    flat.operator("SHAPE", [x], shape, "ShapeOptions", OutType=_TYPES["int32"])
    one, two = (flat.tensor(f"n{n}", (1,), np.array([n], dtype=np.int32)) for n in (1, 2))
    last, size = flat.tensor("last", (1,), dtype="int32"), flat.tensor("size", (), dtype="int32")
    flat.operator("STRIDED_SLICE", [shape, one, two, one], last, "StridedSliceOptions")
    flat.operator("RESHAPE", [last, flat.tensor("none", (0,), dtype="int32")], size)
    length, count = (
        flat.tensor("length", (), np.array(128, dtype=np.int32)),
        flat.tensor("n", (), dtype="int32"),
    )
    flat.operator("FLOOR_DIV", [size, length], count)
    wanted, frames = flat.tensor("wanted", (2,), dtype="int32"), flat.tensor("frames", (1, 128))
    flat.operator("PACK", [count, length], wanted, "PackOptions", ValuesCount=2)
    flat.operator("RESHAPE", [x, wanted], frames)
    some, picked = (
        flat.tensor("some", (2,), np.array([3, 1], dtype=np.int32)),
        flat.tensor("picked", (2, 128)),
    )
    flat.operator("GATHER", [frames, some], picked, "GatherOptions")
    lines, pairs = flat.tensor("lines", (2, 1, 128)), flat.tensor("pairs", (2, 1, 65), dtype="complex64")
    flat.operator("EXPAND_DIMS", [picked, one], lines, "ExpandDimsOptions")
    sizes = flat.tensor("sizes", (2,), np.array([1, 128], dtype=np.int32))
    flat.operator("RFFT2D", [lines, sizes], pairs, "Rfft2dOptions")
    flat_pairs, y = flat.tensor("flat", (2, 65), dtype="complex64"), flat.tensor("y", (2, 65))
    flat.operator("SQUEEZE", [pairs], flat_pairs, "SqueezeOptions")
    flat.operator("CAST", [flat_pairs], y, "CastOptions")
    path.write_bytes(flat.finished([x], [y]))
    return lambda values: np.fft.rfft(values.reshape(4, 128)[[3, 1]]).real.astype("float32")


def _network(kernel: Values, bias: Values, dense: Values, batch: int, open_batch: bool) -> bytes:
    import flatbuffers
    import tflite

    flat = FlatModel(flatbuffers.Builder(1 << 16))
    flat.buffers.append(flat.table("Buffer"))
    image = (batch, SIZE, SIZE, CHANNELS)
    x = flat.tensor("x", image, signature=(-1, *image[1:]) if open_batch else None)
    weights = [flat.tensor("kernel", kernel.shape, kernel), flat.tensor("bias", bias.shape, bias)]
    seen = flat.tensor("seen", (batch, SIZE, SIZE, FILTERS))
    flat.operator(
        "CONV_2D", [x, *weights], seen, "Conv2DOptions",
        Padding=tflite.Padding.SAME, StrideW=1, StrideH=1, DilationWFactor=1, DilationHFactor=1,
        FusedActivationFunction=tflite.ActivationFunctionType.RELU,
    )  # fmt: skip
    pooled = flat.tensor("pooled", (batch, SIZE // 2, SIZE // 2, FILTERS))
    flat.operator(
        "MAX_POOL_2D", [seen], pooled, "Pool2DOptions",
        Padding=tflite.Padding.VALID, StrideW=2, StrideH=2, FilterWidth=2, FilterHeight=2,
    )  # fmt: skip
    wanted = flat.tensor("wanted", (2,), np.array([-1, dense.shape[1]], dtype=np.int32))
    line = flat.tensor("line", (batch, dense.shape[1]))
    flat.operator("RESHAPE", [pooled, wanted], line)
    matrix, y = flat.tensor("dense", dense.shape, dense), flat.tensor("y", (batch, CLASSES))
    flat.operator("FULLY_CONNECTED", [line, matrix], y, "FullyConnectedOptions")
    return flat.finished([x], [y])


def _computed(x: Values, kernel: Values, bias: Values, dense: Values) -> Values:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    seen = np.maximum(np.einsum("nhwcij,fijc->nhwf", windows, kernel) + bias, 0)
    pooled = seen.reshape(len(x), SIZE // 2, 2, SIZE // 2, 2, FILTERS).max(axis=(2, 4))
    return np.asarray(pooled.reshape(len(x), -1) @ dense.T, dtype=np.float32)
