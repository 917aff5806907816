"""Analyses added to a finished run: findings, tables, notes and references, each once."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.api.explain import run_analyses
from isolux.core import registry
from isolux.core.containers import AnalysisResult
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.tables import FINDINGS
from isolux.io import run_directory
from isolux.report.html import write_report

PEOPLE = pl.DataFrame(
    {
        "unit_id": [f"u{i:03}" for i in range(120)],
        "value": [1.0, 1.0, 1.0, 0.0] * 30,
        "tone": ["a", "b"] * 60,
    }
)


class Weather:
    """An analysis of another package."""

    INFO = AnalysisInfo(
        title="Weather",
        summary="Whether it rained.",
        references=(Reference("almanac", "An almanac.", "page 3"),),
        assumptions=("Rain is wet.",),
    )

    @staticmethod
    def explain(run, *, where: str = "Leeds", days: int = 1) -> AnalysisResult:
        row = {"rank": 1, "analysis": "weather", "claim": f"<b>It rained</b> in {where}."}
        findings = FINDINGS.conform(pl.DataFrame([row | {"status": "ok"}] * days))
        table = pl.DataFrame({"place": [where], "mm": [float("nan")]})
        return AnalysisResult(findings, {"Rain <i>by</i> place": table}, (f"Seen from {where}.",))


@pytest.fixture
def weather(monkeypatch):
    load = registry.load
    monkeypatch.setattr(
        registry, "load", lambda room, name: Weather if name == "weather" else load(room, name)
    )


@pytest.fixture(scope="module")
def run():
    who = PEOPLE.select("unit_id", "tone")
    return isolux.audit(PEOPLE.select("unit_id", "value"), who, by="tone", replicates=200).run


def test_findings_come_after_those_of_the_audit(run, weather):
    found = run_analyses(run, ["weather"], ["where=York", "days=2"]).findings
    assert found["analysis"].to_list() == ["group_gaps"] * (found.height - 2) + ["weather"] * 2
    assert found["rank"].to_list() == list(range(1, found.height + 1))
    assert found["claim"].to_list()[-1] == "Exploratory: <b>It rained</b> in York."


def test_what_an_analysis_said_before_is_replaced(run, weather):
    once = run_analyses(run, ["weather"], ["days=2"])
    again = run_analyses(once, ["weather"], ["weather.where=Hull"])
    assert again.findings.filter(analysis="weather").height == 1
    assert [entry["name"] for entry in again.record["analyses"]] == ["group_gaps", "weather"]
    assert [r["key"] for r in again.record["references"]].count("almanac") == 1
    assert "Seen from Leeds." in once.record["notes"]
    assert "Seen from Leeds." not in again.record["notes"]
    assert "Seen from Hull." in again.record["notes"]
    assert again.record["explained"]["weather"]["Rain <i>by</i> place"] == {
        "columns": ["place", "mm"],
        "rows": [["Hull", None]],  # NaN is no JSON
    }


def test_findings_stand_in_the_order_of_the_story_whenever_they_were_made(run, weather):
    found = run_analyses(run, ["power", "weather", "slices"], ["slices.worse=lower"])
    again = run_analyses(found, ["power"])
    told = again.findings["analysis"].unique(maintain_order=True).to_list()
    assert told == [n for n in ("group_gaps", "slices", "power", "weather") if n in told]
    assert {"power", "weather"} <= set(told)
    names = [entry["name"] for entry in again.record["analyses"]]
    assert names == ["group_gaps", "slices", "power", "weather"]


def test_the_run_that_was_explained_is_unchanged(run, weather):
    before = dict(run.record), run.findings.height
    run_analyses(run, ["weather"])
    assert (dict(run.record), run.findings.height) == before


def test_an_option_of_nobody_is_refused(run, weather):
    with pytest.raises(SpecError, match="belongs to no analysis that runs"):
        run_analyses(run, ["weather"], ["tides.where=York"])
    with pytest.raises(SpecError, match="the analysis weather has no setting 'place'"):
        run_analyses(run, ["weather"], ["place=York"])
    with pytest.raises(UnknownNameError):
        run_analyses(run, ["tides"])


def test_it_survives_a_run_directory_and_stands_escaped_in_the_report(run, weather, tmp_path):
    explained = run_analyses(run, ["weather"])
    where = run_directory.save_run(explained, tmp_path / "run")
    back = run_directory.load_run(where)
    assert back.record["explained"] == explained.record["explained"]
    text = write_report(back, tmp_path / "report.html").read_text()
    assert "&lt;b&gt;It rained&lt;/b&gt; in Leeds." in text
    assert "Rain &lt;i&gt;by&lt;/i&gt; place" in text
    assert "Rain is wet." in text
    assert "Seen from Leeds." in text
    assert 'href="#analysis-1"' in text
