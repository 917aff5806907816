from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Run
from isolux.core.errors import (
    FileError,
    OutputError,
    RunError,
    TableError,
    UnknownNameError,
)
from isolux.core.tables import (
    ATTRIBUTES,
    COMPARISONS,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    Table,
)
from isolux.io.run_directory import carry_over_other_files, load_run, save_run
from isolux.io.staging import StagingPath

FILES = [
    "attributes.parquet",
    "audit.json",
    "disparities.parquet",
    "evidence",
    "evidence/bins.parquet",
    "findings.parquet",
    "group_metrics.parquet",
    "scores.parquet",
]


def table(form: Table, **values: object) -> pl.DataFrame:
    return form.conform(pl.DataFrame({name: [value] for name, value in values.items()}))


@pytest.fixture
def run() -> Run:
    metric = {"task": "classification", "metric": "accuracy"}
    return Run(
        record={"isolux": "0.1.0", "notes": ["ä <script>"], "families": {"all": np.int64(3)}},
        scores=table(SCORES, model="m", **metric, unit_kind="instance", unit_id="a", value=1.0),
        attributes=table(
            ATTRIBUTES, unit_kind="instance", unit_id="a", attribute="race", value="x"
        ),
        group_metrics=table(
            GROUP_METRICS,
            model="m",
            **metric,
            attribute="race",
            group="x",
            values=["x"],
            n_units=1,
            n_clusters=1,
            status="insufficient units",
        ),
        disparities=table(DISPARITIES, model="m", **metric, kind="range", status="ok", value=0.1),
        findings=table(FINDINGS, rank=1, analysis="gaps", claim="…", status="ok"),
        evidence={"bins": pl.DataFrame({"unit_id": ["a"], "bin": [3]})},
    )


