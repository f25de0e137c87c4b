"""`tuneloom submit|jobs|show|watch|fetch --server URL` and `tuneloom login`: jobs of a server."""

import argparse
import getpass
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneloom.cli.job_options import add_job_options, job_values, remote_fields
from tuneloom.cli.parsing import Command, Commands, add_command, count, print_rows, tell
from tuneloom.errors import InputError, TuneloomError

if TYPE_CHECKING:
    from tuneloom.client import Client, RemoteJob

LOGIN = """\
Save a token for a server, in a file that only you can read; other commands then use it. The token
is asked for, or read from standard input.

  tuneloom login http://farm:8321
"""
COLUMNS = ("job", "state", "name", "created", "budget", "before", "after")
NUMBERS = frozenset({"budget", "before", "after"})
STYLES = {"running": "cyan", "finished": "green", "failed": "red", "cancelled": "yellow"}


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    submit = add_server_command(subparsers, "submit", "submit a model to a server", submit_job)
    submit.add_argument("model", metavar="MODEL", help="a model file, zoo:NAME, or the digest of an upload")
    submit.add_argument("--name", help="name of the job (default: the model's name)")
    submit.add_argument(
        "--key", help="idempotency key: submitting again with the same key returns the same job"
    )
    add_job_options(submit, remote_fields())
    jobs = add_server_command(subparsers, "jobs", "list the jobs of a server", list_jobs)
    jobs.add_argument(
        "--status", action="append", metavar="STATE", help="show only jobs in this state; may be repeated"
    )
    jobs.add_argument(
        "--limit", type=count, default=50, metavar="N", help="show only the newest N jobs (default: 50)"
    )
    add_job_command(subparsers, "show", "show a job of a server", show_job)
    add_job_command(subparsers, "watch", "watch a job of a server until it ends", watch_job)
    fetch = add_job_command(subparsers, "fetch", "download the bundle of a job", fetch_bundle)
    fetch.add_argument(
        "--out", required=True, metavar="DIR", help="folder for the bundle; must be new or empty"
    )
    login = add_command(subparsers, "login", LOGIN, log_in)
    login.add_argument(
        "url", nargs="?", metavar="URL", help="address of the server (default: --server, TUNELOOM_SERVER)"
    )


def add_server_command(
    subparsers: Commands, name: str, words: str, function: Command
) -> argparse.ArgumentParser:
    """Add a command that asks a server."""
    text = f"{words[0].upper()}{words[1:]}."
    parser = add_command(subparsers, name, text, function, help=words, json="print JSON")
    words = "address of the server (default: TUNELOOM_SERVER)"
    parser.add_argument("--server", default=argparse.SUPPRESS, metavar="URL", help=words)
    return parser


def add_job_command(
    subparsers: Commands, name: str, words: str, function: Command
) -> argparse.ArgumentParser:
    """Add a command that asks a server about one job."""
    parser = add_server_command(subparsers, name, words, function)
    parser.add_argument("job", metavar="JOB", help="id of the job")
    return parser


def client_of(options: argparse.Namespace) -> "Client":
    """A client for the server of the command line or the environment."""
    return client_class()(getattr(options, "server", None))


def client_class() -> "type[Client]":
    """What talks to servers; raises InputError where its extra is not installed."""
    try:
        from tuneloom.client import Client
    except ModuleNotFoundError as error:
        raise InputError(
            f"a connection to a server needs {error.name}: pip install 'tuneloom[client]'"
        ) from error
    return Client


