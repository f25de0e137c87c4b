"""Build and profile of one candidate, in the process that calls; light to import in a worker."""

import json
import time

import cloudpickle

from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Measurement, MeasuringRules, Task
from tuneloom.tuners.kernel.cargo import builder_of, runner_of
from tuneloom.tuners.kernel.kernel import WrongResult, as_built, as_ran, is_right, spoils

_MESSAGE = 500  # characters of an exception that a failure keeps


def build(task: Task, candidate: Candidate, rules: MeasuringRules) -> Artifact | Failure:
    """Build one configuration; an exception of the builder is a build error."""
    began = time.perf_counter()
    try:
        made = as_built(builder_of(task)(json.loads(candidate.configuration)))
        payload = cloudpickle.dumps(made.payload)
    except TimeoutError as error:
        return Failure(kind=FailureKind.BUILD_TIMEOUT, message=_told(error))
    except Exception as error:
        return Failure(kind=FailureKind.BUILD_ERROR, message=_told(error))
    spent = time.perf_counter() - began
    return Artifact(payload=payload, features=dict(made.features), build_s=spent)


def profile(
    task: Task, artifact: Artifact, rules: MeasuringRules, best_s: float | None
) -> Measurement | Failure:
    """Run what was built and check its output; an exception of the runner is a run error.

    After such an error the process is not trusted with another run, unless the runner
    says so: a GPU that was misused refuses everything its process asks for afterwards.
    """
    began = time.perf_counter()
    try:
        run, check = runner_of(task)
        ran = as_ran(run(cloudpickle.loads(artifact.payload)), checked=check is not None)
        right = is_right(check, ran.output)
        spent = time.perf_counter() - began
        if right:
            return Measurement(seconds=tuple(ran.seconds), profile_s=spent)
    except WrongResult as error:
        return Failure(kind=FailureKind.WRONG_RESULT, message=_told(error))
    except TimeoutError as error:
        return Failure(kind=FailureKind.RUN_TIMEOUT, message=_told(error), spoils_worker=spoils(error))
    except Exception as error:
        return Failure(kind=FailureKind.RUN_ERROR, message=_told(error), spoils_worker=spoils(error))
    return Failure(kind=FailureKind.WRONG_RESULT, message="the output differs from the reference")


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_MESSAGE]
