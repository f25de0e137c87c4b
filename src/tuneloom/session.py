"""The short way in for Python: import, tune, build, save, run, in that order.

from tuneloom import Session
session = Session(target="cpu")
session.from_model("mobilenet.onnx").autotune(trials=512).build().save("out/").evaluate()
again = Session.load("out/")
y = again.run(x)
"""

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from tuneloom.app.bundles import folders
from tuneloom.app.evaluating import evaluate_bundle
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.sources import device_for
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import BundleError, OrderError
from tuneloom.model.options import JobOptions
from tuneloom.store import open_existing
from tuneloom.tuners.tvm.bundles.loading import Bundle, load_bundle
from tuneloom.tuners.tvm.bundles.one_file import copy
from tuneloom.tuners.tvm.importing.sources import require_source
from tuneloom.tuners.tvm.importing.torch.files import write_module

Shapes = Mapping[str, Sequence[int | str]]
"""Shapes of inputs by name; a size may be a range, as in `1..64`."""


class Session:
    """One model on one target, step by step; every step's time is in `times_s`.

    Steps return the session, so they can be chained. A step before the one it needs
    raises OrderError saying what to call first. Not thread-safe.
    """

    def __init__(
        self,
        target: str = "cpu",
        *,
        device: str | None = None,
        device_cores: int = 1,
        store: str | None = None,
    ) -> None:
        self.target = target
        self._settings = RunSettings(store=store, device_cores=device_cores)
        self.device = device or device_for(target)
        self.times_s: dict[str, float] = {}
        self.result: Mapping[str, Any] = {}
        self.run_id: str | None = None
        self._store = store
        self._model: str | None = None
        self._name = ""
        self._shapes: dict[str, Sequence[int | str]] = {}
        self._folder: Path | None = None
        self._bundle: Bundle | None = None
        self._scratch = Path(tempfile.mkdtemp(prefix="tuneloom-session-"))
        weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)

    @classmethod
    def load(cls, folder: str | Path) -> "Session":
        """A session around a bundle that was saved earlier; raises BundleError if it can't run here."""
        bundle = load_bundle(Path(folder))
        session = cls(target=bundle.manifest["target"]["text"])
        session._folder, session._bundle = Path(folder), bundle
        session._name = bundle.manifest["name"]
        return session

    def from_model(
        self, model: Any, example_inputs: Sequence[Any] = (), *, shapes: Shapes | None = None
    ) -> "Session":
        """Take a path, `zoo:NAME`, or a `torch.nn.Module` with example inputs."""
        with _timed(self.times_s, "from_model"):
            if isinstance(model, (str, Path)):
                text = str(model)
                self._model = text if text.startswith("zoo:") else str(Path(text).absolute())
                self._name = Path(text.removeprefix("zoo:")).stem
                require_source(text)
            else:
                self._model, self._name = self._exported(model, example_inputs)
            self._shapes = dict(shapes or {})
            self._folder = self._bundle = None
        return self

    def autotune(self, trials: int | None = None, /, **options: Unpack[JobOptions]) -> "Session":
        """Tune the model; options are those of jobs files, such as `trials`, `goal_ms` or `seed`."""
        self._require(self._model, "autotune", "from_model")
        self._tune({**options, **({} if trials is None else {"trials": trials})})
        return self

    def build(self) -> "Session":
        """Make the model ready to run; without `autotune` before it, with default schedules."""
        self._require(self._model, "build", "from_model")
        if self._folder is None:
            self._tune({"trials": 1})
        assert self._folder is not None
        with _timed(self.times_s, "build"):
            self._bundle = load_bundle(self._folder)
        return self

    def save(self, folder: str | Path) -> "Session":
        """Copy the bundle to a folder that is empty or not there yet, or to a new file ending in `.tlb`."""
        self._require(self._bundle, "save", "build")
        assert self._folder is not None
        place = Path(folder)
        with _timed(self.times_s, "save"):
            folders.require_free(place)
            copy(self._folder, place)
        self._folder = place
        self._keep_times()
        return self

    def run(self, *inputs: Any) -> Any:
        """NumPy in, NumPy out: one array, or a list of them if the model has several outputs."""
        self._require(self._bundle, "run", "build or Session.load")
        assert self._bundle is not None
        outputs = self._bundle.run(*inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def reset(self) -> None:
        """Forget what the model kept from earlier runs, if it keeps a state."""
        self._require(self._bundle, "reset", "build or Session.load")
        assert self._bundle is not None
        self._bundle.reset()

    def evaluate(self, seconds: float = 1.0, device_cores: int | None = None) -> dict[str, Any]:
        """Time the model: median, spread, all runs; on as many cores as it was tuned on, unless told."""
        self._require(self._bundle, "evaluate", "build or Session.load")
        assert self._folder is not None
        with _timed(self.times_s, "evaluate"):
            timed = evaluate_bundle(self._folder, seconds, device_cores)
        self._keep_times()
        return timed

    def _tune(self, options: Mapping[str, Any]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="bundle-", dir=self._scratch))
        known = {"name": self._name, "model": self._model, "target": self.target, "device": self.device}
        spec = job_spec({**known, "shapes": self._shapes, "out": str(folder), **options})
        with _timed(self.times_s, "autotune"):
            outcome = tune([spec], self._settings, "Session.autotune")
        self.run_id = outcome.run
        if outcome.failure is not None:
            raise outcome.failure
        self.result = outcome.jobs[0].result
        self._folder, self._bundle = folder, None

    def _keep_times(self) -> None:
        """Note with the run how long each step took."""
        if self.run_id is not None:
            with open_existing(self._store) as store:
                store.set_note(self.run_id, "session", self.times_s)

    def _exported(self, module: Any, example_inputs: Sequence[Any]) -> tuple[str, str]:
        """A torch module as a file that a worker can import."""
        path = self._scratch / f"{type(module).__name__}.pt2"
        write_module(module, example_inputs, path)
        return str(path), type(module).__name__

    def _require(self, thing: object, step: str, first: str) -> None:
        if thing is None:
            raise OrderError(f"call {first} before {step}")


@contextmanager
def _timed(times_s: dict[str, float], step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    times_s[step] = time.perf_counter() - started


__all__ = ["BundleError", "Session"]
