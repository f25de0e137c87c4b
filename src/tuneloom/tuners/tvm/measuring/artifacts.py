"""A built kernel as bytes: a header that says how to call it, then the library."""

import json
import struct
from dataclasses import dataclass, field

_SIZE = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltKernel:
    """A library with one function `main`, the types and shapes of its arguments, its kind of device."""

    device: str
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    library: bytes = field(repr=False)

    def to_bytes(self) -> bytes:
        header = json.dumps({"device": self.device, "arguments": self.arguments}).encode()
        return _SIZE.pack(len(header)) + header + self.library

    @classmethod
    def from_bytes(cls, payload: bytes) -> "BuiltKernel":
        (size,) = _SIZE.unpack_from(payload)
        start = _SIZE.size + size
        header = json.loads(payload[_SIZE.size : start])
        arguments = tuple((str(dtype), tuple(shape)) for dtype, shape in header["arguments"])
        return cls(device=header["device"], arguments=arguments, library=payload[start:])
