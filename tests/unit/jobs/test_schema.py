"""A job is one schema: what is declared once can be said everywhere, and is written down everywhere."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, get_type_hints

import pytest
from pydantic import ValidationError

from tuneloom.app.grids.grid import PARAMETERS
from tuneloom.app.requests import describing, job_specs, schema
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.requests.jobs_file import read_jobs
from tuneloom.app.requests.schema import job_fields
from tuneloom.cli.local.tune import job_specs as specs_of_words
from tuneloom.cli.main import parser
from tuneloom.errors import BudgetError, InputError, JobsFileError
from tuneloom.model import JOB_FIELDS, Budget, JobField, JobSpec
from tuneloom.model.fields import COUNT, fields_of, job_field
from tuneloom.model.options import JobOptions
from tuneloom.server.bodies.asked import JobAsked, job_body

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class WiderSpec(JobSpec):
    """A job with one more field: this line is all that is added."""

    threads: int = job_field(COUNT, "number of threads", default=3, option="--threads", metavar="N")


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobField]:
    """The house as it would be if JobSpec had one more field."""
    monkeypatch.setattr(schema, "JOB_FIELDS", fields_of(WiderSpec))
    monkeypatch.setattr(job_specs, "JobSpec", WiderSpec)
    yield next(field for field in fields_of(WiderSpec) if field.name == "threads")


def words(*options: str) -> JobSpec:
    (spec,) = specs_of_words(parser().parse_args(["tune", "net.onnx", *options]))
    return spec


def test_a_field_that_is_declared_is_an_option_with_its_help(
    wider: JobField, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words("--threads", "5").threads == 5  # type: ignore[attr-defined]
    assert words().threads == 3  # type: ignore[attr-defined]
    with pytest.raises(SystemExit):
        words("--threads", "0")
    assert "argument --threads: must be a whole number of at least 1, got '0'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser().parse_args(["submit", "--help"])
    assert "--threads N           number of threads (default: 3)" in capsys.readouterr().out


def test_a_field_that_is_declared_is_a_key_of_jobs_files(wider: JobField, tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(
        '[defaults]\nthreads = 2\n[[jobs]]\nmodel = "a.onnx"\n[[jobs]]\nmodel = "b"\nthreads = 4\n'
    )
    assert [job.threads for job in read_jobs(path)] == [2, 4]  # type: ignore[attr-defined]
    path.write_text('[[jobs]]\nmodel = "a.onnx"\nthreads = "many"\n')
    with pytest.raises(
        JobsFileError, match="line 3: 'threads' must be a whole number of at least 1, got 'many'"
    ):
        read_jobs(path)


def test_a_field_that_is_declared_is_part_of_the_body_and_its_description(wider: JobField) -> None:
    body = job_body(job_fields())
    assert body(model="zoo:resnet18", threads=7).model_dump()["threads"] == 7
    with pytest.raises(ValidationError, match="threads"):
        body(model="zoo:resnet18", threads=0)
    described = body.model_json_schema()["properties"]["threads"]
    assert described["description"] == "number of threads (default: 3)"


def test_a_field_that_is_declared_is_stored_printed_and_written_down(wider: JobField) -> None:
    spec = words("--threads", "5")
    assert json.loads(json.dumps(spec.to_json()))["threads"] == 5
    assert WiderSpec.from_json(spec.to_json()) == spec
    row = "| `threads` | a whole number of at least 1 | 3 | number of threads |\n"
    assert row in describing.table(job_fields())
    assert "    threads: int\n" in describing.options_source(fields_of(WiderSpec))


def test_a_field_that_is_declared_checks_its_values_wherever_they_come_from() -> None:
    with pytest.raises(BudgetError, match="threads must be a whole number of at least 1, got 0"):
        WiderSpec(name="net", model="net.onnx", budget=Budget(), threads=0)


MODULE = """
from dataclasses import replace
from tuneloom.app.kinds.mock.kind import KIND as MOCK
from tuneloom.model.fields import JobField, one_of

LEVEL = JobField(
    name="level", kind=one_of(("low", "high")), help="how far it goes", default="low", option="--level"
)
KIND = replace(MOCK, name="stranger", fields=({fields}))
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, fields: str) -> None:
    """Install a package that brings a kind of job with fields of its own."""
    (folder / "stranger_kind.py").write_text(MODULE.format(fields=fields))
    info = folder / "stranger_kind-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger-kind\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tuneloom.kinds]\nstranger = stranger_kind:KIND\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(__import__("sys").modules, "stranger_kind", raising=False)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from tuneloom.app.kinds.finding import kind_named

    install(tmp_path, monkeypatch, "LEVEL,")
    kind_named.cache_clear()
    yield
    kind_named.cache_clear()


