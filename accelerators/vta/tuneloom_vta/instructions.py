"""Instructions of 128 bits and micro-ops of 32, made from arrays of field values."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tuneloom_vta.configuration import Configuration
from tuneloom_vta.errors import EncodingError

Words = NDArray[np.uint64]
Uops = NDArray[np.uint32]
Numbers = NDArray[np.int64]
_DEPENDENCES = (("opcode", 3), ("pop_prev", 1), ("pop_next", 1), ("push_prev", 1), ("push_next", 1))
_SIGNED = "imm"


class Opcode(IntEnum):
    """What an instruction does."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4


class Memory(IntEnum):
    """What a transfer moves: into a scratchpad, or sums out of one as int8."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC8 = 5


class Alu(IntEnum):
    """Operations on sums; a negative shift goes left."""

    MIN = 0
    MAX = 1
    ADD = 2
    SHR = 3
    MUL = 4


@lru_cache(maxsize=64)
def layout(configuration: Configuration, opcode: Opcode) -> tuple[tuple[str, int], ...]:
    """The fields of an instruction in order, with their widths."""
    bits = configuration.index_bits
    if opcode in (Opcode.LOAD, Opcode.STORE):
        sizes = (("y_size", 16), ("x_size", 16), ("x_stride", 16))
        pads = (("y_before", 4), ("y_after", 4), ("x_before", 4), ("x_after", 4))
        return (*_DEPENDENCES, ("memory", 3), ("sram", 16), ("dram", 32), *sizes, *pads)
    uops = (("reset", 1), ("uop_begin", bits["uop"]), ("uop_end", bits["uop"] + 1))
    loops = (("iter_out", 14), ("iter_in", 14), ("dst_out", bits["acc"]), ("dst_in", bits["acc"]))
    common = (*_DEPENDENCES, *uops, *loops)
    if opcode is Opcode.ALU:
        src = (("src_out", bits["acc"]), ("src_in", bits["acc"]))
        return (*common, *src, ("alu", 3), ("use_imm", 1), (_SIGNED, 16))
    src = (("src_out", bits["inp"]), ("src_in", bits["inp"]))
    return (*common, *src, ("wgt_out", bits["wgt"]), ("wgt_in", bits["wgt"]))


def encoded(configuration: Configuration, opcode: Opcode, **values: ArrayLike) -> Words:
    """Instructions of one kind; fields are numbers or arrays of one length, and zero if not given.

    Raises EncodingError for a number that does not fit into its field.
    """
    given: Mapping[str, ArrayLike] = {"opcode": int(opcode), **values}
    fields = layout(configuration, opcode)
    if unknown := set(given) - {name for name, _ in fields}:
        raise EncodingError(f"{opcode.name} has no field {', '.join(sorted(unknown))}")
    count = max(1 if isinstance(value, int) else np.size(value) for value in given.values())
    same, words = [0, 0], np.zeros((count, 2), dtype=np.uint64)
    for name, at, width in _placed(fields):
        if name not in given:
            continue
        value, what = given[name], f"{opcode.name}.{name}"
        if not isinstance(value, int) and np.ndim(value):
            bits = _checked(what, np.asarray(value, dtype=np.int64), width, name == _SIGNED)
            words[:, at // 64] |= bits << np.uint64(at % 64)
        else:
            same[at // 64] |= _checked_number(what, int(value), width, name == _SIGNED) << at % 64  # type: ignore[arg-type]
    return words | np.array(same, dtype=np.uint64)


def micro_ops(configuration: Configuration, dst: ArrayLike, src: ArrayLike, wgt: ArrayLike) -> Uops:
    """Micro-ops from their places in the scratchpads; raises EncodingError for a place out of range."""
    bits = configuration.index_bits
    middle = max(bits["acc"], bits["inp"])
    parts: Sequence[tuple[str, ArrayLike, int, int]] = (
        ("dst", dst, 0, bits["acc"]),
        ("src", src, bits["acc"], middle),
        ("wgt", wgt, bits["acc"] + middle, bits["wgt"]),
    )
    words: Words = np.zeros(1, dtype=np.uint64)
    for name, value, at, width in parts:
        column = np.atleast_1d(np.asarray(value, dtype=np.int64))
        words = words | (_checked(f"micro-op {name}", column, width, False) << np.uint64(at))
    return np.asarray(words, dtype=np.uint32)


@lru_cache(maxsize=64)
def _placed(fields: tuple[tuple[str, int], ...]) -> list[tuple[str, int, int]]:
    """Fields with the bit where they begin; none crosses the middle."""
    placed, at = [], 0
    for name, width in fields:
        if at < 64 < at + width:
            at = 64
        placed.append((name, at, width))
        at += width
    return placed


def _checked(what: str, column: Numbers, width: int, signed: bool) -> Words:
    if column.size:
        for extreme in (column.min(), column.max()):
            _checked_number(what, int(extreme), width, signed)
    return np.asarray(column & ((1 << width) - 1)).astype(np.uint64)


def _checked_number(what: str, number: int, width: int, signed: bool) -> int:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    if not low <= number <= high:
        raise EncodingError(f"{what}={number} does not fit into {width} bits")
    return number & ((1 << width) - 1)
