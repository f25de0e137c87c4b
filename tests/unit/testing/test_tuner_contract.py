"""Tuners that need no compiler fulfil the contract."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from tuneloom.model import Task, Tuner
from tuneloom.testing.contracts.tuner import TunerContract
from tuneloom.tuners.mock import MockTuner
from tuneloom.tuners.mock.kernel import mock_tasks

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_tuner.py"


class TestMockTuner(TunerContract):
    def tuner(self) -> Tuner:
        return MockTuner()

    def task(self) -> Task:
        return mock_tasks("mock:size=12")[0]


class TestExampleTuner(TunerContract):
    def tuner(self) -> Tuner:
        spec = spec_from_file_location("own_tuner", EXAMPLE)
        assert spec is not None and spec.loader is not None
        module = sys.modules["own_tuner"] = module_from_spec(spec)
        spec.loader.exec_module(module)
        tuner: Tuner = module.ChunkTuner()
        return tuner

    def task(self) -> Task:
        return Task(key="sum-1000", name="sum of 1000 numbers", payload=b"1000")
