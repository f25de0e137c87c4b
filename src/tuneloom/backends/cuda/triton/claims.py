"""What a template takes on: a kernel, the knobs of its space, and the text of each configuration."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.programs import TritonProgram
from tuneloom.backends.meaning import Meaning

Configuration = Mapping[str, int]


class Unfit(Exception):  # noqa: N818
    """A meaning that a template can't write; never leaves this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobChoices:
    """Named whole numbers with their values, and what to try first, the best guess in front."""

    knobs: Mapping[str, tuple[int, ...]]
    guesses: tuple[Configuration, ...]

    def everything(self) -> Iterator[Configuration]:
        """Every combination, valid or not, in a fixed order."""
        for values in product(*self.knobs.values()):
            yield dict(zip(self.knobs, values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One way to write kernels.

    `space` returns None, and `program` raises Unfit, for a meaning that it can't write. `refusal`
    says why a configuration would not build or launch, as far as that can be told without
    building it; it is empty for one that should work. `added` are knobs that older records don't have,
    with the values that those stand for.
    """

    name: str
    space: Callable[[Meaning, Gpu], KnobChoices | None]
    refusal: Callable[[Meaning, Gpu, Configuration], str]
    program: Callable[[Meaning, Gpu, Configuration], TritonProgram]
    added: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonClaim:
    """A kernel that a template can write, with its space; cheap, nothing is compiled."""

    template: Template = field(repr=False)
    meaning: Meaning = field(repr=False)
    gpu: Gpu
    space: KnobChoices = field(repr=False)

    def refusal(self, configuration: Configuration) -> str:
        """Why a configuration is not worth building; empty if it may work."""
        configuration = {**self.template.added, **configuration}
        strange = [
            f"{name}={configuration.get(name)}"
            for name, values in self.space.knobs.items()
            if configuration.get(name) not in values
        ]
        if strange or configuration.keys() != self.space.knobs.keys():
            return f"not in the space: {', '.join(strange) or sorted(configuration)}"
        return self.template.refusal(self.meaning, self.gpu, configuration)

    def program(self, configuration: Configuration) -> TritonProgram:
        """The kernels of a configuration as text."""
        return self.template.program(self.meaning, self.gpu, {**self.template.added, **configuration})
