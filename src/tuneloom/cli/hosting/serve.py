"""`tuneloom serve`: tuning as a service, for one machine or a team."""

import argparse
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tuneloom.cli.parsing import Commands, add_command, count, natural

if TYPE_CHECKING:
    from tuneloom.server.settings import ServerSettings

DESCRIPTION = """\
Serve the web page and the API, and execute what is submitted, until SIGTERM or Ctrl-C. The first
start prints an administrator's token, which is not shown again.

  tuneloom serve
  tuneloom serve gc --dry-run --config serve.toml
  tuneloom serve --store postgresql://tuning@db/tuneloom --executors none --host 0.0.0.0

When the server is stopped, running stages finish; the next start continues the jobs.
`tuneloom executor --store …` adds executors on other machines.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "serve", DESCRIPTION, run_server, store=True)
    parser.add_argument(
        "action", nargs="?", choices=["gc"], help="gc: remove expired files and logs, then exit"
    )
    parser.add_argument("--dry-run", action="store_true", help="with gc: only print what would be removed")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings in a TOML file; options override them"
    )
    parser.add_argument(
        "--executors", type=_executors, metavar="N", help="executors to start, or none (default: 1)"
    )
    parser.add_argument("--farm", metavar="FILE", help="use the machines and devices of a farm file")
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=natural, help="port to listen on (default: 8321; 0: any free one)")
    parser.add_argument(
        "--files", metavar="URL", help="object store for models and bundles, e.g. s3://bucket/dir"
    )
    parser.add_argument(
        "--device-cores", type=count, metavar="N", help="number of cores to measure on (default: 1)"
    )


def _collect(settings: "ServerSettings", *, dry_run: bool) -> int:
    """Remove what is too old, or print what would be; returns the exit code."""

    from tuneloom.app.hosting.retention import collect
    from tuneloom.store import open_existing

    count, size = 0, 0
    with open_existing(settings.store, files=settings.files) as store:
        for removal in collect(store, settings.retention, dry_run=dry_run):
            print(f"{removal.kind}  {removal.name}")
            count, size = count + 1, size + (removal.size_bytes or 0)
    print(f"{'would remove' if dry_run else 'removed'} {count} items, {size / 1e6:.1f} MB")
    return 0


def _executors(text: str) -> int:
    return 0 if text == "none" else count(text)


def run_server(options: argparse.Namespace) -> int:
    """Serve until asked to end."""
    from tuneloom.errors import InputError
    from tuneloom.server.settings import read_settings

    names = ("store", "executors", "host", "port", "device_cores", "files", "farm")
    settings = read_settings(options.config, {name: getattr(options, name) for name in names})
    if options.action == "gc":
        return _collect(settings, dry_run=options.dry_run)
    if options.dry_run:
        raise InputError("--dry-run is for `tuneloom serve gc`; omit it to serve")
    return _serve(settings)


def _serve(settings: "ServerSettings") -> int:
    from tuneloom.errors import InputError

    try:
        from tuneloom.server.running import first_token, serve
    except ModuleNotFoundError as error:
        raise InputError(f"serving needs {error.name}: pip install 'tuneloom[server]'") from error
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)

    def told(address: str) -> None:
        token = first_token(settings.store)  # not before: a start that fails could not show it
        print(f"tuneloom serves on {address}", flush=True)
        if token is not None:
            print(f"first token, shown this once: {token}", flush=True)

    serve(settings, told)
    return 0
