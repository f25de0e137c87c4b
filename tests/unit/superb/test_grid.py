"""A grid becomes combinations, and whatever is wrong with it is named with its line."""

from pathlib import Path

import pytest

from tuneloom.app.grids.grid import PARAMETERS, Grid, read_grid
from tuneloom.cli.lab.superb import require_meant
from tuneloom.cli.main import main
from tuneloom.errors import InputError, JobsFileError

GRID = """
limit_s = 60

[grid]
models = ["zoo:squeezenet", ["zoo:resnet18", "own.onnx"]]
policy = ["load-aware", "sequential"]
seed = [0, 1, 2]

[fixed]
trials = 100
run_timeout = 2.5
"""


def grid_of(folder: Path, text: str) -> Grid:
    path = folder / "grid.toml"
    path.write_text(text)
    return read_grid(path)


def test_every_combination_comes_once_the_last_list_fastest(tmp_path: Path) -> None:
    grid = grid_of(tmp_path, GRID)
    combinations = list(grid.combinations())
    assert grid.count == len(combinations) == len({each.id for each in combinations}) == 12
    assert [each.parameters["seed"] for each in combinations[:4]] == [0, 1, 2, 0]
    assert all(each.parameters["trials"] == 100 for each in combinations)


def test_a_combination_is_a_command(tmp_path: Path) -> None:
    last = list(grid_of(tmp_path, GRID).combinations())[-1]
    assert last.arguments(tmp_path) == [
        *("zoo:resnet18", str(tmp_path / "own.onnx"), "--policy", "sequential", "--seed", "2"),
        *("--trials", "100", "--run-timeout", "2.5"),
    ]


def test_a_combination_keeps_its_id_when_others_are_added(tmp_path: Path) -> None:
    first = next(grid_of(tmp_path, GRID).combinations())
    grown = (
        GRID.replace("seed = [0, 1, 2]", "seed = [7, 0]")
        .replace("trials = 100", "")
        .replace("run_timeout", "trials = 100\nrun_timeout")
    )
    assert first.id in {each.id for each in grid_of(tmp_path, grown).combinations()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "line 1: nothing to vary; give lists of parameters in [grid]"),
        ("[grid]\nseed = [1]\n", "line 1: no models; list them in [grid]"),
        ("[grid]\nmodels = []\n", "line 2: the list 'models' is empty"),
        ('[grid]\nmodels = ["a"]\nsed = [1]', "line 3: unknown key 'sed'; did you mean 'seed'?"),
        ('[grid]\nmodels = ["a"]\nseed = 1', "line 3: 'seed' must be a list in [grid], got 1; see [fixed]"),
        ('[grid]\nmodels = ["a"]\nseed = [1, "x"]', "line 3: 'seed' must be a whole number of at least 0"),
        ('[grid]\nmodels = ["a"]\nseed = [1, 1]', "line 3: the list 'seed' has 1 twice"),
        ('[grid]\nmodels = ["a", []]', "line 2: 'models' must be a model, or a list of models"),
        ('[grid]\nmodels = ["a"]\npolicy = ["best"]', "line 3: 'policy' must be one of load-aware, "),
        (
            '[fixed]\nseed = 1\n[grid]\nmodels = ["a"]\nseed = [2]',
            "line 5: 'seed' is already fixed in line 2",
        ),
        ('[fixed]\ntrials = [1]\n[grid]\nmodels = ["a"]', "line 2: 'trials' must be a whole number"),
        ("[gird]\n", "line 1: unknown key 'gird'; did you mean 'grid'?"),
        ("limit_s = 0\n", "line 1: 'limit_s' must be a number above 0, got 0"),
        ("[grid\n", "grid.toml, line 1: expected"),
    ],
)
def test_errors_name_the_line_and_the_remedy(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(JobsFileError) as caught:
        grid_of(tmp_path, text)
    assert expected in str(caught.value)


def large(folder: Path) -> Grid:
    seeds = ", ".join(map(str, range(1001)))
    return grid_of(folder, f'[grid]\nmodels = ["zoo:squeezenet", "zoo:resnet18"]\nseed = [{seeds}]\n')


class Terminal:
    def __init__(self, *, there: bool) -> None:
        self._there = there

    def isatty(self) -> bool:
        return self._there


def test_a_large_grid_is_refused_where_nobody_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(there=False))
    with pytest.raises(InputError, match=r"2,002 combinations \(2 models × 1001 seed\); add --yes"):
        require_meant(large(tmp_path), yes=False)
    require_meant(large(tmp_path), yes=True)


@pytest.mark.parametrize(("answer", "runs"), [("y", True), ("YES ", True), ("", False), ("n", False)])
def test_a_large_grid_asks_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, runs: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(there=True))
    monkeypatch.setattr("builtins.input", lambda _question: answer)
    if runs:
        require_meant(large(tmp_path), yes=False)
    else:
        with pytest.raises(InputError, match="nothing was run"):
            require_meant(large(tmp_path), yes=False)


def test_a_grid_of_a_million_is_counted_without_making_it(tmp_path: Path) -> None:
    thousand = f"[{', '.join(map(str, range(1, 1001)))}]"
    text = f'[grid]\nmodels = ["a"]\nseed = {thousand}\ntrials = {thousand}\nbatch = {thousand}\n'
    assert grid_of(tmp_path, text).count == 10**9


def test_the_commands_can_be_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    assert main(["superb", str(tmp_path / "grid.toml"), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "tuneloom tune zoo:squeezenet --policy load-aware --seed 0 --trials 100 --run-timeout 2.5"
    )
    assert len(lines) == 12


def test_every_parameter_is_documented() -> None:
    page = Path(__file__).parents[3].joinpath("docs", "superb.md").read_text()
    assert [name for name in PARAMETERS if f"`{name}`" not in page] == []
