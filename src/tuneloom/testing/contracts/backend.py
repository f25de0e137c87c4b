"""What every backend and every implementer fulfils, as tests that their authors inherit.

class TestMyBackend(BackendContract):
    target = "mine"
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.resolving import backend_of_text, resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError
from tuneloom.model import Artifact, Candidate, Failure, Measurement, MeasuringRules, Task
from tuneloom.model.space import TVM, configured, implementer_of, values_in
from tuneloom.testing.models.perceptron import perceptron
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.inserting import claims_on, inserted
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, unpack
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.tuner import TvmTuner

_KEYS = "import json, sys; from tuneloom.testing.contracts.backend import keys_for; "
_RULES = MeasuringRules(repeats=1, min_repeat_ms=1.0)


def keys_for(target: str) -> list[str]:
    """The keys of a small network's kernels, which every process must find the same."""
    return [task.key for task in extract(lower(perceptron(), resolve_target(target)))]


class BackendContract:
    """Inherit, and say for which target; `runs_here` where this machine has the hardware."""

    target: str
    runs_here = True

    def spec(self) -> TargetSpec:
        return resolve_target(self.target)

    def lowered(self, model: ImportedModel | None = None) -> LoweredModel:
        return lower(model or perceptron(), self.spec())

    def test_a_target_is_resolved_by_the_backend_that_its_text_names(self) -> None:
        assert backend_of(self.spec()) is backend_of_text(self.target)
        assert backend_of_text(self.target).kinds

    def test_a_resolved_target_resolves_to_itself(self) -> None:
        assert resolve_target(self.spec().text) == self.spec()

    def test_a_type_that_it_does_not_compute_in_is_refused(self) -> None:
        backend, spec = backend_of(self.spec()), self.spec()
        for dtype in backend.dtypes(spec):
            backend.require_dtype(dtype, spec)
        with pytest.raises(TargetError, match="float3"):
            backend.require_dtype("float3", spec)

    def test_kernels_have_the_same_keys_in_every_process(self) -> None:
        code = _KEYS + f"print(json.dumps(keys_for({self.target!r})))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout.splitlines()[-1]) == keys_for(self.target)

    def test_every_kernel_begins_with_its_default_unless_guesses_are_good(self) -> None:
        from tuneloom.model import SearchOptions

        good = backend_of(self.spec()).good_guesses
        tasks = extract(self.lowered())
        assert tasks
        for task in tasks:
            search = TvmTuner().open(task, SearchOptions(seed=0, trials=8, batch=4), [])
            assert search.select(2)[0].origin in ({"guess", "default"} if good else {"default"})

    def test_a_model_without_schedules_computes_what_its_author_meant(self) -> None:
        self._require_hardware()
        model = perceptron()
        values = perceptron_inputs(model)
        (got,) = build_model(self.lowered(model), {}).open_here().run(values)
        np.testing.assert_allclose(got, perceptron_outputs(model, values), rtol=1e-3, atol=1e-5)

    def _require_hardware(self) -> None:
        if not self.runs_here:
            pytest.skip(f"{self.target} can't be run on this machine")


class ImplementerContract(BackendContract):
    """Inherit, and name an implementer of the target's backend that takes the products of a small network."""

    implementer: str

    def claimed(self) -> Iterator[tuple[Task, ModelKernel, Sequence[Any]]]:
        """The kernels that it takes, with its guesses."""
        for task in extract(self.lowered()):
            kernel = unpack(task)
            for one, claim in claims_on(kernel):
                if one.name == self.implementer:
                    yield task, kernel, claim.space.guesses

    def test_it_takes_some_kernels_and_leaves_others(self) -> None:
        taken = [task.name for task, _, _ in self.claimed()]
        assert 0 < len(taken) < len(extract(self.lowered()))

    def test_its_guesses_are_in_its_space(self) -> None:
        for _, kernel, guesses in self.claimed():
            (claim,) = (claim for one, claim in claims_on(kernel) if one.name == self.implementer)
            assert guesses
            for guess in guesses:
                assert all(value in claim.space.knobs[name] for name, value in guess.items())
                assert claim.refusal(guess) == ""

    def test_a_configuration_survives_as_text(self) -> None:
        for _, _, guesses in self.claimed():
            text = configured(self.implementer, guesses[0])
            assert implementer_of(text) == self.implementer != TVM
            assert values_in(text) == dict(guesses[0])

    def test_what_makes_no_sense_is_a_failure_and_not_an_error(self) -> None:
        for _, kernel, _ in self.claimed():
            assert isinstance(inserted(kernel, configured(self.implementer, {"nonsense": 1}), "x"), Failure)

    def test_every_guess_builds_and_runs(self) -> None:
        self._require_hardware()
        for task, _, guesses in self.claimed():
            for guess in guesses:
                candidate = Candidate(key="one", configuration=configured(self.implementer, guess))
                built = TvmTuner().build(task, candidate, _RULES)
                assert isinstance(built, Artifact), built
                assert isinstance(TvmTuner().profile(task, built, _RULES, None), Measurement)

    def test_models_with_its_code_compute_the_same_after_export_too(self, tmp_path: Any) -> None:
        self._require_hardware()
        model = perceptron()
        values = perceptron_inputs(model)
        chosen = {task.key: configured(self.implementer, guesses[-1]) for task, _, guesses in self.claimed()}
        compiled = build_model(self.lowered(model), chosen)
        compiled.export(tmp_path)
        from tuneloom.tuners.tvm.models.compiling.compiled import load_compiled

        again = load_compiled(tmp_path, compiled.inputs, compiled.outputs, device=compiled.device)
        for one in (compiled, again):
            (got,) = one.open_here().run(values)
            np.testing.assert_allclose(got, perceptron_outputs(model, values), rtol=1e-3, atol=1e-5)


def perceptron_inputs(model: ImportedModel) -> list[Any]:
    """Seeded values for the network."""
    random = np.random.default_rng(3)
    return [random.standard_normal(one.shape).astype(one.dtype) for one in model.inputs]


def perceptron_outputs(model: ImportedModel, values: Sequence[Any]) -> Any:
    """What NumPy computes."""
    from tuneloom.testing.models.perceptron import WEIGHTS

    hidden = np.maximum(values[0] @ WEIGHTS[0] + WEIGHTS[1], 0)
    scores = hidden @ WEIGHTS[2] + WEIGHTS[3]
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)
