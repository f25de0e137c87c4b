"""`tuneloom doctor`: what this machine offers, what disturbs it, and what to do about it."""

import argparse
import json
from collections.abc import Sequence

from tuneloom.app.doctor import machine, noise, software
from tuneloom.app.doctor.findings import Finding, Severity, examined
from tuneloom.cli.parsing import Commands, add_command, print_rows
from tuneloom.errors import BudgetError

DESCRIPTION = """\
Examine this machine: cores, clocks, limits, memory, linker, GPUs, versions, the server's port and
the store, and how steady a fixed piece of work is on the core that measurements use. Every problem
comes with a remedy. Exits with 1 if something that tuning needs does not work.
"""

_STYLES = {Severity.WARNING: "yellow", Severity.BROKEN: "red", Severity.GOOD: "green"}


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "doctor", DESCRIPTION, examine, store=True, json="print JSON")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="how long to time the fixed work (default: 2)"
    )


def examine(options: argparse.Namespace) -> int:
    """Print what was found, and whether tuning can work here."""
    if not 0 < options.seconds <= 600:
        raise BudgetError(f"--seconds is {options.seconds:g}; give a number from 0 to 600")
    findings = everything(options.store, options.seconds)
    if options.json:
        print(json.dumps([finding.to_json() for finding in findings], indent=2))
    else:
        rows = [(each.name, each.value, each.verdict.value, each.remedy) for each in findings]
        print_rows(
            ("what", "found", "verdict", "remedy"), rows, styles={k.value: v for k, v in _STYLES.items()}
        )
    return int(any(finding.verdict is Severity.BROKEN for finding in findings))


def everything(store: str | None, seconds: float) -> Sequence[Finding]:
    """All findings; noise comes first, before the other checks make any."""
    return examined(
        [
            ("noise", lambda: noise.noise(seconds)),
            ("cores", machine.cores),
            ("clock governor", machine.clocks),
            ("CPU limit", machine.limits),
            ("memory", machine.memory),
            ("load", machine.load),
            ("versions", software.versions),
            ("linker", software.tools),
            ("GPUs", software.gpus),
            ("port", software.port),
            ("store", lambda: software.store(store)),
        ]
    )