def submit_job(options: argparse.Namespace) -> int:
    """Submit, and print the job's id."""
    if options.out is not None:
        raise InputError("a server keeps the bundle; get it with `tuneloom fetch JOB --out DIR`")
    with client_of(options) as client:
        jobs = [each.job for each in submitted(client, options, [options.model], options.name, options.key)]
    for job in jobs:
        tell(options, job.details, job.id, indent=2)
    return 0


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job of the command line; `folder` tells its bundle apart from those of the others."""

    job: "RemoteJob"
    folder: Path


def submitted(
    client: "Client",
    options: argparse.Namespace,
    models: Sequence[str],
    name: str | None = None,
    key: str | None = None,
) -> list[Submitted]:
    """One job for each model, or for each of several devices; names and folders then say which is which."""
    values = job_values(options)
    if len(models) == 1 and len(options.device or ()) < 2:
        named: dict[str, Any] = {"name": name} if name else {}
        return [Submitted(client.submit(models[0], key=key, **values, **named), Path())]
    from tuneloom.app.requests.sources import numbered

    names = numbered([name or short_name(model) for model in models])
    found = []
    for (called, model), device in product(zip(names, models, strict=True), options.device or [None]):
        parts = [called] if len(models) > 1 else []
        own: dict[str, Any] = {"name": called}
        if len(options.device or ()) > 1:
            parts, own = [*parts, device], {"name": f"{called}-{device}", "device": device}
        own_key = "-".join([key, *parts]) if key else None
        found.append(Submitted(client.submit(model, key=own_key, **values | own), Path(*parts)))
    return found


def short_name(model: str) -> str:
    """What people call a model: the name of its file or in the zoo, or the beginning of its digest."""
    scheme, separator, rest = model.partition(":")
    if not separator:
        return Path(model).stem[:12] if len(model) == 64 else Path(model).stem
    return scheme if "=" in rest else rest


def list_jobs(options: argparse.Namespace) -> int:
    """Print jobs as JSON, as a table on a terminal, or as lines with tabs."""
    with client_of(options) as client:
        jobs = [job.details for job in client.jobs(limit=options.limit, status=options.status)]
    if options.json:
        print(json.dumps(jobs, indent=2))
    elif not jobs:
        print("no jobs yet; `tuneloom submit MODEL` starts one")
    else:
        print_rows(COLUMNS, [cells(job) for job in jobs], numbers=NUMBERS, styles=STYLES)
    return 0


def show_job(options: argparse.Namespace) -> int:
    """Print what is known of a job."""
    with client_of(options) as client:
        details = client.job(options.job).details
    if options.json:
        print(json.dumps(details, indent=2))
        return 0
    print_rows(COLUMNS, [cells(details)], numbers=NUMBERS, styles=STYLES)
    for words in filter(None, (details["failure"], _bundle_words(details))):
        print(words)
    return 0


def watch_job(options: argparse.Namespace) -> int:
    """Show a job as it goes on; the exit code says how it ended."""
    with client_of(options) as client:
        job = watched(client.job(options.job), quiet=options.json)
    tell(options, job.details, f"{job.id} {job.status}", indent=2)
    return exit_code(job)


def watched(job: "RemoteJob", *, quiet: bool) -> "RemoteJob":
    """Draw what happens to a job until it has ended, as a run of this machine is drawn."""
    from tuneloom.app.runs.view import RunView
    from tuneloom.cli.live import display_for

    with display_for(quiet=quiet) as display:
        for event in job.events():
            view = event.data.get("view") if event.name == "view" else None
            if display is not None and view is not None:
                display.show(RunView.from_json(view))
    return job.refresh()


def fetch_bundle(options: argparse.Namespace) -> int:
    """Download a bundle."""
    with client_of(options) as client:
        folder = client.job(options.job).fetch(Path(options.out))
    told = {"job": options.job, "folder": str(folder)}
    return tell(options, told, f"bundle of {options.job} in {folder}", indent=2)


def log_in(options: argparse.Namespace) -> int:
    """Check a token and keep it."""
    talking = client_class()
    from tuneloom.client.logins import keep_token, server_url

    url = server_url(options.url or getattr(options, "server", None))
    token = getpass.getpass("token: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not token.strip():
        raise InputError("no token; paste the one that `tuneloom serve` printed or an administrator made")
    with talking(url, token.strip()) as client:
        told = client.check()
    path = keep_token(url, token.strip())
    print(f"logged in to {url} as {told['role']} of {told['tenant']}; the token is in {path}")
    return 0


def exit_code(job: "RemoteJob") -> int:
    """0 for a finished job; raises the error of one that failed."""
    if job.status == "failed":
        raise TuneloomError(str(job.details.get("failure") or f"job {job.id} failed"))
    return 0 if job.status == "finished" else 1


def cells(job: dict[str, Any]) -> list[str]:
    """A job as a row of a table."""
    created = datetime.fromtimestamp(job["created"]).astimezone().strftime("%Y-%m-%d %H:%M")
    times = [f"{job[key]:.3f} ms" if job[key] is not None else "–" for key in ("before_ms", "after_ms")]
    return [job["id"], job["status"], job["name"], created, str(job["trials"]), *times]


def _bundle_words(job: dict[str, Any]) -> str:
    bundle = job.get("bundle")
    if bundle is None:
        return ""
    return f"bundle of {bundle['size_bytes']} bytes: tuneloom fetch {job['id']} --out DIR"
