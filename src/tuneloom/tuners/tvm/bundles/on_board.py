"""A bundle on the board that this process holds: timed there, its outputs compared with the model's own."""

from pathlib import Path
from typing import Any

from tuneloom.errors import BundleError, InputError, TuneloomError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.boards.handshake import hello
from tuneloom.tuners.tvm.bundles.loading import read_manifest, tensor_info
from tuneloom.tuners.tvm.bundles.one_file import opened
from tuneloom.tuners.tvm.models.compiling.compiled import LIBRARY
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array, BoardModel, timed_for
from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival, rival_of
from tuneloom.tuners.tvm.runner.weights import stored_parameters


def evaluate_on_board(folder: str, seconds: float) -> dict[str, Any] | TuneloomError:
    """Seconds of single runs on the board, and how far outputs are from those of the model's own runtime.

    That runs on this machine; where it can't, `difference` is None and `uncompared` says why.
    """
    from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

    try:
        manifest = read_manifest(Path(folder))
        inputs, outputs = (tuple(map(tensor_info, manifest[side])) for side in ("inputs", "outputs"))
        model = _loaded(opened(Path(folder)), manifest)
        values = seeded_inputs(inputs, seed=0)
        got = model.run(values)
        expected = _expected(str(manifest["provenance"]["model"]), inputs, outputs, values)
    except TuneloomError as error:
        return error
    times = timed_for(model.timer(values), seconds)
    found: dict[str, Any] = {"difference": None, "uncompared": "", "seconds": times}
    if isinstance(expected, str):
        return found | {"uncompared": expected}
    pairs = zip(got, expected, strict=True)
    return found | {"difference": max(relative_difference(ours, theirs) for ours, theirs in pairs)}


def _loaded(folder: Path, manifest: Any) -> BoardModel:
    session = board_session()
    assert session is not None, "this is called on a board"
    target, machine = manifest["target"], hello(session.board).machine
    if machine and machine != target["machine"]:
        where = session.board.address
        raise BundleError(f"{folder} was built for {target['machine']}, the board at {where} is {machine}")
    if manifest.get("onnxruntime"):
        raise BundleError(f"{folder} needs ONNX Runtime, which boards lack; tune it with --only-tvm")
    try:
        stored = stored_parameters(folder)
        parameters = [stored[name] for name in sorted(stored)]
        library = (folder / LIBRARY).read_bytes()
    except (OSError, ValueError) as error:
        raise BundleError(f"{folder} is damaged: {error}; tune the model again") from error
    return BoardModel(session, library, parameters, target["device"])


def _expected(
    model: str, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...], values: list[Array]
) -> list[Array] | str:
    """The outputs of the model's own runtime, or why there are none."""
    try:
        return open_rival(rival_of(model), model, inputs, outputs, threads=1)(values)
    except InputError as error:
        return str(error)
