"""A plan without tuning: for the command line and for tests."""

from dataclasses import dataclass

from tuneloom.app.conducting.calling import call_in_worker
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.reuse.planning import JobPlan
from tuneloom.app.reuse.steps import FIT, fits_wanted
from tuneloom.errors import InputError
from tuneloom.model import JobSpec, ModelRecipe, ModelSummary, Task, TaskSpace
from tuneloom.store import Store, open_existing
from tuneloom.tuners.tvm.models.opening import open_model
from tuneloom.tuners.tvm.search.spaces import describe

_SURVEY = "tuneloom.app.reuse.asking:survey"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSurvey:
    """A model's tasks with their spaces."""

    summary: ModelSummary
    spaces: tuple[TaskSpace, ...]


def survey(recipe: ModelRecipe) -> ModelSurvey | InputError:
    """Import a model and describe the space of each of its tasks; runs in a worker."""
    summary = open_model(recipe)
    if isinstance(summary, InputError):
        return summary
    return ModelSurvey(summary=summary, spaces=tuple(describe(summary.tasks)))


def plan_model(spec: JobSpec, place: str | None = None) -> tuple[JobPlan, tuple[Task, ...]]:
    """What a job would do now, and its tasks; nothing is measured or kept."""
    found: ModelSurvey = call_in_worker(_SURVEY, ModelRecipe.of("plan", spec))
    with open_existing(place) as store:
        return plan_tasks(store, spec, found), found.summary.tasks


def plan_tasks(store: Store, spec: JobSpec, found: ModelSurvey) -> JobPlan:
    """The plan for tasks whose spaces are known."""
    tasks, reuse = found.summary.tasks, JobReuse(store, "", spec)
    families = (found.summary.family, *found.summary.relatives)
    if reuse.wanted:
        pairs, wanted = fits_wanted(tasks, reuse.look(families, tasks, found.spaces))
        texts = call_in_worker(FIT, wanted) if wanted else []
        for (key, donor), fitted in zip(pairs, texts, strict=True):
            reuse.take_foreign(key, donor, fitted)
    return reuse.plan(tasks, keep=False)
