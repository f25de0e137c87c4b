"""Sizes that contradict each other are refused in one line."""

from typing import Any

import pytest

from tuneloom_vta import DEFAULT, SMALL, Configuration, ConfigurationError, EncodingError
from tuneloom_vta.instructions import Opcode, encoded, layout


def test_the_published_sizes_give_the_published_depths() -> None:
    assert DEFAULT.depths == {"uop": 8192, "inp": 2048, "wgt": 1024, "acc": 2048}
    assert DEFAULT.index_bits == {"uop": 13, "inp": 11, "wgt": 10, "acc": 11}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"inp_bytes": 100}, "inp_bytes=100 is not a power of two of elements of 16 bytes"),
        ({"wgt_bytes": 3 * 256}, "not a power of two"),
        ({"acc_bytes": 1 << 20}, "a micro-op has 32 bits and would need"),
        ({"uop_bytes": 1 << 17}, "first half of a compute instruction"),
        ({"block_in": 0}, "block_in must be positive"),
        ({"latency_cycles": -1}, "latency_cycles must not be negative"),
        ({"sum_latency": 17}, "a sum_latency of 16"),
    ],
)
def test_contradictions_are_refused_by_name(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as error:
        Configuration(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("configuration", [DEFAULT, SMALL])
@pytest.mark.parametrize("opcode", [Opcode.LOAD, Opcode.GEMM, Opcode.ALU])
def test_fields_lie_side_by_side_in_128_bits(configuration: Configuration, opcode: Opcode) -> None:
    seen = [0, 0]
    for name, width in layout(configuration, opcode)[1:]:
        full = -1 if name == "imm" else (1 << width) - 1
        words = encoded(configuration, opcode, **{name: full})[0]
        bits = [int(word) & ~int(opcode) if i == 0 else int(word) for i, word in enumerate(words)]
        assert sum(word.bit_count() for word in bits) == width
        assert not any(one & other for one, other in zip(seen, bits, strict=True))
        seen = [one | other for one, other in zip(seen, bits, strict=True)]


def test_a_number_that_does_not_fit_is_named() -> None:
    with pytest.raises(EncodingError, match=r"LOAD.y_before=16 does not fit into 4 bits"):
        encoded(DEFAULT, Opcode.LOAD, y_before=[3, 16])
    with pytest.raises(EncodingError, match="GEMM has no field imm"):
        encoded(DEFAULT, Opcode.GEMM, imm=1)
