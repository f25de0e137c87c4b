"""Random data of a convolution in the accelerator's layout, and the results it must give."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tuneloom_vta.configuration import Configuration
from tuneloom_vta.schedules.workloads import Convolution

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """Inputs, weights and bias in blocks, as bytes of the accelerator's memory; results likewise."""

    inputs: bytes
    weights: bytes
    bias: bytes
    results: bytes


@lru_cache(maxsize=16)
def data_of(workload: Convolution, configuration: Configuration) -> Data:
    """The same random data every time; results are computed here, not by the accelerator."""
    rng = np.random.default_rng(7)
    shape = (configuration.batch, workload.in_channels, workload.height, workload.width)
    inputs = rng.integers(-128, 128, shape, dtype=np.int8)
    weights = rng.integers(
        -128,
        128,
        (workload.out_channels, workload.in_channels, workload.kernel, workload.kernel),
        dtype=np.int8,
    )
    bias = rng.integers(-32, 33, workload.out_channels, dtype=np.int32)
    sums = summed(workload, inputs, weights)
    whole = [sums >> 8 * plane for plane in range(workload.planes)]
    results = whole if workload.sums else [requantised(workload, sums, bias)]
    return Data(
        packed(inputs, configuration.block_in).tobytes(),
        _packed_weights(weights, configuration).tobytes(),
        np.repeat(bias.reshape(-1, 1, configuration.block_out), configuration.batch, axis=1).tobytes(),
        b"".join(packed(one.astype(np.int8), configuration.block_out).tobytes() for one in results),
    )


def summed(workload: Convolution, inputs: Int8, weights: Int8) -> Int64:
    """The sums of a batch, in the order batch, channel, row, column."""
    pad = workload.padding
    padded = np.pad(inputs, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = (workload.kernel, workload.kernel)
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=(2, 3))
    windows = windows[:, :, :: workload.stride, :: workload.stride]
    columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, weights[0].size)
    # Sums of int8 products are whole numbers far below 2**53, so float64 gives them exactly.
    sums = columns.astype(np.float64) @ weights.reshape(len(weights), -1).T.astype(np.float64)
    shape = (len(inputs), workload.out_height, workload.out_width, workload.out_channels)
    return np.asarray(sums.astype(np.int64).reshape(shape).transpose(0, 3, 1, 2))


def requantised(workload: Convolution, sums: Int64, bias: Int32) -> Int64:
    """Sums shifted, with their bias, and clipped to 8 bits."""
    shifted = (sums >> workload.shift) + bias.reshape(1, -1, 1, 1)
    return np.asarray(np.clip(shifted, 0 if workload.relu else -128, 127))


def packed(images: Int8, block: int) -> Int8:
    """Blocks of channels outermost, then rows and columns, a batch of blocks innermost."""
    batch, channels, height, width = images.shape
    return images.reshape(batch, channels // block, block, height, width).transpose(1, 3, 4, 0, 2)


def _packed_weights(weights: Int8, configuration: Configuration) -> Int8:
    out, channels, kernel, _ = weights.shape
    outer = (out // configuration.block_out, configuration.block_out)
    inner = (channels // configuration.block_in, configuration.block_in)
    return weights.reshape(*outer, *inner, kernel, kernel).transpose(0, 2, 4, 5, 1, 3)
