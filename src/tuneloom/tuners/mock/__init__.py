"""A tuner that compiles and runs nothing: for trying the scheduler, and for tests."""

from tuneloom.tuners.mock.tuner import MockTuner

__all__ = ["MockTuner"]
