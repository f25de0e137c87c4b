"""What models are compiled for: the CPU beside an accelerator, and the accelerator's sizes."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar
from zlib import crc32

from tuneloom.backends.cpu.instructions.lanes import DOTS
from tuneloom.backends.cpu.target import CpuTarget, cpu_target
from tuneloom.errors import TargetError
from tuneloom_vta.configuration import DEFAULT, SMALL, Configuration
from tuneloom_vta.errors import ConfigurationError

KNOWN = {configuration.name: configuration for configuration in (DEFAULT, SMALL)}
BASE = "accelerator"
NO_DOTS = next(one for one in DOTS if one.data == "int8")
"""Stands for the instruction where the CPU has none: the accelerator computes the products."""
_SIZES = tuple(field.name for field in fields(Configuration))


@dataclass(frozen=True, slots=True, kw_only=True)
class VtaTarget(CpuTarget):
    """The CPU beside the accelerator, and the accelerator."""

    backend: ClassVar[str] = "vta"

    @property
    def accelerator(self) -> Configuration:
        """Its sizes and times."""
        return accelerator_of(self.config)

    @property
    def family(self) -> str:
        sizes = self.accelerator
        return f"{sizes.name}-{crc32(repr(sizes).encode()):08x}-{self.vector_bits}x{self.cores}"

    @property
    def chip(self) -> str:
        return self.accelerator.name

    def _compiled_rightly(self) -> dict[str, Any]:
        own = CpuTarget._compiled_rightly(self)
        return {name: value for name, value in own.items() if name not in (BASE, *_SIZES)} | {"kind": "llvm"}


def accelerator_of(config: Mapping[str, Any]) -> Configuration:
    """The accelerator that a target describes: a known one, with sizes of its own where it names some.

    Raises TargetError for an unknown one, and for sizes that contradict each other.
    """
    name = str(config.get(BASE, DEFAULT.name))
    if name not in KNOWN:
        raise TargetError(f"no accelerator {name!r}; known: {', '.join(KNOWN)}")
    own = {size: config[size] for size in _SIZES if size in config}
    wrong = [size for size, value in own.items() if size != "name" and type(value) is not int]
    if wrong:
        raise TargetError(f"{wrong[0]} must be a whole number, got {own[wrong[0]]!r}")
    try:
        made = replace(KNOWN[name], **own)
    except ConfigurationError as error:
        raise TargetError(str(error)) from error
    if made.batch != 1:
        raise TargetError(f"{made.name}: models run with a batch of 1, got {made.batch}; omit it")
    return made


def vta_target(config: Mapping[str, Any], cores: int) -> VtaTarget:
    """The target with everything filled in; unknown words in it are refused by TVM."""
    accelerator_of(config)
    own = {name: value for name, value in config.items() if name in (BASE, *_SIZES)}
    rest = {name: value for name, value in config.items() if name not in own and name != "kind"}
    host = cpu_target(rest, cores)
    known = {field.name: getattr(host, field.name) for field in fields(host)}
    return VtaTarget(
        **(known | {"kind": "vta", "config": {**host.config, BASE: DEFAULT.name, **own, "kind": "vta"}})
    )
