"""Shells complete commands, options and their values."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tuneloom.cli.completion import places
from tuneloom.cli.main import main, parser

SHELLS = {"bash": ("-n",), "zsh": ("-n",), "fish": ("--no-execute",)}


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    asked = " ".join(f"'{word}'" for word in words)
    place = f"COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}"
    ask = f"source {script}; {place}; _tuneloom; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "tuneloom.bash"
    command = [sys.executable, "-m", "tuneloom", "completion", "bash"]
    path.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("tuneloom", "eval"), ["evaluate"]),
        (("tuneloom", "tune", "net.onnx", "--tri"), ["--trials"]),
        (("tuneloom", "bank", "sta"), ["stats"]),
        (("tuneloom", "tune", "--reuse", "transfer-"), ["transfer-only"]),
        (("tuneloom", "--server", "url", "canc"), ["cancel"]),
    ],
    ids=["a command", "an option", "a command of a group", "a value", "after an option"],
)
def test_bash_offers_what_may_follow(script: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(script, *words) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_valid_in_its_shell(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    assert "evaluate" in (tmp_path / "script").read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, *SHELLS[shell], str(tmp_path / "script")], check=True)


def test_every_place_of_the_command_line_is_known() -> None:
    known = {place.path: place for place in places(parser())}
    assert "--trials" in known["tune",].options and ("bank", "stats") in known
    assert known["tune",].values["--reuse"][:1] == ("auto",)
