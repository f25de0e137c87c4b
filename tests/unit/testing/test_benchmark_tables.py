"""The page of benchmarks names programs that exist."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module("tables")


def compared(cores: int, ratio: float, **more: float) -> dict[str, object]:
    same = {"model": "net", "trials": 60, "ours_s": ratio, "onnxruntime_s": 1.0, "spread": [ratio, ratio]}
    return same | {"cores": cores, "ratio": ratio, "difference": 0.0} | more


def test_every_section_names_the_program_that_measures_it(tables: ModuleType) -> None:
    assert len(tables.SECTIONS) > 10
    for section in tables.SECTIONS:
        program = section.command.split()[0]
        assert (ROOT / program).is_file(), section.title


def test_networks_are_summed_up_by_cores_and_trials(tables: ModuleType) -> None:
    rows = [compared(1, 0.5, against_openvino=1.1), compared(2, 0.7), compared(1, 2.0, against_openvino=1.0)]
    drawn = tables.networks.against_onnxruntime(rows).splitlines()
    assert drawn[2] == "| 1 | 60 | 2 | 1.00 | 1 | 2.00 | – | 1.05 | 1 of 2 |"
    assert drawn[3] == "| 2 | 60 | 1 | 0.70 | 0 | 0.70 | – | – | – |"


def graph(seconds: float, tolerance: int | None, **more: object) -> dict[str, object]:
    side = {"seconds": seconds, "tolerance": tolerance}
    both = {"inductor": {"seconds": 1.0, "tolerance": -6}, "tuneloom": side | more}
    return {"sample": "timm/net", "device": "cpu", "dtype": "float32", "eager": {"seconds": 2.0}} | both


def test_graphs_are_summed_up_by_what_is_right_and_what_is_slower(tables: ModuleType) -> None:
    rows = [graph(0.5, -4), graph(2.0, -10, in_use="PyTorch"), graph(2.1, None)]
    drawn = tables.graphs.tuned(rows).splitlines()
    assert "| inductor | 3 of 3 | 2.00 | 2.00 | 0 | – |" in drawn
    assert "| tuneloom | 2 of 3 | 1.00 | 0.95 | 1 | 1 |" in drawn
    assert f"| -4 | 2.000 | {(4.0 * 1.0 * 0.1) ** (1 / 3):.3f} |" in drawn


def test_graphs_of_several_machines_say_so(tables: ModuleType) -> None:
    rows = [graph(0.5, -4), graph(0.5, -4), graph(0.5, -4)]
    assert tables.graphs.tuned(rows).startswith("**cpu, float32**: 3 graphs.")
    for row, cpu in zip(rows, ("old", "new", "new"), strict=True):
        row["cpu"] = cpu
    assert tables.graphs.tuned(rows).startswith("**cpu, float32**: 3 graphs (2 on new, 1 on old).")


def test_convolutions_are_rounded_where_pytorch_rounds_them(tables: ModuleType) -> None:
    """The rule is drawn from these measurements: if either changes, they have to be compared again."""
    rows = [row for row in tables.results_of("gpu_tf32.jsonl") if not row["turned"]]
    agreed = [
        tables.transforms.rounded_by_us(row) == (row["tf32"]["error"] > tables.transforms.ROUNDED)
        for row in rows
    ]
    assert len(rows) > 1500
    assert sum(agreed) / len(rows) > 0.96


def test_transforming_is_estimated_as_it_was_measured(tables: ModuleType) -> None:
    rows = tables.results_of("winograd.jsonl")
    chosen = [row for row in rows if tables.transforms.estimated(row) < 0.8]
    gained = [row["direct_ms"] - row["transformed_ms"] for row in chosen]
    lost = -sum(ms for ms in gained if ms < 0)
    missed = [row for row in rows if row not in chosen and row["transformed_ms"] < 0.7 * row["direct_ms"]]
    assert len(chosen) > 40
    assert lost < sum(gained) / 1000, "layers that take longer when transformed hardly take any time"
    assert len(missed) < len(rows) / 10


def test_graphs_that_are_not_right_are_named(tables: ModuleType) -> None:
    rows = [{"sample": "a", "tolerance": -3}, {"sample": "b", "tolerance": 0}, {"sample": "c", "error": "no"}]
    drawn = tables.graphs.checked([*rows, {"sample": "d", "eager_error": "fails"}])
    first = "Right at t = -3: 1 of 3 graphs of the development sample"
    assert drawn.startswith(f"{first}; 1 more fail in PyTorch.")
    assert drawn.endswith("| b | t = 0 |\n| c | no |")
    unseen = [{"sample": "e", "tolerance": -4, "seeds": [7, 8]}]
    assert tables.graphs.checked([*rows, *unseen]).startswith(
        f"{first}, and 1 of 1 graphs of seeds 7 and 8, "
    )


def test_the_readme_says_what_was_measured(tables: ModuleType) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert tables.networks.headline(tables.results_of("against_onnxruntime_x86.json")) in readme
    assert tables.gpus.headline(tables.results_of("gpu_models.jsonl")) in readme


def test_results_of_any_form_become_tables(tables: ModuleType) -> None:
    drawn = tables.as_it_is({"runs": 3, "rows": [{"a": 1, "b": 0.123456}, {"a": 2000, "b": 1.0}]})
    assert "| runs | 3 |" in drawn
    assert "| 1 | 0.1235 |" in drawn and "| 2,000 | 1 |" in drawn


def test_every_page_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    named = [piece.partition(")")[0] for piece in readme.split("](")[1:]]
    assert len(named) > 10
    for name in named:
        assert name.startswith("http") or (ROOT / name.partition("#")[0]).exists(), name


def test_rows_of_networks_on_gpus_tell_their_commits_and_what_is_missing(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = [{"network": "net", "dtype": "float16", "batch": batch} for batch in (1, 8, 16)]
    (tmp_path / "rivals.jsonl").write_text("".join(f"{json.dumps(name)}\n" for name in names))
    monkeypatch.setattr(tables.gpus, "RIVALS", tmp_path / "rivals.jsonl")
    rivals = [{"mode": "max-autotune"}]
    rows = [{**names[0], "commit": "a1", "rivals": rivals}, {**names[1], "commit": "b2", "rivals": []}]
    told = tables.gpus.gpu_models(rows).splitlines()[-1]
    assert "Rows are of several commits: a1 (1), b2 (1)." in told
    assert "`max-autotune` was timed for net." in told
    assert told.endswith("Not measured with Tuneloom: net in float16 with batch 16.")


def test_a_pace_without_trials_of_the_other_is_a_bound(tables: ModuleType) -> None:
    ours = {"trials_a_minute": 700.0, "gpu_busy": 0.9, "after_a_minute": 1.0}
    stock = {"trials": 0, "built": 7, "seconds": 60.0}
    found = {"row": "net:float16:1", "ours": ours, "stock": stock, "ratio": 100.0, "ratio_at_least": True}
    drawn = tables.gpus.gpu_pace(found).splitlines()
    assert "| times as many | at least 100.0 |" in drawn and "| its builds that were done | 7 |" in drawn


def test_kernels_on_gpus_are_against_the_fastest_that_has_them(tables: ModuleType) -> None:
    row = {"problem": "it", "ours_us": 4.0, "cublaslt_us": None, "cudnn_us": 2.0, "torch_us": float("nan")}
    assert "| it | 4.0 | – | 2.0 | – | 0.50 |" in tables.gpus.gpu_kernels([row]).splitlines()
