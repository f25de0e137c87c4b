"""Asking for help is quick: no command's machinery is imported before it is needed."""

import argparse
import importlib
import json
import subprocess
import sys

import pytest

from tuneloom.cli.commands import GROUPS
from tuneloom.cli.main import parser

HEAVY = ("tvm", "torch", "numpy", "scipy", "sqlalchemy", "rich", "onnx", "xgboost")
ASK = """
import json, sys
from tuneloom.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported(*words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", ASK, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "words",
    [("--help",), ("--version",), *((name, "--help") for name in ("tune", "tasks", "runs", "add", "report"))],
    ids=" ".join,
)
def test_help_imports_no_heavy_package(words: tuple[str, ...]) -> None:
    assert imported(*words).isdisjoint(HEAVY)


@pytest.mark.parametrize("module", GROUPS)
def test_the_list_of_commands_has_those_of_every_module(module: str) -> None:
    plain = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(f"tuneloom.cli.{module}").add_parser(plain)
    assert list(plain.choices) == list(GROUPS[module])


@pytest.mark.parametrize("command", [name for commands in GROUPS.values() for name in commands])
def test_every_command_of_the_list_is_there(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: tuneloom {command}" in capsys.readouterr().out
