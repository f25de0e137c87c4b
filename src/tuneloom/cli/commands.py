"""Which module has which command: only that one is imported when a command is called."""

import argparse
import importlib
from collections.abc import Sequence
from typing import Any

GROUPS = {
    "local.tune": {
        "tune": "tune models and write bundles",
        "resume": "resume an interrupted run",
    },
    "local.demo": {"demo": "tune a network that comes with the package"},
    "remote.jobs": {
        "submit": "submit a model to a server",
        "jobs": "list the jobs of a server",
        "show": "show a job of a server",
        "watch": "watch a job of a server until it ends",
        "fetch": "download the bundle of a job",
        "login": "save a token for a server",
    },
    "hosting.serve": {"serve": "serve the web page and the API, and execute what is submitted"},
    "hosting.farm": {"farm": "check a farm, or show what it is doing"},
    "hosting.executor": {"executor": "execute submitted runs"},
    "hosting.board": {"board": "serve this machine as a board of a farm"},
    "local.jobs": {
        "add": "add jobs to a running run",
        "cancel": "cancel one job of a running run, or all",
        "pause": "pause a job of a running run",
        "unpause": "continue a paused job",
        "stages": "print how long each stage of a run took",
    },
    "local.models": {
        "tasks": "list the kernels of a model and what is known about them",
        "run": "run a bundle on NumPy files",
        "evaluate": "time a bundle: median and spread",
        "zoo": "list the built-in models",
    },
    "local.records": {
        "export": "write a run's records as a stock MetaSchedule database",
        "import": "import a stock MetaSchedule database into the bank",
    },
    "local.runs": {"runs": "list runs"},
    "lab.kernel": {"kernel": "tune hand-written kernels"},
    "local.report": {"report": "write an HTML report about a run"},
    "lab.replay_log": {"replay-log": "replay the scheduling of a run from its log"},
    "lab.simulate": {"simulate": "simulate jobs and compare scheduling policies"},
    "lab.superb": {"superb": "run all combinations of a parameter grid"},
    "local.plan": {"plan": "show what tuning a model would reuse"},
    "local.doctor": {"doctor": "show what this machine offers and what disturbs measurements"},
    "completion": {"completion": "print a script that completes commands in a shell"},
    "local.bank": {"bank": "inspect, exchange and prune the records of all runs"},
}
"""Modules in the rooms beside this one, with the commands of each and one line about every command."""

ON_SERVER = {"cancel": "remote.tune", "tune": "remote.tune"}
"""Modules that have a command in place of the one above when --server is given."""

_MODULES = {command: module for module, commands in GROUPS.items() for command in commands}


class CommandsAction(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Knows all commands by name, and makes the parser of one when it is called."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for commands in GROUPS.values():
            for name, text in commands.items():
                super().add_parser(name, help=text, add_help=False)

    def add_parser(self, name: str, *, deprecated: bool = False, **options: Any) -> Any:
        """Put the real parser in the place of its name, which is listed already."""
        options.pop("help", None)
        self._name_parser_map.pop(name, None)
        return super().add_parser(name, **options)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        command = str(values[0]) if values else ""
        if command in _MODULES:
            here = _MODULES[command]
            module = ON_SERVER.get(command, here) if _means_server(values or (), namespace) else here
            if getattr(namespace, "server", None) is not None and not module.startswith("remote."):
                parser.error(f"{command!r} works with runs of this machine; omit --server")
            importlib.import_module(f"tuneloom.cli.{module}").add_parser(self)
        super().__call__(parser, namespace, values, option_string)


def _means_server(words: Sequence[Any], namespace: argparse.Namespace) -> bool:
    said = any(str(word).partition("=")[0] == "--server" for word in words)
    return said or getattr(namespace, "server", None) is not None
