"""What a backend is: everything that differs between kinds of hardware, as one value.

Methods get data and return data; none keeps anything. Whatever imports TVM does so when it is called,
so that a backend can be loaded where only TVM's runtime is installed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tuneloom.backends.implementers import Implementer
from tuneloom.backends.meaning import Meaning, MeaningStep
from tuneloom.backends.quantising import Quantiser
from tuneloom.backends.watching import ConditionWatch
from tuneloom.compiler.fast_import import load_intrinsics
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError
from tuneloom.model import MeasuringRules

Clock = Callable[[int, int], tuple[float, ...]]
"""Times so many runs, so often: seconds per run, once for each repeat."""
USUAL, PLAIN = "blocked", "plain"
"""Layouts that every backend has: as it likes models best, and as they came."""
GENERAL_SPACE = "post-order-apply"
"""MetaSchedule's own space, which takes every kernel."""
_TENSORISED = "ensorize"
"""In the name of every instruction and annotation of a trace that stands for one of the hardware's."""


class Backend(ABC):
    """One kind of hardware. Derive from it and register an instance as an entry point `tuneloom.backends`."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    """The kinds of TVM targets that are its own, the usual one first."""
    layout: ClassVar[str] = "plain"
    """What its way of laying out models is called."""
    layouts: ClassVar[tuple[str, ...]] = ()
    """Layouts that models with convolutions may have as a whole, where times decide; the usual one first."""
    binds_threads: ClassVar[bool] = False
    """Whether loops run only once they are bound to a device's threads."""
    on_host: ClassVar[bool] = False
    """Whether models run on the CPU of the process itself, as other runtimes run them."""
    readers_in_place: ClassVar[frozenset[str]] = frozenset()
    """Operators whose implementers read slices and transpositions of their operands in place."""
    readers_of_rows: ClassVar[frozenset[str]] = frozenset()
    """Operators whose implementers read the rows of their first operand in any order in place."""
    good_guesses: ClassVar[bool] = False
    """Whether what an implementer would try first beats the default of a kernel that nobody measured."""
    steady: ClassVar[bool] = False
    """Whether times of a kernel repeat within a few percent, alone as in a model."""
    builds_anywhere: ClassVar[bool] = False
    """Whether a model for a target that is described in full can be built where no such device is."""
    claims_alone: ClassVar[bool] = False
    """Whether kernels that an implementer claims are its own: no schedule of TVM's competes for them."""
    has_canary: ClassVar[bool] = False
    """Whether a kernel of plain loops can show that its device is disturbed."""

    @abstractmethod
    def resolve(self, config: dict[str, Any], cores: int) -> TargetSpec:
        """The target with everything filled in; raises TargetError for one that can't be used."""

    def dtypes(self, target: TargetSpec) -> frozenset[str]:
        """The number types that models can be converted to for this target."""
        return frozenset(("float32",))

    def require_dtype(self, dtype: str, target: TargetSpec) -> None:
        """Raise TargetError if the target does not compute in a type."""
        if dtype not in self.dtypes(target):
            known = ", ".join(sorted(self.dtypes(target)))
            raise TargetError(f"{dtype} is not available on {target.chip} (it has {known}); omit --dtype")

    def quantiser(self, target: TargetSpec) -> Quantiser:
        """How it computes in 8 bits, where `dtypes` has int8 or fp8."""
        raise TargetError(f"8-bit numbers are not available on {target.chip}; omit --dtype")

    def laying_out(self, target: TargetSpec, dtype: str) -> list[Any]:
        """The passes that lay a model out for the hardware, with products in this type."""
        return []

    def laying_out_in(self, layout: str, target: TargetSpec, dtype: str) -> list[Any]:
        """The same for one of its `layouts`."""
        return self.laying_out(target, dtype)

    def require_layout(self, layout: str, target: TargetSpec) -> None:
        """Raise TargetError if models for the target can't have a layout."""
        known = (USUAL, PLAIN, *self.layouts)
        if layout not in known:
            raise TargetError(
                f"layout {layout} is not available on {target.chip} (it has {', '.join(known)})"
            )

    def further_attributes(self, dtype: str, meaning: Meaning, step: MeaningStep) -> Mapping[str, Any]:
        """Attributes that a step of a kernel has in a model of this type, beside its own."""
        return {}

    def legalisers(self) -> Mapping[str, Any]:
        """Operators whose loops it makes itself."""
        return {}

    @abstractmethod
    def finishing(self, target: TargetSpec) -> list[Any]:
        """The passes after kernels are final: memory is planned and the program becomes calls."""

    def build_settings(self, target: TargetSpec) -> dict[str, Any]:
        """TVM's settings for building single candidates."""
        return {}

    def model_settings(self, target: TargetSpec) -> dict[str, Any]:
        """TVM's settings for building whole models."""
        return {}

    def default_module(self, module: Any, target: TargetSpec) -> Any:
        """A kernel as it runs when nobody tuned it."""
        return module

    def space(self, module: Any, target: TargetSpec) -> Any:
        """The schedules that a kernel may have: an `ms.SpaceGenerator` or the name of one."""
        return GENERAL_SPACE

    def last_resort(self, module: Any, target: TargetSpec) -> Any:
        """A space of a single schedule, for kernels whose general space can't be generated."""
        from tvm.s_tir import Schedule
        from tvm.s_tir import meta_schedule as ms

        return ms.space_generator.ScheduleFn(
            lambda _: [Schedule(module)], sch_rules=[], postprocs=[], mutator_probs={}
        )

    def first_guess(self, module: Any, target: TargetSpec) -> Any | None:
        """A schedule that should be near the best without any trial; None where there is none."""
        return None

    def follow(self, trace: str, target: TargetSpec) -> None:
        """Prepare this process for a trace that may ask for instructions of the hardware."""
        if _TENSORISED in trace:
            load_intrinsics(target.kind)

    def implementers(self, target: TargetSpec) -> Sequence[Implementer]:
        """Who makes code for its kernels beside TVM's schedules, the most promising first."""
        return ()

    def stopwatch(self, run: Callable[[], Any], device: Any) -> Clock | None:
        """What times a call on a device of this process where TVM's way of timing would mislead."""
        return None

    def measuring(self, rules: MeasuringRules) -> MeasuringRules:
        """How long its kernels have to be measured, within the limits of a job."""
        return rules

    def require_kernels(self, model: str, kernels: Iterable[str], target: TargetSpec) -> None:
        """Raise TargetError if nothing among the kernels of a model is worth this hardware."""
        return

    def facts(self, target: TargetSpec, kernels: Iterable[str]) -> dict[str, Any]:
        """What a bundle has to say of the hardware that code with these kernels needs."""
        return {"cpu_features": [], "cpu_flags": {}}

    def require_builder(self) -> None:
        """Raise TargetError if what builds models where no such device is, is not installed."""
        return

    def require_memory(self, weight_bytes: int, value_bytes: int, target: TargetSpec) -> None:
        """Raise TargetError if no device of this machine for the target can hold weights and values."""
        return

    def watch(self) -> ConditionWatch | None:
        """Looks at the device that this process holds while it is measured; None if nobody can."""
        return None

    def warm_up(self) -> None:
        """Import what stages import, in a process that forks workers and must not touch a device."""
        return
