"""Arithmetic on sizes that TensorFlow Lite files have in their graphs."""

import numpy as np

from tuneloom.tuners.tvm.importing.tflite.known import SIMPLE


def test_a_vector_is_split_where_its_sizes_say() -> None:
    parts = SIMPLE["SPLIT_V"](None, [np.array([4, 5, 6]), np.array([1, -1]), np.array(0)])
    assert [part.tolist() for part in parts] == [[4], [5, 6]]


def test_numbers_from_one_to_another_are_counted() -> None:
    assert SIMPLE["RANGE"](None, [np.array(1), np.array(8), np.array(3)]).tolist() == [1, 4, 7]


def test_whole_numbers_are_divided_downwards() -> None:
    assert SIMPLE["FLOOR_DIV"](None, [np.array([7, -7]), np.array(2)]).tolist() == [3, -4]
