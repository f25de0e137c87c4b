"""What the parent of all workers does before it forks the first, where nothing but mock jobs runs."""

from tuneloom.tuners.mock.tuner import MockTuner


def warm_up() -> None:
    """Import all that the stages of mock jobs import; no compiler is among it."""
    import tuneloom.tuners.opening
    import tuneloom.tuners.stages

    tuneloom.tuners.stages.tuner_named(MockTuner.name)
