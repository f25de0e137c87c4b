"""`tuneloom plan`: what tuning a model would reuse, without tuning it."""

import argparse
import json

from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.sources import located
from tuneloom.app.reuse.asking import plan_model
from tuneloom.app.reuse.planning import Action, JobPlan, TaskPlan
from tuneloom.cli.job_options import add_job_options, fields_named, job_values
from tuneloom.cli.parsing import Commands, add_command, print_rows
from tuneloom.model import Task

DESCRIPTION = """\
Show what `tuneloom tune` would reuse for a model: which kernels are in the bank, which are
similar to each other, which kernel represents a group, which records each starts from, and
how long tuning may take. Nothing is measured or changed.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the command to the program."""
    parser = add_command(subparsers, "plan", DESCRIPTION, show_plan, store=True, json="print JSON")
    parser.add_argument("model", metavar="MODEL", help="a model file, or zoo:NAME")
    add_job_options(parser, fields_named("reuse", "trials", "target", "device", "shapes"))


def show_plan(options: argparse.Namespace) -> int:
    """Print the plan as JSON, as a table on a terminal, or as lines with tabs."""
    spec = job_spec({"name": "plan", "model": located(options.model), **job_values(options)})
    plan, tasks = plan_model(spec, options.store)
    if options.json:
        print(json.dumps(plan.to_json(), indent=2))
        return 0
    rows = [_cells(own, task, plan) for own, task in zip(plan.tasks, tasks, strict=True)]
    print_rows(("kernel", "shapes", "what", "why"), rows)
    print(summary(plan))
    return 0


def summary(plan: JobPlan) -> str:
    """The plan in one line."""
    counts = {action: sum(own.action is action for own in plan.tasks) for action in Action}
    parts = [f"{count} {_SPOKEN[action]}" for action, count in counts.items() if count]
    expected = "" if plan.expected_s is None else f", about {_duration(plan.expected_s)}"
    return f"{plan.mode}: {', '.join(parts)}; up to {plan.trials} trials{expected}"


_SPOKEN = {
    Action.TUNE: "tuned from scratch",
    Action.CONTINUE: "tuned further",
    Action.TRANSFER: "started from similar kernels in the bank",
    Action.REPRESENT: "tuned for similar kernels as well",
    Action.FOLLOW: "started from those kernels",
    Action.KEEP: "left untuned",
}


def _cells(own: TaskPlan, task: Task, plan: JobPlan) -> tuple[str, str, str, str]:
    why = own.reason
    if own.action is Action.FOLLOW and own.representative is not None:
        why = f"starts from the best schedule of {plan.of(own.representative).name}, then refined"
    return (own.name, task.shapes, own.action.value, why)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
