"""Which memory layout a whole model runs fastest in, found before it is tuned.

Every kernel runs with the first guess of its implementer: what is known of one layout's kernels would not be
fair to the others.
"""

from collections.abc import Mapping
from functools import partial
from statistics import median

from tuneloom.backends.finding import backend_of
from tuneloom.backends.meaning import CONVOLUTIONS
from tuneloom.errors import ModelError
from tuneloom.model import LayoutChoice, ModelRecipe
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.running import OpenModel
from tuneloom.tuners.tvm.models.guessing import guesses_for
from tuneloom.tuners.tvm.models.making.lowered import lowered_in, lowered_model
from tuneloom.tuners.tvm.models.making.made import MODELS, InLayout
from tuneloom.tuners.tvm.models.precision.samples import values_for
from tuneloom.tuners.tvm.models.remembering import keep_layout
from tuneloom.tuners.tvm.models.rivals.turns import all_in_turn, warmed

_SECONDS = 0.3
_FEW = 2
"""So many convolutions pass no images on: transformers have them to cut an image into patches."""
_MARGIN = 1.1
"""By how much another layout has to be faster than the usual one: trials would make up for less."""


def possible_layouts(lowered: LoweredModel) -> tuple[str, ...]:
    """The layouts that times have to decide between; none for models with hardly any convolutions."""
    layouts = backend_of(lowered.target).layouts
    steps = (step for meaning in lowered.meanings.values() for step in meaning.steps)
    return layouts if sum(step.operator.startswith(CONVOLUTIONS) for step in steps) > _FEW else ()


def compile_layouts(recipe: ModelRecipe) -> None:
    """Compile a model in each of its layouts, for which no device is needed."""
    _compiled(recipe)


def choose_layout(recipe: ModelRecipe, seed: int) -> LayoutChoice:
    """Time the model in its layouts, in turn, under the first of its sets of shapes.

    Runs where the device is. The choice is kept for later jobs.
    """
    compiled = _compiled(recipe)
    values = values_for(recipe, next(iter(compiled.values())).model.inputs, seed)
    opened: dict[str, OpenModel] = {name: one.model.open() for name, one in compiled.items()}
    for one in opened.values():
        warmed(partial(one.run, values))
    times = all_in_turn([one.timer(values) for one in opened.values()], _SECONDS)
    seconds = {name: median(own) for name, own in zip(opened, times, strict=True)}
    choice = LayoutChoice(layout=fastest(seconds), seconds=seconds)
    made = MODELS.of(recipe.variants()[0])
    if choice.layout != next(iter(compiled)):  # it is opened again in that layout
        made.lowered, made.layout = compiled[choice.layout].lowered, choice.layout
    made.in_layouts = {}
    keep_layout(recipe, choice)
    return choice


def fastest(seconds: Mapping[str, float]) -> str:
    """The first layout, which is the usual one, unless another is clearly faster."""
    usual = next(iter(seconds))
    best = min(seconds, key=lambda name: seconds[name])
    return best if _MARGIN * seconds[best] < seconds[usual] else usual


def _compiled(recipe: ModelRecipe) -> dict[str, InLayout]:
    """The model in every layout that it can be compiled in; raises ModelError if the usual one is none."""
    first = recipe.variants()[0]
    made, usual = MODELS.of(first), lowered_model(first)
    if not made.in_layouts:
        for number, layout in enumerate(backend_of(usual.target).layouts):
            try:
                lowered = lowered_in(first, layout) if number else usual
                model = build_model(lowered, guesses_for(lowered), guess=True)
                made.in_layouts[layout] = InLayout(lowered=lowered, model=model)
            except ModelError:
                if not number:
                    raise
    return made.in_layouts
