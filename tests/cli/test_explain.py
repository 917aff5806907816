"""``isolux explain``: analyses of a finished run, whose directory keeps what else lies in it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import isolux
from isolux.io import run_directory
from tests.cli._run import isolux as run_cli

PEOPLE = pl.DataFrame(
    {
        "unit_id": [f"u{i:03}" for i in range(240)],
        "value": [1.0, 1.0, 1.0, 0.0] * 60,
        "tone": ["a", "b"] * 120,
    }
)


@pytest.fixture
def run(tmp_path) -> Path:
    who = PEOPLE.select("unit_id", "tone")
    audit = isolux.audit(PEOPLE.select("unit_id", "value"), who, by="tone", replicates=200)
    return audit.report(tmp_path / "run").parent


def test_findings_and_report_are_written_anew_and_the_rest_stays(run, monkeypatch, capsys):
    (run / "notes.txt").write_text("mine")
    (run / "gallery.html").write_text("pictures")
    (run / "more").mkdir()
    (run / "more" / "people.csv").write_text("id")
    (run / "link").symlink_to("/etc/hostname")
    ran = run_cli(monkeypatch, capsys, "explain", run, "--analysis", "power")
    assert ran.code == 0, ran.err
    found = run_directory.load_run(run)
    assert "power" in found.findings["analysis"].to_list()
    assert "What could be detected" in (run / "report.html").read_text()
    assert (run / "notes.txt").read_text() == "mine"
    assert (run / "more" / "people.csv").read_text() == "id"
    assert not (run / "gallery.html").exists()
    assert not (run / "link").exists()


def test_another_directory_leaves_the_run_as_it_is(run, tmp_path, monkeypatch, capsys):
    before = (run / "audit.json").read_bytes()
    ran = run_cli(monkeypatch, capsys, "explain", run, "--analysis", "power",
                  "--analysis-option", "targets=0.1", "--out", tmp_path / "new")  # fmt: skip
    assert ran.code == 0, ran.err
    assert (run / "audit.json").read_bytes() == before
    record = run_directory.load_run(tmp_path / "new").record
    assert record["analyses"][-1]["options"] == ["targets=0.1"]


def test_without_a_name_every_analysis_that_fits_runs(run, monkeypatch, capsys):
    ran = run_cli(monkeypatch, capsys, "explain", run)
    assert ran.code == 0, ran.err
    assert "power" in run_directory.load_run(run).findings["analysis"].to_list()
    assert "tradeoffs did not run: " in ran.out  # no scores of answers were kept


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--analysis", "powr"), "did you mean 'power'?"),
        (("--analysis", "power", "--analysis-option", "target=1"), "did you mean 'targets'?"),
        (
            ("--analysis", "power", "--analysis-option", "targets=0"),
            "a target has to be a difference",
        ),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_changes(run, monkeypatch, capsys, args, words):
    before = (run / "audit.json").read_bytes()
    ran = run_cli(monkeypatch, capsys, "explain", run, *args)
    assert ran.code == 2
    assert words in ran.plain
    assert (run / "audit.json").read_bytes() == before


def test_no_run_is_said(tmp_path, monkeypatch, capsys):
    ran = run_cli(monkeypatch, capsys, "explain", tmp_path / "none", "--analysis", "power")
    assert ran.code == 2
    assert "there is no run directory here" in ran.plain


@pytest.fixture
def lit(tmp_path) -> Path:
    people = PEOPLE.with_columns(light=pl.Series(["dim", "dim", "bright"] * 80))
    who = people.select("unit_id", "tone", "light")
    named = {"task": pl.lit("classification"), "metric": pl.lit("accuracy")}
    scores = people.select("unit_id", "value", **named)
    audit = isolux.audit(scores, who, by="tone", replicates=200, explain=("confounders",),
                         role=("light=mediator",), min_units=20)  # fmt: skip
    return audit.report(tmp_path / "lit").parent


def test_a_role_reaches_the_analysis_and_the_record(lit, monkeypatch, capsys):
    claims = run_directory.load_run(lit).findings.filter(analysis="confounders")["claim"]
    assert claims.str.contains("Light was stated to lie between tone and accuracy").any()
    ran = run_cli(monkeypatch, capsys, "explain", lit, "--analysis", "confounders",
                  "--role", "light=before")  # fmt: skip
    assert ran.code == 0, ran.err
    record = run_directory.load_run(lit).record
    assert record["analyses"][-1]["options"] == ['roles={"light": "before"}']


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("--role", "light"), "--role is not ATTRIBUTE=ROLE"),
        (("--role", "light=before", "--role", "light=after"), "--role names 'light' twice"),
        (("--analysis", "power", "--role", "light=before"), "confounders, which does not run"),
        (("--analysis", "confounders", "--role", "hour=before"), "named 'hour'"),
        (("--analysis", "confounders", "--role", "light=cause"), "'cause' is not a role"),
    ],
)
def test_roles_that_are_refused(given, text, lit, monkeypatch, capsys):
    ran = run_cli(monkeypatch, capsys, "explain", lit, *given)
    assert ran.code == 2, ran.out
    assert text in ran.err


def pairs_run(folder: Path, *, n: int = 80) -> Path:
    """Audit a verifier's pairs: n genuine and n impostor ones of each of two groups."""
    rows = [
        {"a": f"{race}{k}", "b": f"{race}{k}{same}", "same": same, "race": race,
         "score": 0.1 + 0.7 * (k % 40 > 3 if same else k % 40 < wrong) + k / 10_000}
        for race, wrong in (("a", 2), ("b", 8)) for k in range(n) for same in (0, 1)
    ]  # fmt: skip
    pl.DataFrame(rows).write_csv(folder / "pairs.csv")
    audit = isolux.audit(f"pairs:{folder / 'pairs.csv'}", task="face_verification", threshold=0.5,
                         by="race", replicates=100)  # fmt: skip
    return audit.report(folder / "verifier").parent


@pytest.mark.parametrize(
    ("analysis", "caption"),
    [("tradeoffs", "Match rates by group, at thresholds that accept a share"),
     ("biometrics", "Failures and errors by group, at the operational threshold")],
)  # fmt: skip
def test_an_analysis_without_a_finding_prints_its_tables(
    analysis, caption, tmp_path, monkeypatch, capsys
):
    run = pairs_run(tmp_path)
    ran = run_cli(monkeypatch, capsys, "explain", run, "--analysis", analysis)
    assert ran.code == 0, ran.err
    assert f"{analysis}: no finding; tables:" in ran.out
    assert caption in ran.out
    assert "false match rate" in ran.out
    assert "not measured" not in ran.out
    record = run_directory.load_run(run).record["explained"][analysis]
    more = [len(table["rows"]) - 12 for table in record.values()]
    told = [f"… and {n} more rows in the report." for n in more if n > 0]
    assert [line for line in ran.out.splitlines() if "more rows" in line] == told
    assert bool(told) is (analysis == "tradeoffs")
    given = run_cli(monkeypatch, capsys, "explain", run, "--analysis", analysis, "--json")
    tables = {one["name"]: one["rows"] for one in json.loads(given.out)["tables"]}
    for name, table in record.items():
        assert [list(row.values()) for row in tables[name]] == table["rows"]
