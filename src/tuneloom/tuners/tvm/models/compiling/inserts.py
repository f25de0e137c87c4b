"""What implementers put in the place of a model's kernels."""

from collections.abc import Iterable
from contextlib import suppress
from ctypes import c_size_t
from functools import partial
from itertools import islice
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import Implementer, Insert, ModelKernel, Requirement
from tuneloom.model import ExportedModel, Failure
from tuneloom.model.space import implementer_of
from tuneloom.tuners.tvm.inserting import inserted, symbol_of
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.lowering.tasks import kernel_module
from tuneloom.tuners.tvm.models.compiling.side_by_side import done_ahead
from tuneloom.tuners.tvm.runner.machine import shared_library


def told(implementers: Iterable[Implementer]) -> ExportedModel:
    """What a bundle says of those whose code is in it, each once."""
    known = list({one.name: one for one in implementers}.values())
    requires = [
        {"libraries": dict(needed.libraries), "implementer": one.name, **_version(needed)}
        for one in known
        for needed in one.requirements
    ]
    return ExportedModel(implementers=tuple(one.name for one in known), requires=tuple(requires))


def _version(needed: Requirement) -> dict[str, str]:
    """The version of the library that code was measured with here; nothing where there is none."""
    found = (shared_library(name, package) for name, package in needed.libraries.items())
    library = next((one for one in found if one is not None), None)
    ask = getattr(library, needed.version, None) if needed.version else None
    if ask is None:
        return {}
    ask.restype = c_size_t
    number = ask()
    return {"version": f"{number // 10_000}.{number // 100 % 100}.{number % 100}"}


class Inserts:
    """The inserts of one model, each made once; `modules` is the code that they call."""

    def __init__(self, lowered: LoweredModel) -> None:
        self._lowered = lowered
        self._made: dict[str, Insert] = {}

    @property
    def modules(self) -> list[Any]:
        return [module for insert in self._made.values() for module in insert.modules]

    def compile_ahead(self, wanted: Iterable[tuple[str, str, str]]) -> None:
        """Fill the memory of compilers that have one, side by side; names, keys and configurations follow."""
        target = self._lowered.target
        remembering = {one.name for one in backend_of(target).implementers(target) if one.remembers}
        each = {key: (name, key, text) for name, key, text in wanted if implementer_of(text) in remembering}
        for one in islice(each.values(), 1):
            self._tried(*one)  # loads the compiler, which the other processes then have
        done_ahead([partial(self._tried, *one) for one in islice(each.values(), 1, None)])

    def _tried(self, name: str, key: str, configuration: str) -> None:
        with suppress(Exception):  # whoever needs it hears of it
            self._insert(name, key, configuration)

    def function(self, name: str, key: str, configuration: str) -> Any:
        """The function in the place of a kernel; raises ValueError when there is none."""
        if key not in self._made:
            self._made[key] = self._insert(name, key, configuration)
        done = self._made[key].function
        return done.without_attr("global_symbol").with_attr("tirx.is_scheduled", True)

    def _insert(self, name: str, key: str, configuration: str) -> Insert:
        kernel = ModelKernel(
            module=kernel_module(self._lowered.module[name]),
            meaning=self._lowered.meanings.get(name),
            target=self._lowered.target,
        )
        insert = inserted(kernel, configuration, symbol_of(key, configuration))
        if isinstance(insert, Failure):
            raise ValueError(f"kernel {name} can't be built: {insert.message}")
        return insert
