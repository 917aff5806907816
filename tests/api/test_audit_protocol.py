"""A paper's protocol in an audit: its settings give way to ours, its tables follow the numbers."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from isolux.api.audit import run_audit
from isolux.api.audit.protocol import fill_protocol_settings
from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import PluginInfo, Reference
from isolux.core.spec import parse_spec
from isolux.io import run_directory
from isolux.report.html import write_report
from tests.cli._run import isolux

PAPER = SimpleNamespace(
    INFO=PluginInfo(
        title="A study of <nurses>",
        summary="Made up.",
        references=(Reference("study", "A study.", "table 1"),),
    ),
    PROTOCOLS={
        "nurses": {
            "task": "classification",
            "target": "job",
            "by": ("tone",),
            "min_units": 5,
            "option": ("undetected=mistake", "top_k=1"),
            "only": ("age>=20",),
        }
    },
    DISAGREEMENTS={"nurses": ("The text says 20, the table 21.",)},
    tables=lambda name, run: {
        f"Table 1 of {name}": run.group_metrics.filter(metric="accuracy").select("group", "value")
    },
)


@pytest.fixture
def study(monkeypatch):
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda room, name: PAPER if name == "study" else load(room, name)
    )


@pytest.fixture
def people(tmp_path):
    """Ten adults and ten children; of the adults, four of five with tone a are right."""
    frame = pl.DataFrame(
        {
            "id": range(20),
            "age": [30, 10] * 10,
            "tone": ["a"] * 10 + ["b"] * 10,
            "job": ["nurse"] * 20,
            "said": ["nurse"] * 8 + ["guard"] * 4 + ["nurse"] * 8,
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def spec_of(data, **settings):
    values = {"data": f"table:{data}", "protocol": "study:nurses", "prediction_column": "said"}
    return parse_spec({**values, "min_clusters": 3, "replicates": 200, **settings})


def test_a_spec_without_protocol_is_as_it_was():
    spec = parse_spec({"data": "table:x", "by": "tone"})
    assert fill_protocol_settings(spec) is spec


def test_what_we_set_wins_and_conditions_add_up(study):
    spec = fill_protocol_settings(
        spec_of("x.csv", min_units=7, option=["top_k=3"], only=["tone=a"])
    )
    assert (spec.statistics.min_units, spec.groups.by) == (7, ("tone",))
    assert spec.task.settings["target"] == "job"
    assert spec.task.settings["undetected"] == "mistake"
    assert spec.task.settings["top_k"] == [3]
    assert spec.people.only == ("age>=20", "tone=a")
    assert fill_protocol_settings(spec) == spec  # once more changes nothing


def test_our_own_attributes_leave_out_what_is_about_others(study, monkeypatch):
    about = {
        "group": ("tone:light=1,2", "age:old=60"),
        "bins": ("age=edges:20,60", "income=quantile:3"),
        "reference": "tone=light",
        "nested": ("tone:light=1",),
    }
    monkeypatch.setitem(PAPER.PROTOCOLS, "nurses", PAPER.PROTOCOLS["nurses"] | about)
    spec = fill_protocol_settings(spec_of("x.csv", by=["age*income"]))
    assert (spec.groups.group, spec.groups.bins) == (("age:old=60",), about["bins"])
    assert (spec.disparity.reference, spec.groups.nested) == ((), ())
    assert fill_protocol_settings(spec_of("x.csv")).disparity.reference == ("tone=light",)


def test_the_audit_holds_the_papers_table(study, people):
    run = run_audit(spec_of(people)).run
    # Adults are the even rows: tone a 0 2 4 6 8 (8 was wrong), tone b 10 12 … 18 (10 was wrong).
    assert run.record["protocol"]["tables"]["Table 1 of nurses"] == {
        "columns": ["group", "value"],
        "rows": [["overall", 0.8], ["a", 0.8], ["b", 0.8]],
    }
    assert "10 of 20 people were left out: only age>=20." in run.record["notes"]
    assert "study" in [r["key"] for r in run.record["references"]]


def test_the_report_prints_it_and_the_disagreements(study, people, tmp_path):
    where = run_directory.save_run(run_audit(spec_of(people)).run, tmp_path / "run")
    text = write_report(run_directory.load_run(where), tmp_path / "r.html").read_text()
    assert "In the paper's form: A study of &lt;nurses&gt;" in text
    assert "Table 1 of nurses" in text
    assert "The text says 20, the table 21." in text
    assert 'href="#protocol"' in text


def test_the_command_prints_the_table(study, people, monkeypatch, capsys, tmp_path):
    ran = isolux(
        monkeypatch, capsys, "audit", f"table:{people}", "--protocol", "study:nurses",
        "--prediction-column", "said", "--min-clusters", 3, "--replicates", 200,
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Table 1 of nurses" in ran.out
    assert "overall  0.800" in ran.out


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("study", SpecError, "the protocol is not named"),
        ("study:doctors", UnknownNameError, "nurses"),
        ("studies:nurses", UnknownNameError, "fairface"),
    ],
)
def test_a_protocol_that_is_none_is_refused(study, name, error, words):
    with pytest.raises(error) as caught:
        fill_protocol_settings(spec_of("x.csv", protocol=name))
    assert words in str(caught.value)
