"""A built kernel as bytes: a header that says how to call it, then the library and its object file.

What an implementer measures by a clock of its own has its name and target in the header instead.
"""

import json
import struct
from dataclasses import dataclass, field

_SIZE = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltKernel:
    """A library with one function `main`, the types and shapes of its arguments, its kind of device.

    `lengths` is what whole numbers among its arguments are where they are lengths of sequences. `code` is
    the object file that the library was linked from, for linking it into a model; empty if there is not one.
    """

    device: str = ""
    arguments: tuple[tuple[str, tuple[int, ...]], ...] = ()
    library: bytes = field(repr=False)
    implementer: str = ""
    target: str = ""
    lengths: int = 0
    code: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        own = {"implementer": self.implementer, "target": self.target} if self.implementer else {}
        facts = {"device": self.device, "arguments": self.arguments, "lengths": self.lengths}
        facts |= {"library_bytes": len(self.library)}
        header = json.dumps({**facts, **own}).encode()
        return _SIZE.pack(len(header)) + header + self.library + self.code

    @classmethod
    def from_bytes(cls, payload: bytes) -> "BuiltKernel":
        (size,) = _SIZE.unpack_from(payload)
        start = _SIZE.size + size
        header = json.loads(payload[_SIZE.size : start])
        arguments = tuple((str(dtype), tuple(shape)) for dtype, shape in header["arguments"])
        own = {name: header.get(name, "") for name in ("implementer", "target")}
        facts = {"device": header["device"], "lengths": header.get("lengths", 0)}
        end = start + header.get("library_bytes", len(payload))
        return cls(**facts, arguments=arguments, library=payload[start:end], code=payload[end:], **own)
