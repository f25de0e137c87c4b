"""Weights in a safetensors file: other programs read it, and it is mapped, not copied."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
from safetensors.numpy import save_file

from tuneloom.tuners.tvm.models.compiling.storing import PARAMETERS, write_parameters
from tuneloom.tuners.tvm.runner.weights import ALIGNMENT, TYPES, mapped, stored_parameters, type_named

ARRAYS = {name: np.arange(6).reshape(2, 3).astype(type_named(name)) for name in TYPES.values()}


def test_every_type_comes_back_as_it_was(tmp_path: Path) -> None:
    write_parameters(tmp_path / PARAMETERS, ARRAYS)
    found = mapped(tmp_path / PARAMETERS)
    assert found.keys() == ARRAYS.keys()
    for name, value in ARRAYS.items():
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value)


def test_the_safetensors_library_reads_the_file(tmp_path: Path) -> None:
    write_parameters(tmp_path / PARAMETERS, ARRAYS)
    known = {dtype: name for name, dtype in TYPES.items()}
    read = dict(safetensors.deserialize((tmp_path / PARAMETERS).read_bytes()))
    assert {name: (one["dtype"], one["shape"], bytes(one["data"])) for name, one in read.items()} == {
        name: (known[value.dtype.name], [2, 3], value.tobytes()) for name, value in ARRAYS.items()
    }


def test_a_file_of_the_safetensors_library_is_read(tmp_path: Path) -> None:
    value = np.arange(4, dtype=np.float32)
    save_file({"p": value}, tmp_path / PARAMETERS, {"from": "elsewhere"})
    assert mapped(tmp_path / PARAMETERS).keys() == {"p"}
    np.testing.assert_array_equal(mapped(tmp_path / PARAMETERS)["p"], value)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_odd_shapes_come_back(tmp_path: Path, shape: tuple[int, ...]) -> None:
    write_parameters(tmp_path / PARAMETERS, {"p": np.ones(shape, ml_dtypes.bfloat16), "q": np.ones(3)})
    assert mapped(tmp_path / PARAMETERS)["p"].shape == shape


def test_arrays_of_whole_blocks_are_aligned_whatever_else_is_stored(tmp_path: Path) -> None:
    arrays = {"a": np.ones(1, np.int8), "b": np.ones(64, np.float32), "c": np.ones(3), "d": np.ones(8)}
    write_parameters(tmp_path / PARAMETERS, arrays)
    found = mapped(tmp_path / PARAMETERS)
    assert all(isinstance(value, np.memmap) for value in found.values())
    assert [found[name].ctypes.data % ALIGNMENT for name in ("b", "d")] == [0, 0]


def test_writing_into_a_mapped_array_leaves_the_file_alone(tmp_path: Path) -> None:
    write_parameters(tmp_path / PARAMETERS, {"p": np.ones(16, np.float32)})
    mapped(tmp_path / PARAMETERS)["p"][:] = 2
    assert mapped(tmp_path / PARAMETERS)["p"].tolist() == [1] * 16


def test_weights_of_older_bundles_are_read_from_their_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "parameters.npz", p00000=np.ones(3))
    assert stored_parameters(tmp_path)["p00000"].tolist() == [1, 1, 1]
