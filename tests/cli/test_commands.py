"""The other commands, and that flags and fields are one."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import polars as pl
import pytest

from isolux.api.audit.inputs import read_audit_settings
from isolux.cli.audit import build_audit_command
from isolux.cli.listing import LISTABLE_KINDS, find_package_of_kind
from isolux.core import registry
from isolux.core.errors import SpecError
from isolux.core.spec import (
    SETTING_BY_FLAT_NAME,
    find_setting_declaration,
    flatten_task_setting,
    has_own_flag,
    list_task_options,
    validate_stage_settings,
)
from tests.cli._run import isolux as run


@pytest.mark.parametrize("task", registry.names("tasks"))
def test_every_setting_has_a_flag_and_every_flag_a_setting(task):
    flags = set(inspect.signature(build_audit_command(["--task", task], shows_all=True)).parameters)
    own = {flatten_task_setting(name) for name in list_task_options(task)}
    ours = {name for name in SETTING_BY_FLAT_NAME if has_own_flag(name)}
    assert flags == {
        *ours,
        "protocol",
        "option",
        "notes",
        *(n for n in own if "." not in n and has_own_flag(n)),
    }


def test_an_audit_has_sixty_flags_and_every_other_setting_is_an_option(monkeypatch, capsys):
    flags = inspect.signature(build_audit_command([], shows_all=True)).parameters
    n_flags = len(flags) - 1  # the data is no flag
    assert n_flags <= 60, "decision 15: give another setting flag=False, or this one"
    ran = run(monkeypatch, capsys, "audit", "--help-all")
    assert [
        name
        for name in SETTING_BY_FLAT_NAME
        if not has_own_flag(name) and f"  {name}=VALUE" not in ran.out
    ] == []


@pytest.mark.parametrize(
    ("items", "found"),
    [
        (("ddof=0",), {"ddof": 0}),
        (("separator=;", "seed-of-a-task=3"), {"separator": ";"}),
        (("nested=a:b=c", "nested=d:e=f"), {"nested": ("a:b=c", "d:e=f")}),
        (("keep_pairs=no",), {"keep_pairs": False}),
        (("task.seed=3",), {"task.seed": "3"}),
        (("seed=3",), {"task.seed": "3"}),
        (("separator= ",), {"separator": " "}),
    ],
)
def test_an_option_sets_what_has_no_flag(items, found):
    values = validate_stage_settings({"data": "table:people.csv", "option": items}).said()
    assert {name: values[name] for name in found} == found


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (("ddof=0", "ddof=1"), "given twice"),
        (("ddof=2",), "0.*1"),
        (("ddof",), "NAME=VALUE"),
        (("option=ddof=0",), "no setting 'option'"),
    ],
)
def test_an_option_is_refused_as_a_flag_is(items, words):
    with pytest.raises(SpecError, match=words):
        validate_stage_settings({"data": "table:people.csv", "option": items})


def test_an_option_overrides_a_file_as_a_flag_does(tmp_path):
    file = tmp_path / "audit.yaml"
    file.write_text("data: table:people.csv\nddof: 0\nmetric: [accuracy]\nunknown_values: [x, y]\n")
    given = {"option": ["ddof=1", "metric=recall", "unknown_values=z", "unknown_values=w"]}
    spec = read_audit_settings(file, given)
    assert (spec.disparity.ddof, spec.task.metrics, spec.groups.unknown_values) == (
        1,
        ("recall",),
        ("z", "w"),
    )


def test_a_setting_without_a_flag_says_how_it_is_set(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "audit", "table:people.csv", "--ddof", "0")
    assert (ran.code, "--option ddof=VALUE" in ran.err) == (2, True)
    ran = run(monkeypatch, capsys, "audit", "table:people.csv", "--option", "level=0.9")
    assert (ran.code, "expected: --level" in ran.err) == (2, True)
    ran = run(monkeypatch, capsys, "audit", "--data", "table:people.csv")
    assert (ran.code, "first argument" in ran.err) == (2, True)
    ran = run(monkeypatch, capsys, "predict", "table:people.csv", "--option", "ddof=0")
    assert (ran.code, "does not take 'ddof'" in ran.err) == (2, True)


def test_a_command_of_a_command_is_named_as_it_is_typed(monkeypatch, capsys):
    ran = run(
        monkeypatch,
        capsys,
        "train",
        "finetune",
        "table:x.csv",
        "--model",
        "timm:x",
        "--out",
        "o",
        "--learning-rate",
        "inf",
    )
    assert (ran.code, "of isolux train finetune cannot be used" in ran.plain) == (2, True)


@pytest.mark.parametrize("task", registry.names("tasks"))
def test_every_setting_is_explained(task):
    said = {
        **{n: find_setting_declaration(n).description for n in SETTING_BY_FLAT_NAME},
        **{n: option.description for n, option in list_task_options(task).items()},
    }
    assert [name for name, text in said.items() if not text] == []


def test_help_shows_the_flags_of_the_readme(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "audit", "--help-all")
    assert ran.code == 0
    for flag in (
        "--prediction-column",
        "--id-from",
        "unknown_values=VALUE",
        "--min-clusters",
        "--votes",
    ):
        assert flag in ran.out


@pytest.mark.parametrize("kind", ["datasets", "formats", "tasks", "models", "analyses", "papers"])
def test_everything_can_be_listed(monkeypatch, capsys, kind):
    ran = run(monkeypatch, capsys, "list", kind)
    assert ran.code == 0, ran.err
    wanted = {
        "datasets": "fairface",
        "formats": "parquet",
        "tasks": "detection",
        "analyses": "group_gaps",
        "papers": "fairface",
        "models": "onnx",
    }
    assert wanted[kind] in ran.out


def test_the_kinds_are_named_with_how_many_there_are(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "list", width=80)
    assert ran.code == 0, ran.err
    lines = dict(line.split(maxsplit=1) for line in ran.out.splitlines()[: len(LISTABLE_KINDS)])
    assert list(lines) == list(LISTABLE_KINDS)
    assert lines["tasks"].split()[0] == str(len(registry.names("tasks")))
    assert "…" not in ran.out


@pytest.mark.parametrize("kind", LISTABLE_KINDS)
def test_a_kind_is_listed_in_a_line_for_each(monkeypatch, capsys, kind):
    ran = run(monkeypatch, capsys, "list", kind, width=80)
    names = registry.names(find_package_of_kind(kind))
    assert [line.split()[0] for line in ran.out.splitlines()[: len(names)]] == names
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_an_entry_tells_each_setting_with_type_default_and_meaning(monkeypatch, capsys):
    told = " ".join(run(monkeypatch, capsys, "list", "models", "onnx").out.split())
    assert "threads (a whole number; default: 0) Threads of the network; 0: one a core." in told
    assert "top (a whole number) How many labels of a picture are kept" in told
    task = " ".join(run(monkeypatch, capsys, "list", "tasks", "classification").out.split())
    assert "calibration_error (fraction; lower is better)" in task
    assert "with --task classification" in task


def test_summaries_of_commands_are_whole(monkeypatch, capsys):
    shown = " ".join(run(monkeypatch, capsys, "--help", width=80).out.split())
    assert "..." not in shown.partition("Commands:")[2]
    assert "Audit a model's predictions and write a run directory with its report." in shown


def test_an_unknown_kind_is_a_usage_error(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "list", "spells")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert "analyses" in ran.plain


def test_the_version(monkeypatch, capsys):
    ran = run(monkeypatch, capsys, "--version")
    assert ran.code == 0
    assert ran.out.startswith("isolux 0.")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One demonstration, made by the command."""
    folder = tmp_path_factory.mktemp("demo")
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.chdir(folder)

    class Screen:
        def readouterr(self):
            return self

        out = err = ""

    assert run(monkeypatch, Screen(), "demo", "--out", "run").code == 0
    yield folder / "run"
    monkeypatch.undo()


