"""What was made of models in this process, so that each step is taken once per job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.model import ModelRecipe, Shapes
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.compiling.kept_kernels import KeptKernels
from tuneloom.tuners.tvm.models.compiling.running import Array

Source = tuple[str, str]
"""A file, and how it was asked for."""


def source_of(source: str, shapes: Shapes, only_tvm: bool, left: Sequence[str]) -> Source:
    """What tells one imported model from another."""
    return source, repr((dict(shapes), only_tvm, tuple(left)))


@dataclass(frozen=True, slots=True, kw_only=True)
class InLayout:
    """A model in one memory layout, compiled without trials."""

    lowered: LoweredModel
    model: CompiledModel


@dataclass(frozen=True, slots=True, kw_only=True)
class UntunedRun:
    """What the untuned model gave for the inputs of a seed, and the seconds it took."""

    seed: int
    outputs: list[Array]
    seconds: float


@dataclass(slots=True)
class MadeModel:
    """What was made of one model under one set of shapes; None until it was."""

    quantised: ImportedModel | None = None
    lowered: LoweredModel | None = None
    layout: str = ""
    """The layout that it was asked for in when it was lowered."""
    plain: CompiledModel | None = None
    untuned: UntunedRun | None = None
    """A run of `plain`."""
    tuned: CompiledModel | None = None
    schedules: dict[str, str] | None = None
    """Those that `tuned` was compiled with."""
    instead: tuple[dict[str, str], CompiledModel] | None = None
    """The model with other schedules, to be weighed against `tuned`, and these."""
    objects: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Object files of kernels that were built alone, by the key of their task and their configuration."""
    guesses: tuple[Any, dict[str, str]] | None = None
    """A module of first guesses that are compiled ahead, and the keys of its kernels' tasks by name."""
    in_layouts: dict[str, InLayout] = field(default_factory=dict)
    sources: set[Source] = field(default_factory=set)


class MadeModels:
    """All models of this process, by the keys of their recipes, and the imported files they are made of."""

    def __init__(self) -> None:
        self._imported: dict[Source, ImportedModel] = {}
        self._made: dict[str, MadeModel] = {}
        self.kept: KeptKernels | None = None
        """What was compiled of kernels, in a process that compiles a model more than once."""

    def __len__(self) -> int:
        return len(self._imported) + len(self._made)

    def of(self, recipe: ModelRecipe) -> MadeModel:
        """What was made of a model under the first of its sets of shapes."""
        made = self._made.setdefault(recipe.key, MadeModel())
        made.sources.add(_source(recipe))
        return made

    def imported(self, source: Source, how: Callable[[], ImportedModel]) -> ImportedModel:
        """The model of a file, imported now if it was not before."""
        if source not in self._imported:
            self._imported[source] = how()
        return self._imported[source]

    def keep_kernels(self) -> KeptKernels:
        """Keep what is compiled of kernels from now on."""
        self.kept = KeptKernels() if self.kept is None else self.kept
        return self.kept

    def replace_import(self, source: Source, model: ImportedModel) -> None:
        """Use another model from now on where this file is asked for."""
        self._imported[source] = model

    def drop_imports(self) -> None:
        """Let imported files go, for instance because nothing more will be made of them."""
        self._imported.clear()

    def forget(self, recipe: ModelRecipe) -> None:
        """Drop everything made of a model, under all its sets of shapes."""
        for variant in recipe.variants():
            made = self._made.pop(variant.key, MadeModel())
            for source in made.sources | {_source(variant)}:
                self._imported.pop(source, None)


def _source(recipe: ModelRecipe) -> Source:
    return source_of(recipe.source, recipe.shapes, recipe.only_tvm, recipe.left)


MODELS = MadeModels()
"""Those of this process."""
