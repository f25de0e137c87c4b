"""Samples that calibrate int8: what fits, and what is said about what does not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.errors import InputError
from tuneloom.model import Budget, JobSpec, TensorInfo
from tuneloom.tuners.tvm.models.precision.samples import MOST, read_samples, samples_of

IMAGE = TensorInfo(name="x", shape=(1, 3, 4, 4), dtype="float32")
WORDS = TensorInfo(name="ids", shape=(2, 8), dtype="int64")


@pytest.fixture
def stored(tmp_path: Path) -> Any:
    """Write arrays to an archive."""

    def write(**arrays: Any) -> str:
        path = tmp_path / "samples.npz"
        np.savez(path, **arrays)
        return str(path)

    return write


def test_samples_lie_along_the_first_axis_of_every_input(stored: Any) -> None:
    path = stored(x=np.zeros((5, 3, 4, 4), np.float64), ids=np.zeros((10, 8), np.int32))
    samples = read_samples(path, [IMAGE, WORDS])
    assert [[value.shape for value in one] for one in samples] == [[(1, 3, 4, 4), (2, 8)]] * 5
    assert [value.dtype for value in samples[0]] == [np.float32, np.int64]


def test_no_more_samples_are_read_than_are_looked_at(stored: Any) -> None:
    assert len(read_samples(stored(x=np.zeros((MOST + 5, 3, 4, 4), np.float32)), [IMAGE])) == MOST


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": np.zeros((1, 3, 4, 4))}, "no samples for input 'x'; it has 'y'"),
        ({"x": np.zeros((1, 3, 5, 4))}, r"must be \(N, 3, 4, 4\), got \(1, 3, 5, 4\)"),
        ({"x": np.zeros((0, 3, 4, 4))}, "must be"),
        ({"x": np.zeros((1, 3, 4, 4), np.int64)}, "must be float32, got int64"),
        ({"x": np.full((1, 3, 4, 4), np.nan)}, "finite"),
    ],
)
def test_samples_that_do_not_fit_are_refused(stored: Any, arrays: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_samples(stored(**arrays), [IMAGE])


def test_every_input_needs_as_many_samples(stored: Any) -> None:
    path = stored(x=np.zeros((5, 3, 4, 4)), ids=np.zeros((2, 8), np.int64))
    with pytest.raises(InputError, match="5 of 'x', 1 of 'ids'"):
        read_samples(path, [IMAGE, WORDS])


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.zeros((1, 3, 4, 4)))
    (tmp_path / "text.npz").write_bytes(b"no archive")
    (tmp_path / "empty.npz").touch()
    np.savez(tmp_path / "half.npz", x=np.zeros(400))
    (tmp_path / "half.npz").write_bytes((tmp_path / "half.npz").read_bytes()[:300])
    for name in ("array.npy", "text.npz", "empty.npz", "half.npz", "."):
        with pytest.raises(InputError, match=r"can't read samples from .*: it is not a NumPy archive"):
            read_samples(str(tmp_path / name), [IMAGE])


def test_a_network_of_the_zoo_needs_no_samples_and_gets_the_same_random_ones() -> None:
    JobSpec(name="net", model="zoo:resnet18", budget=Budget(trials=1), dtype="int8")
    once, again = samples_of("", (IMAGE,)), samples_of("", (IMAGE,))
    assert len(once) > 1 and not np.array_equal(once[0][0], once[1][0])
    np.testing.assert_array_equal(once, again)


def test_samples_that_are_not_there_or_hold_objects_are_refused(tmp_path: Path, stored: Any) -> None:
    with pytest.raises(InputError, match=r"missing.npz: No such file or directory; write them"):
        read_samples(str(tmp_path / "missing.npz"), [IMAGE])
    with pytest.raises(InputError, match=r"can't read samples .*Object arrays"):
        read_samples(stored(x=np.array([{}], dtype=object)), [IMAGE])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"dtype": "int8"}, "dtype int8 needs --samples"),
        ({"samples": "s.npz"}, "dtype float32 takes no --samples"),
        (
            {"dtype": "int4", "samples": "s.npz"},
            "unknown dtype 'int4'; known: float32, float16, bfloat16, tf32, tf32_convolutions, fp8, int8",
        ),
        ({"dtype": "int8", "samples": "s.npz", "tolerance": 0.0}, "tolerance"),
    ],
)
def test_a_job_says_what_int8_needs(values: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        JobSpec(name="net", model="net.onnx", budget=Budget(trials=1), **values)
