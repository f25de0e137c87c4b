"""Opening a mock model in a worker, as other models are opened."""

import hashlib

from tuneloom.errors import InputError
from tuneloom.tuners.mock.kernel import mock_tasks
from tuneloom.tuners.tvm.models.stages import ModelRecipe, ModelSummary


def open_mock(recipe: ModelRecipe) -> ModelSummary | InputError:
    """The tasks of a mock model; one that makes no sense is a value."""
    try:
        tasks = mock_tasks(recipe.source)
    except InputError as error:
        return error
    return ModelSummary(
        name="mock",
        digest=hashlib.sha256(recipe.source.encode()).hexdigest(),
        target="mock",
        family="mock",
        tvm_version="",
        tasks=tasks,
        inputs=(),
        outputs=(),
        canary=b"",
        facts={},
    )