def test_the_demonstration_finds_what_was_injected(demo):
    record = json.loads((demo / "audit.json").read_text())
    assert record["spec"]["data"] == f"table:{Path('run') / 'people.csv'}"
    assert record["injected"]
    found = pl.read_parquet(demo / "disparities.parquet").filter(kind="omnibus_test")
    p = dict(found.filter(metric="accuracy").select("attribute", "p_adjusted").rows())
    assert p["perceived_skin_tone*lighting"] < 0.01
    assert p["lighting"] < 0.01
    assert p["region"] > 0.2, "nothing was injected there"


def test_the_demonstrations_own_table_audits_to_the_same_numbers(demo, monkeypatch, capsys):
    monkeypatch.chdir(demo.parent)
    record = json.loads((demo / "audit.json").read_text())
    settings = {**record["spec"], "out": "again"}
    Path("audit.json").write_text(json.dumps(settings))
    assert run(monkeypatch, capsys, "audit", "audit.json").code == 0
    for name in ("group_metrics", "disparities", "findings"):
        one, two = (pl.read_parquet(Path(d) / f"{name}.parquet") for d in ("run", "again"))
        assert one.equals(two), name
    again = json.loads(Path("again/audit.json").read_text())
    assert again["dataset"]["synthetic"] is True  # without injected truths to say so


def test_a_report_is_rendered_again_from_the_tables(demo, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(demo.parent)
    ran = run(monkeypatch, capsys, "report", "run", "--out", tmp_path / "again.html")
    assert ran.code == 0, ran.err
    assert (tmp_path / "again.html").read_text() == (demo / "report.html").read_text()


def test_a_report_of_no_run_is_refused(monkeypatch, capsys, tmp_path):
    ran = run(monkeypatch, capsys, "report", tmp_path)
    assert ran.code == 2
    assert "audit.json" in ran.plain


def test_two_models_of_the_demonstration_are_compared(demo, monkeypatch, capsys):
    monkeypatch.chdir(demo.parent)
    record = json.loads((demo / "audit.json").read_text())
    for name in ("aurora", "borealis"):
        settings = {
            **record["spec"],
            "out": name,
            "prediction_column": f"prediction_{name}",
            "model_name": name,
            "overwrite": True,
        }
        Path("spec.json").write_text(json.dumps(settings))
        assert run(monkeypatch, capsys, "audit", "spec.json").code == 0
    ran = run(monkeypatch, capsys, "compare", "aurora", "borealis", "--out", "both")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("aurora → borealis · ")
    seen = " ".join(ran.out.split())
    assert "Overall borealis is not shown to be better or worse than aurora: accuracy" in seen
    assert "Lost: people labelled older, accuracy" in seen
    assert len(ran.out.splitlines()) < 40
    given = json.loads(run(monkeypatch, capsys, "compare", "aurora", "borealis", "--json").out)
    assert given["answers"][0]["first"].startswith("Overall borealis is not shown to be")
    [changes] = [table["rows"] for table in given["tables"] if table["name"] == "disparities"]
    assert changes[0]["family"] == "the planned comparison"
    assert changes[0]["p_adjusted"] == changes[0]["p_value"] < 0.2
    rows = pl.read_parquet("both/disparities.parquet").filter(kind="model_difference")
    # Borealis has a penalty of 12 points for older people that aurora lacks; aurora's own for
    # darker tones in dim light is gone.
    value = dict(rows.filter(metric="accuracy").select("group_a", "value").rows())
    assert value["older"] < -0.05
    assert value["darker × dim"] > 0.1
    assert (Path("both") / "report.html").is_file()
