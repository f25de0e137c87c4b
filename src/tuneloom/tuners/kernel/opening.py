"""Opening a kernel in a worker, as models are opened: what all trials share is done here once."""

import hashlib
import secrets
from pathlib import Path

from tuneloom.errors import InputError, SpaceError
from tuneloom.model import ModelRecipe, ModelSummary
from tuneloom.tuners.kernel import FUNCTIONS, ON_DEVICE
from tuneloom.tuners.kernel.cargo import kernel_bytes, kernel_from, task_of
from tuneloom.tuners.kernel.description import DescribedKernel, described
from tuneloom.tuners.kernel.kernel import Kernel


def open_kernel(recipe: ModelRecipe) -> ModelSummary | InputError:
    """The one task of a kernel; one that makes no sense is a value."""
    try:
        given = opened(Path(recipe.source))
        kernel = _prepared(given.kernel)
    except InputError as error:
        return error
    return ModelSummary(
        name=kernel.name,
        digest=given.fingerprint,
        target=recipe.target,
        family=f"kernel-{recipe.target}",
        tvm_version="",
        tasks=(task_of(kernel, given.fingerprint),),
        inputs=(),
        outputs=(),
        canary=b"",
        facts={ON_DEVICE: kernel.builds_on_device},
    )


def opened(path: Path) -> DescribedKernel:
    """A kernel from its file; raises SpaceError naming the file and what is wrong."""
    return kept_functions(path) if path.suffix == FUNCTIONS else described(path)


def keep_functions(kernel: Kernel, folder: Path) -> Path:
    """Write a kernel of Python functions into a folder of the user; returns the new file.

    Raises SpaceError if something of it can't be carried to another process.
    """
    try:
        data = kernel_bytes(kernel)
    except Exception as error:
        raise SpaceError(f"{kernel.name} can't be carried to another process: {error}") from error
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{secrets.token_hex(8)}{FUNCTIONS}"
    path.write_bytes(data)
    return path


def kept_functions(path: Path) -> DescribedKernel:
    """Read what `keep_functions` wrote; its functions may run from then on."""
    try:
        data = path.read_bytes()
        kernel = kernel_from(data)
    except OSError as error:
        raise SpaceError(f"{path} can't be read: {error.strerror or error}") from None
    except Exception as error:
        raise SpaceError(f"{path} can't be loaded: {type(error).__name__}: {error}") from None
    return DescribedKernel(kernel, hashlib.sha256(data).hexdigest()[:12])


def _prepared(kernel: Kernel) -> Kernel:
    try:
        return kernel.prepared()
    except InputError:
        raise
    except Exception as error:
        raise SpaceError(f"{kernel.name}: its reference can't be computed: {error}") from error
