"""Models of this process, compiled with their schedules and as they came in."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import Implementer
from tuneloom.errors import ModelError, OutputError
from tuneloom.model import ExportedModel, ModelRecipe
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.importing.sources import whole_file
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel
from tuneloom.tuners.tvm.models.compiling.building import (
    build_model,
    build_plain,
    compile_ahead,
    guess_ahead,
)
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.compiling.inserts import told
from tuneloom.tuners.tvm.models.compiling.kernels import implementers_in
from tuneloom.tuners.tvm.models.compiling.shapes import export_all
from tuneloom.tuners.tvm.models.compiling.side_by_side import made_beside
from tuneloom.tuners.tvm.models.making.lowered import lowered_in, lowered_model
from tuneloom.tuners.tvm.models.making.made import MODELS, UntunedRun
from tuneloom.tuners.tvm.models.making.untuned import run_ahead


def compile_model(
    recipe: ModelRecipe,
    schedules: dict[str, str],
    seed: int | None = None,
    kernels: Sequence[tuple[str, str]] = (),
    payloads: Sequence[bytes] = (),
    instead: dict[str, str] | None = None,
) -> dict[str, str]:
    """Compile the model with its schedules and, with a `seed`, as it came in unless that was done.

    On inputs of that seed they are compared later. Kernels nobody tuned get the first guess of their
    template. `payloads` are kernels as they were built for measuring, of these tasks and configurations:
    they are linked, not compiled again. With the schedules `instead` it is compiled, too, to be weighed
    against. Returns which tasks have neither a schedule nor a guess, because TVM can't compile it, and why.
    """
    failed: dict[str, str] = {}
    codes = (BuiltKernel.from_bytes(payload).code for payload in payloads)
    objects = {kernel: code for kernel, code in zip(kernels, codes, strict=True) if code}
    for variant in recipe.variants():
        MODELS.of(variant).objects |= objects
    if objects:
        MODELS.keep_kernels()
    with nullcontext() if seed is None else _plain_begun(recipe, seed):
        for variant in recipe.variants():
            failed |= _compile_tuned(variant, schedules).unscheduled
        if instead is not None and not failed:
            _compile_instead(recipe, instead)
    if seed is not None:
        compile_plain(recipe)
    return failed


def compile_guesses(recipe: ModelRecipe, keys: Sequence[str], seconds: float) -> bool:
    """Compile first guesses of these tasks' kernels before the model is, for so long; whether none is left.

    Kernels that a first guess can't be compiled of are found when the model is compiled.
    """
    lowered, made = lowered_model(recipe), MODELS.of(recipe)
    if recipe.more_shapes or not backend_of(lowered.target).on_host:
        return True
    kept = MODELS.keep_kernels()
    made.guesses = made.guesses or guess_ahead(lowered, keys, kept)
    module, keys_of = made.guesses
    names = [name for name, key in keys_of.items() if key in keys]
    return compile_ahead(lowered, module, names, kept, seconds)


@contextmanager
def _plain_begun(recipe: ModelRecipe, seed: int) -> Iterator[None]:
    """Compile and run the model as it came in on another core meanwhile, if there is one."""
    made, lowered = MODELS.of(recipe), lowered_model(recipe)
    if made.plain is not None or not backend_of(lowered.target).on_host:
        yield
        return
    wait = made_beside(lambda: _plain_and_run(recipe, seed))
    try:
        yield
    finally:
        made.plain, made.untuned = wait() or (None, None)


def _plain_and_run(recipe: ModelRecipe, seed: int) -> tuple[CompiledModel, UntunedRun | None]:
    model = plain_model(recipe)
    run_ahead(recipe, model, seed)
    return model, MODELS.of(recipe).untuned


def _compile_instead(recipe: ModelRecipe, schedules: dict[str, str]) -> None:
    with suppress(ModelError):  # then there is nothing to weigh, which whoever weighs finds out
        for variant in recipe.variants():
            instead_model(variant, schedules)


def instead_model(recipe: ModelRecipe, schedules: dict[str, str]) -> CompiledModel:
    """The model with other schedules than it may be deployed with; compiled now if it was not before."""
    made = MODELS.of(recipe)
    if made.instead is None or made.instead[0] != schedules:
        made.instead = dict(schedules), _with_guesses(recipe, schedules)
    return made.instead[1]


def _with_guesses(recipe: ModelRecipe, schedules: dict[str, str]) -> CompiledModel:
    lowered, objects = lowered_model(recipe), MODELS.of(recipe.whole).objects
    return build_model(lowered, schedules, guess=True, objects=objects, kept=MODELS.kept)


def _compile_tuned(recipe: ModelRecipe, schedules: dict[str, str]) -> CompiledModel:
    made = MODELS.of(recipe)
    made.tuned = _with_guesses(recipe, schedules)
    made.schedules = dict(schedules)
    return made.tuned


def compile_plain(recipe: ModelRecipe, seed: int | None = None) -> None:
    """Compile the model as it came in, to compare the tuned one with; with a `seed`, run it once if possible.

    It keeps its layout and loops, so that it shares no rewriting with the tuned one.
    """
    all_made = [MODELS.of(variant) for variant in recipe.variants()]
    for variant in recipe.variants():
        model = plain_model(variant)
        if seed is not None:
            run_ahead(variant, model, seed)
    if all(made.lowered is not None for made in all_made):
        MODELS.drop_imports()


def plain_model(recipe: ModelRecipe) -> CompiledModel:
    """The model compiled as it came in; compiled here and now if it was not before."""
    made = MODELS.of(recipe)
    if made.plain is None:
        made.plain = build_plain(lowered_in(recipe, "plain"))
    return made.plain


def tuned_model(recipe: ModelRecipe, schedules: dict[str, str]) -> CompiledModel:
    """The model compiled with these schedules; compiled here and now if another process did it so far.

    The device may belong to another machine than the one that compiled the model. What another runtime has
    as a whole is not compiled.
    """
    if recipe.whole_in:
        return _in_other_runtime(recipe)
    made = MODELS.of(recipe)
    if made.tuned is None or made.schedules != schedules:
        return _compile_tuned(recipe, schedules)
    return made.tuned


def _in_other_runtime(recipe: ModelRecipe) -> CompiledModel:
    """The model for another runtime, as its user has it wherever that has the same interface."""
    lowered = lowered_model(recipe)
    names = tuple([info.name for info in infos] for infos in (lowered.inputs, lowered.outputs))
    content, suffix, operators = whole_file(recipe.source, recipe.shapes, names)
    part = ForeignPart(
        function=f"tuneloom.{hashlib.sha256(content).hexdigest()[:16]}.whole",
        operators=operators,
        content=content,
        runtime=recipe.whole_in,
        whole=True,
        suffix=suffix,
    )
    return CompiledModel(
        parameters=(),
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        foreign=(part,),
        threads=recipe.cores,
    )


def export_model(recipe: ModelRecipe, schedules: dict[str, str], folder: str) -> ExportedModel | OutputError:
    """Write the compiled model and its parameters into an existing folder; a full disk is a value."""
    models = [tuned_model(variant, schedules) for variant in recipe.variants()]
    try:
        export_all(models, Path(folder))
    except (OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return OutputError(f"can't write {folder}: {reason}; free some space or choose another --out")
    return told(found for variant in recipe.variants() for found in _implementers(variant, schedules))


def _implementers(recipe: ModelRecipe, schedules: dict[str, str]) -> list[Implementer]:
    if recipe.whole_in:
        return []
    return implementers_in(lowered_model(recipe), schedules, tuned_model(recipe, schedules).unscheduled)
