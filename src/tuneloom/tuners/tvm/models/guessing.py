"""First guesses of implementers, for models that are built where nothing can be measured."""

from tuneloom.backends.implementers import ModelKernel
from tuneloom.model import ModelRecipe
from tuneloom.model.space import configured
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.models.compiling.kernels import meanings_by_key
from tuneloom.tuners.tvm.models.making.lowered import lowered_model


def first_guesses(recipe: ModelRecipe) -> dict[str, str]:
    """The configuration that the first implementer of each kernel would try first, by the key of its task.

    Implementers that need something at run time are left out: nobody knows whether it will be there.
    """
    found: dict[str, str] = {}
    for variant in recipe.variants():
        found = guesses_for(lowered_model(variant)) | found
    return found


def guesses_for(lowered: LoweredModel) -> dict[str, str]:
    """The same for a model under one set of shapes."""
    found: dict[str, str] = {}
    for key, meaning in meanings_by_key(lowered).items():
        kernel = ModelKernel(module=None, meaning=meaning, target=lowered.target)
        for implementer, claim in claims_on(kernel):
            if not implementer.requirements:
                found.setdefault(key, configured(implementer.name, claim.space.guesses[0]))
    return found