def listing(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_a_run_comes_back_as_it_was(tmp_path, run):
    assert save_run(run, tmp_path / "run") == tmp_path / "run"
    back = load_run(tmp_path / "run")
    assert listing(tmp_path / "run") == FILES
    assert back.record == {"isolux": "0.1.0", "notes": ["ä <script>"], "families": {"all": 3}}
    for name in ("scores", "attributes", "group_metrics", "disparities", "findings"):
        assert getattr(back, name).equals(getattr(run, name)), name
    assert back.evidence.keys() == {"bins"}
    assert back.evidence["bins"].equals(run.evidence["bins"])


def test_a_comparison_keeps_both_models(tmp_path, run):
    both = table(
        COMPARISONS, model_a="erm", model_b="arl", task="t", metric="m", kind="gap", status="ok"
    )
    save_run(replace(run, disparities=both), tmp_path / "run")
    assert load_run(tmp_path / "run").disparities.equals(both)


def test_what_is_written_besides_belongs_to_the_run(tmp_path, run):
    def report(stage: Path) -> None:
        (stage / "report.html").write_text("<html>")

    save_run(run, tmp_path / "run", extra=report)
    assert (tmp_path / "run" / "report.html").read_text() == "<html>"


def test_no_run_remains_if_its_report_fails(tmp_path, run):
    def report(_: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_run(run, tmp_path / "run", extra=report)
    assert listing(tmp_path) == []


def test_an_existing_run_is_replaced_only_on_request(tmp_path, run):
    save_run(run, tmp_path / "run")
    with pytest.raises(OutputError, match="this directory exists already"):
        save_run(run, tmp_path / "run")
    save_run(replace(run, evidence={}), tmp_path / "run", overwrite=True)
    assert "evidence/bins.parquet" not in listing(tmp_path / "run")


def test_evidence_cannot_leave_the_directory(tmp_path, run):
    with pytest.raises(OutputError, match="cannot be a file's name"):
        save_run(replace(run, evidence={"../x": run.scores}), tmp_path / "run")
    assert listing(tmp_path) == []


def test_a_table_that_is_none_is_refused_before_anything_is_kept(tmp_path, run):
    broken = run.scores.with_columns(value=pl.lit(float("nan")))
    with pytest.raises(TableError, match=r"(?s)of scores cannot be used.*a finite number"):
        save_run(replace(run, scores=broken), tmp_path / "run")
    assert listing(tmp_path) == []


def test_a_record_that_json_cannot_hold_fails_at_once(tmp_path, run):
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_run(replace(run, record={"seed": float("nan")}), tmp_path / "run")
    with pytest.raises(TypeError, match=r"object cannot be stored in audit\.json"):
        save_run(replace(run, record={"seed": object()}), tmp_path / "run")
    assert listing(tmp_path) == []


def test_paths_and_tuples_of_a_record_are_written(tmp_path, run):
    save_run(
        replace(run, record={"out": Path("a/b"), "by": ("race",), "in": MappingProxyType({})}),
        tmp_path / "run",
    )
    assert load_run(tmp_path / "run").record == {"out": "a/b", "by": ["race"], "in": {}}


def test_what_is_no_run_directory_is_said(tmp_path):
    with pytest.raises(FileError, match=r"(?s)no run directory here.*nothing"):
        load_run(tmp_path / "none")
    (tmp_path / "people.csv").write_text("a\n1\n")
    with pytest.raises(FileError, match=r"(?s)no run directory here.*a file.*audit the table"):
        load_run(tmp_path / "people.csv")
    with pytest.raises(FileError, match=r"(?s)not a run of isolux.*audit\.json in it"):
        load_run(tmp_path)


def test_a_folder_of_runs_names_them(tmp_path, run):
    save_run(run, tmp_path / "erm")
    with pytest.raises(FileError, match="there are runs inside it: erm"):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["scores", "attributes", "group_metrics", "findings"])
def test_a_missing_table_is_named(tmp_path, run, name):
    path = save_run(run, tmp_path / "run")
    (path / f"{name}.parquet").unlink()
    with pytest.raises(FileError, match=f"this run has no {name} table"):
        load_run(path)


@pytest.mark.parametrize("name", ["scores.parquet", "evidence/bins.parquet"])
def test_a_damaged_table_is_named(tmp_path, run, name):
    path = save_run(run, tmp_path / "run")
    (path / name).write_bytes((path / name).read_bytes()[:20])
    with pytest.raises(FileError, match=f"(?s)a table of this run is damaged.*{name}"):
        load_run(path)


def test_a_table_of_another_kind_is_refused(tmp_path, run):
    path = save_run(run, tmp_path / "run")
    pl.DataFrame({"a": [1]}).write_parquet(path / "scores.parquet")
    with pytest.raises(RunError, match="not as they were written"):
        load_run(path)
    with pytest.raises(UnknownNameError, match=r"(?s)no column named 'model'.*scores\.parquet"):
        load_run(path, on_change="told")


@pytest.mark.parametrize("named", [3, "boxes", [["boxes"]], [None], {"boxes": 1, "more": 2}])
def test_evidence_that_is_named_by_no_list_of_texts_is_damage(tmp_path, run, named):
    path = save_run(run, tmp_path / "run")
    record = json.loads((path / "audit.json").read_text()) | {"evidence": named}
    (path / "audit.json").write_text(json.dumps(record))
    # Of names alone it is said which table is missing.
    said = "is missing" if isinstance(named, dict) else "the record of this run is damaged"
    with pytest.raises(FileError, match=said):
        load_run(path)


@pytest.mark.parametrize(
    "text", ["{", "[1]", "", "\xff", "[" * 100_000, '{"a": NaN}', '{"a": 1e999}']
)
def test_a_damaged_record_is_said(tmp_path, run, text):
    path = save_run(run, tmp_path / "run")
    (path / "audit.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match="the record of this run is damaged"):
        load_run(path)


def test_the_record_is_strict_json(tmp_path, run):
    path = save_run(run, tmp_path / "run")
    assert json.loads((path / "audit.json").read_text())["families"] == {"all": 3}


def test_loading_removes_what_a_killed_command_left(tmp_path, run):
    save_run(run, tmp_path / "run")
    (tmp_path / "run" / ".report.html.new-0a1b2c3d").write_text("people")
    (tmp_path / ".run.new-0a1b2c3d").mkdir()
    load_run(tmp_path / "run")
    assert listing(tmp_path / "run") == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_page_that_another_process_still_writes_is_not_carried_over(tmp_path, run):
    save_run(run, tmp_path / "run")
    writing = StagingPath(tmp_path / "run" / "report.html", is_folder=False)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "stage").mkdir()
    carry_over_other_files(tmp_path / "run", tmp_path / "stage")
    assert listing(tmp_path / "stage") == ["notes.txt"]
    writing.discard()


def test_a_folder_of_models_side_by_side_is_told_as_what_it_is(tmp_path):
    for name in ("side_by_side.json", "report.html"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    said = r"(?s)not a run.*found: several models side by side.*open its report.html.*the runs that"
    with pytest.raises(FileError, match=said):
        load_run(tmp_path)