def test_a_kind_of_job_brings_fields_of_its_own(
    stranger: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (spec,) = specs_of_words(parser().parse_args(["tune", "stranger:size=8", "--level", "high"]))
    assert (spec.tuner, spec.extra) == ("stranger", {"level": "high"})
    assert job_spec({"name": "a", "model": "stranger:"}).extra == {"level": "low"}
    (tmp_path / "jobs.toml").write_text('[[jobs]]\nmodel = "stranger:"\nlevel = "middle"\n')
    with pytest.raises(JobsFileError, match="line 3: 'level' must be one of low, high, got 'middle'"):
        read_jobs(tmp_path / "jobs.toml")
    assert job_body(job_fields())(model="stranger:", level="high").model_dump()["level"] == "high"
    with pytest.raises(SystemExit):
        parser().parse_args(["tune", "--help"])
    told = capsys.readouterr().out
    assert "options of stranger jobs:" in told and "how far it goes (default: low)" in told


def test_a_field_of_one_kind_is_refused_for_a_job_of_another(stranger: None) -> None:
    with pytest.raises(
        InputError, match="'level' is for stranger jobs, and this is a mock job; omit it"
    ) as told:
        job_spec({"name": "a", "model": "mock:", "level": "high"})
    assert told.value.field == "level"


def test_a_field_of_one_kind_that_several_jobs_share_is_left_out_for_others(stranger: None) -> None:
    words = ["tune", "stranger:", "mock:", "--level", "high"]
    assert [spec.extra for spec in specs_of_words(parser().parse_args(words))] == [{"level": "high"}, {}]


@pytest.mark.parametrize("change", ['name="trials"', 'option="--trials"', 'option="--store"'])
def test_a_kind_whose_field_takes_the_name_of_another_costs_nobody_else(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuneloom.app.kinds.finding import kind_named

    install(tmp_path, monkeypatch, f"replace(LEVEL, {change}),")
    kind_named.cache_clear()
    assert job_spec({"name": "a", "model": "mock:", "trials": 9}).budget.trials == 9
    assert parser().parse_args(["tune", "mock:", "--trials", "9"]).trials == 9
    with pytest.raises(InputError, match="of 'stranger' jobs has a name or an option that is taken"):
        job_spec({"name": "a", "model": "stranger:"})
    kind_named.cache_clear()


@pytest.mark.parametrize("words", ["tune", "add last", "submit", "--server http://farm tune"])
def test_no_field_takes_an_option_that_a_command_has_for_something_else(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args([*words.split(), "--help"])
    options = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert options and options <= {*schema.RESERVED, *(field.option for field in job_fields())}


def test_the_server_takes_what_the_command_line_takes() -> None:
    local = {field.name for field in JOB_FIELDS if not field.remote}
    assert local == {"out", "arrival_s"}
    assert set(JobAsked.model_fields) == {field.name for field in JOB_FIELDS} - local
    assert {"dtype", "samples", "tolerance"} <= set(JobAsked.model_fields)


def test_a_grid_varies_what_the_command_line_takes() -> None:
    assert {"trials", "run_timeout", "dtype", "samples", "pad", "priority"} <= PARAMETERS.keys()


def test_the_page_about_jobs_has_the_table_that_the_fields_make() -> None:
    page = (ROOT / "docs" / "jobs.md").read_text()
    assert page == describing.with_table(page, job_fields()), f"run: python -m {describing.__name__}"


def test_the_options_of_python_calls_are_those_that_the_fields_make() -> None:
    module = (ROOT / "src" / "tuneloom" / "model" / "options.py").read_text()
    assert module == describing.options_source(JOB_FIELDS), f"run: python -m {describing.__name__}"


def test_the_options_of_the_client_and_the_session_are_those_of_jobs() -> None:
    from tuneloom.client import AsyncClient, Client
    from tuneloom.session import Session

    calls: list[Any] = [Client.submit, AsyncClient.submit, Session.autotune]
    for call in calls:
        assert Unpack[JobOptions] in get_type_hints(call).values()
