"""``--json``: every command prints one JSON document, by the published schema."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

from isolux import cli
from isolux.cli import command_output
from isolux.cli.app import WITH_JSON, build_cli_program, is_command_group
from isolux_curate import commands
from tests.cli._run import isolux as run

SCHEMA = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "schemas" / "command-1.json").read_text("utf-8")
)
PEOPLE = 240
AUDIT = """table:{f}/people.csv --target truth --prediction-column said --by tone
    --replicates 100"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People whose answers say nothing, so that a warning is due, and a run of them."""
    folder = tmp_path_factory.mktemp("json")
    draw = np.random.default_rng(0)
    truth = draw.choice(["x", "y"], PEOPLE)
    pl.DataFrame(
        {"id": range(PEOPLE), "tone": ["a", "b"] * (PEOPLE // 2), "truth": truth,
         "said": draw.permutation(truth)}
    ).write_csv(folder / "people.csv")  # fmt: skip
    import isolux

    found = isolux.audit(
        f"table:{folder / 'people.csv'}", target="truth", prediction_column="said", by="tone",
        replicates=100,
    )  # fmt: skip
    found.report(folder / "run")
    found.report(folder / "later")
    (folder / "ratings.csv").write_text("item,annotator,value\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n")
    return folder


# A command, and an exit code that it has by these arguments: what needs pictures or a model is
# asked for what is not there, and must say so.
CALLS = {
    "audit": (AUDIT + " --out {t}/run", 0),
    "predict": ("--status {f}/nothing", 2),
    "crop": ("table:{f}/people.csv --out {t}/crops", 2),
    "curate consensus": ("ratings:{f}/ratings.csv --out {t}/labels", 0),
    "curate consent": ("{f}/nothing", 2),
    "curate grant": ("{t}/ledger", 2),
    "curate revoke": ("{t}/ledger", 2),
    "compare": ("{f}/run {f}/later", 0),
    "gate": ("{f}/run --policy {f}/nothing.yaml", 2),
    "card": ("{f}/run --kind bias_profile", 0),
    "monitor": ("{f}/run {f}/later", 2),
    "explain": ("{f}/run --analysis power --out {t}/explained", 0),
    "report": ("{f}/run --out {t}/page.html", 0),
    "view": ("{f}/run --bundle {t}/page.html", 0),
    "export": ("{f}/run --out {t}/fiftyone", 0),
    "describe": ("table:{f}/people.csv --by tone", 0),
    "sample": ("table:{f}/people.csv --balance tone --per-cell 5 --out {t}/ids.csv", 0),
    "check": ("table:{f}/people.csv", 0),
    "train probe": ("imagefolder:{f}/nothing --out {t}/probe", 2),
    "withdraw": ("{t} --who s1", 2),
    "list": ("tasks", 0),
    "demo": ("--out {f}", 2),
    "synthesize": ("", 0),
}  # fmt: skip


def called(monkeypatch, capsys, folder, tmp_path, command, *more):
    words, code = CALLS[command]
    args = [part.format(f=folder, t=tmp_path) for part in words.split()]
    return run(monkeypatch, capsys, *command.split(), *args, *more), code


def every_command():
    """Walk the program as help does; a group stands for those below it."""
    for name in build_cli_program([]).commands:
        below = build_cli_program([name]).commands[name].commands if is_command_group(name) else {}
        yield from (f"{name} {one}" for one in below) if below else [name]


@pytest.mark.parametrize("command", sorted(every_command()))
def test_every_command_there_is_answers_in_a_document(monkeypatch, capsys, command):
    ran = run(monkeypatch, capsys, *command.split(), "--no-such-flag", "--json")
    said = json.loads(ran.out)
    jsonschema.validate(said, SCHEMA)
    assert (said["command"], said["exit_code"], ran.code) == (command, 2, 2)
    error = said["error"]
    assert "--no-such-flag" in (error["where"] or error["problem"])


def test_no_command_prints_by_itself_what_is_a_field():
    own = re.compile(r"echo\(\s*f?[\"'](warning|note|report|page): ", re.IGNORECASE)
    rooms = [Path(room.__file__).parent for room in (cli, commands)]
    files = sorted(file for room in rooms for file in room.rglob("*.py"))
    assert [path.name for path in files if own.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("command", CALLS)
def test_a_command_answers_in_one_document_with_its_own_exit_code(
    monkeypatch, capsys, folder, tmp_path, command
):
    ran, code = called(monkeypatch, capsys, folder, tmp_path, command, "--json")
    said = json.loads(ran.out)
    jsonschema.validate(said, SCHEMA)
    assert (ran.code, said["exit_code"]) == (code, code), ran.err
    assert said["command"] == command
    assert (said["error"] is None) == (code == 0)
    if said["error"]:
        assert said["error"]["problem"] in ran.err
    lost = re.compile(r"(warning|note|report|page|crops|labels): ", re.IGNORECASE)
    assert [line for line in said["text"] if lost.match(line)] == []


@pytest.mark.parametrize("command", CALLS)
def test_help_names_the_flag(monkeypatch, capsys, command):
    assert "--json" in run(monkeypatch, capsys, *command.split(), "--help").out


def test_an_audits_document_holds_its_warning_its_tables_and_where_they_are(
    monkeypatch, capsys, folder, tmp_path
):
    ran, _ = called(monkeypatch, capsys, folder, tmp_path, "audit", "--json")
    said = json.loads(ran.out)
    assert said["warnings"][0].startswith("The answers of 'said' agree with the truth no better")
    assert said["files"] == [
        {"what": "run", "path": str(tmp_path / "run")},
        {"what": "report", "path": str(tmp_path / "run" / "report.html")},
    ]
    tables = {table["name"]: table["rows"] for table in said["tables"]}
    kept = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    assert len(tables["group_metrics"]) == kept.height
    assert [row["value"] for row in tables["group_metrics"]] == kept["value"].to_list()
    assert tables["findings"][0]["claim"]


@pytest.mark.parametrize(
    "line", ["--json list tasks", "list --json tasks", "list tasks --json", "list tasks"]
)
def test_the_flag_stands_anywhere(monkeypatch, capsys, line):
    ran = run(monkeypatch, capsys, *line.split())
    assert ran.code == 0
    assert ran.out.startswith("{") == ("--json" in line)
    if "--json" in line:
        assert "detection" in [row["name"] for row in json.loads(ran.out)["tables"][0]["rows"]]


def test_what_follows_two_dashes_is_no_flag(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "list", "--", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert "--json" in ran.err


def test_a_usage_error_and_a_bug_are_told(monkeypatch, capsys):
    said = json.loads(run(monkeypatch, capsys, "explain", "--json").out)
    assert (said["exit_code"], said["error"]["kind"]) == (2, "MissingParameter")
    said = json.loads(run(monkeypatch, capsys, "audit", "x:y", "--jso", "--json").out)
    assert said["error"]["where"] == "--jso"
    monkeypatch.setattr("isolux.api.check.check", lambda *_, **__: 1 / 0)
    said = json.loads(run(monkeypatch, capsys, "check", "table:x", "--json").out)
    assert said["exit_code"] == 70
    assert "ZeroDivisionError" in said["error"]["problem"]
    assert said["error"]["hint"].startswith("run again with ISOLUX_TRACEBACK=1")


def test_the_gates_own_document_stays(monkeypatch, capsys, folder):
    assert WITH_JSON == ("gate",)
    policy = folder / "policy.yaml"
    policy.write_text(run(monkeypatch, capsys, "gate", "--init", folder / "run").out, "utf-8")
    for args in (("gate", folder / "run", "--policy", policy, "--json"),
                 ("--json", "gate", folder / "run", "--policy", policy)):  # fmt: skip
        said = json.loads(run(monkeypatch, capsys, *args).out)
        assert said["schema"].endswith("gate-1.json")


def test_a_run_that_a_gate_cannot_use_is_an_error_of_the_document(monkeypatch, capsys, folder):
    line = ("gate", folder / "no-run", "--policy", folder / "policy.yaml", "--json")
    said = json.loads(run(monkeypatch, capsys, *line).out)
    assert said["exit_code"] == 4
    assert said["error"]["kind"] == "RunError"
    assert said["error"]["problem"] == "there is no run directory here"
    assert said["error"]["where"].endswith("no-run")


def test_what_json_cannot_hold_is_null_and_columns_of_one_name_are_numbered(capsys):
    odd = pl.DataFrame({"a": [float("nan"), float("inf"), 1.5], "b": [["x"], None, ["y"]]})

    def command() -> int:
        command_output.add_table_to_json("odd", odd)
        command_output.add_text_table_to_json("twice", ["gap", "", "gap"], [["1", "2", "3"]])
        return 0

    assert command_output.run_with_json_document(["list", "--json"], command) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert [row["a"] for row in tables[0]["rows"]] == [None, None, 1.5]
    assert tables[1]["rows"] == [{"gap": "1", "name": "2", "gap (2)": "3"}]
    assert not command_output.is_json_active()


def test_a_terminal_of_ascii_gets_whole_names():
    """What such a screen has no character for is escaped, where lines of text would lose it."""
    done = subprocess.run(
        [sys.executable, "-m", "isolux", "check", "table:ünder.csv", "--json"],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "ünder.csv" in json.loads(done.stdout.decode("ascii"))["error"]["where"]
