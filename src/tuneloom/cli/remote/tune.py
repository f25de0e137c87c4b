"""`tuneloom tune|cancel --server URL`: what these commands do where the jobs are a server's."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.app.bundles.folders import require_free
from tuneloom.cli.job_options import add_job_options, remote_fields
from tuneloom.cli.parsing import Commands, add_quiet, tell
from tuneloom.cli.remote.jobs import (
    add_job_command,
    add_server_command,
    client_of,
    exit_code,
    submitted,
    watched,
)

if TYPE_CHECKING:
    from tuneloom.client import RemoteJob


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    add_job_command(subparsers, "cancel", "cancel a job of a server", cancel_job)
    tune = add_server_command(
        subparsers, "tune", "let a server tune models, and download the bundles", tune_models
    )
    tune.add_argument("models", nargs="+", metavar="MODEL", help="a model file, or zoo:NAME")
    add_quiet(tune)
    add_job_options(tune, remote_fields())


def cancel_job(options: argparse.Namespace) -> int:
    """End a job."""
    with client_of(options) as client:
        job = client.job(options.job).cancel()
    return tell(options, job.details, f"{job.id} is being cancelled; what it measured is kept", indent=2)


def tune_models(options: argparse.Namespace) -> int:
    """Submit all models, then watch and fetch each in turn."""
    code = 0
    if options.out is not None:
        require_free(Path(options.out))
    with client_of(options) as client:
        for each in submitted(client, options, options.models):
            job = watched(each.job, quiet=options.quiet or options.json)
            if options.out is not None and job.status == "finished":
                job.fetch(Path(options.out) / each.folder)
            folder = options.out and Path(options.out) / each.folder
            tell(options, job.details, _told(job, folder), indent=2)
            code = code or exit_code(job)
    return code


def _told(job: "RemoteJob", folder: Path | None) -> str:
    """What came of a job, as a job of this machine is told."""
    from tuneloom.cli.summary import job_line
    from tuneloom.store import JobRecord, JobStatus

    told = job.details
    spec = {"out": str(folder)} if folder is not None else {}
    record = JobRecord(
        id=f"{job.id}.1",
        run=job.id,
        name=told["name"],
        spec=spec,
        status=JobStatus(told["status"]),
        result=told["result"],
    )
    return f"{job_line(record)}\njob {job.id}"
