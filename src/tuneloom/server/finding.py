"""Jobs by their ids; another tenant's is as if it were not there."""

from typing import Annotated

from fastapi import Path

from tuneloom.server.callers import Caller
from tuneloom.server.problems import Problem
from tuneloom.store import Store, SubmittedJob

JobId = Annotated[
    str, Path(max_length=60, pattern=r"^[a-z0-9-]+$", description="the job's id", examples=["amber-heron-42"])
]


def found_job(store: Store, job: str, caller: Caller) -> SubmittedJob:
    """The job of this id that the caller may see; raises Problem if there is none."""
    found = store.submitted_job(job, caller.sees)
    if found is None:
        raise Problem(404, f"no job {job!r}; list yours to see what there is")
    return found
