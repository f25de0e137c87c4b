"""What a kernel may use of a GPU, by its architecture; nothing here touches one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_KIB = 1024
_SHARED_KIB = {
    75: 64,
    80: 163,
    86: 99,
    87: 163,
    89: 99,
    90: 227,
    100: 227,
    103: 227,
    110: 227,
    120: 99,
    121: 99,
}
KNOWN = frozenset(_SHARED_KIB)
"""Architectures, by number, whose limits are known."""
_MULTIPROCESSORS = {75: 40, 80: 108, 86: 84, 89: 128, 90: 132, 100: 148, 103: 148, 120: 170}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An architecture with its limits; `multiprocessors` is typical unless the target names a number."""

    arch: int
    shared_bytes: int
    multiprocessors: int
    threads: int = 1024
    registers: int = 65536

    @classmethod
    def of(cls, target: Mapping[str, Any]) -> "Gpu | None":
        """The GPU of a target's configuration; None if it is no CUDA target or older than sm_75."""
        digits = "".join(filter(str.isdigit, str(target.get("arch", ""))))
        if target.get("kind") != "cuda" or not digits or int(digits) < min(_SHARED_KIB):
            return None
        arch = int(digits)
        return cls(
            arch=arch,
            shared_bytes=_nearest(_SHARED_KIB, arch) * _KIB,
            multiprocessors=int(target.get("multiprocessors", _nearest(_MULTIPROCESSORS, arch))),
        )

    def computes(self, dtype: str) -> bool:
        """Whether its tensor cores, or its plain ones for float32, multiply numbers of a type."""
        oldest = {"float16": 75, "float32": 75, "int8": 75, "bfloat16": 80}
        return self.arch >= oldest.get(dtype, 89 if dtype.startswith("float8") else 10**6)


def relatives_of(arch: str) -> tuple[str, ...]:
    """The other architectures, the nearest first."""
    own = int("".join(filter(str.isdigit, arch)) or 0)
    return tuple(
        f"sm_{each}" for each in sorted(_SHARED_KIB, key=lambda each: abs(each - own)) if each != own
    )


def _nearest(table: Mapping[int, int], arch: int) -> int:
    """The value of the newest architecture that is not newer."""
    return table[max(known for known in table if known <= arch)]
