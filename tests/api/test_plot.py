"""A run's chart in a notebook: the report's numbers, warnings under the title, no script."""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError, UnknownNameError

EVIL = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def audit():
    """Two groups of 100 at .9 and .5, one of 20, of two classes; nothing is drawn at random."""
    right = [1, 1, 1, 1, 1, 1, 1, 1, 1, 0] * 10 + [1, 0] * 50 + [1] * 20
    people = pl.DataFrame(
        {
            "id": [str(i) for i in range(220)],
            "light": ["day"] * 100 + [EVIL] * 100 + ["dusk"] * 20,
            "job": ["a", "b"] * 110,
        }
    ).with_columns(
        said=pl.Series([j if r else "c" for j, r in zip(["a", "b"] * 110, right, strict=True)])
    )
    dataset = people.select(unit_id="id", light="light", job="job")
    scores = people.select(unit_id="id", value=(pl.col("said") == pl.col("job")).cast(pl.Float64))
    return isolux.audit(scores, dataset, by=["light", "job"], replicates=200)


def rows_of(chart):
    found = chart.to_dict()
    points = [layer for layer in found["layer"] if "tooltip" in layer["encoding"]]
    return {row["name"]: row for row in points[0]["data"]["values"]}


def test_groups_have_the_audits_values_and_intervals(audit):
    day = rows_of(audit.plot("score", "light"))["day"]
    kept = audit.group_metrics.filter(attribute="light", group="day").row(0, named=True)
    assert day["value"] == 90.0  # 90 of 100
    for end in ("value", "low", "high"):
        assert day[end] == pytest.approx(100 * kept[end])


def test_a_group_too_small_keeps_its_row_with_the_reason(audit):
    chart = audit.plot("score", "light")
    dusk = rows_of(chart)["dusk"]
    assert (dusk["value"], dusk["reason"]) == (None, "fewer than 50 units")
    assert "1 of 3 groups have too little data to judge." in chart.to_dict()["title"]["subtitle"]


def test_warnings_stand_under_the_title(audit, tmp_path):
    run = audit.run
    warned = replace(run, record={**run.record, "warnings": ["The boxes leave their images."]})
    told = isolux.plot(warned).to_dict()["title"]["subtitle"]
    assert told[0] == "WARNING: The boxes leave their images."
    audit.report(tmp_path / "run")
    assert isolux.plot(tmp_path / "run").to_dict() == audit.plot().to_dict()


def test_a_hostile_name_runs_nowhere(audit):
    page = audit.plot("score", "light").to_html()
    assert "</script><script>alert" not in page
    assert len(re.findall("</script>", page)) == len(re.findall("<script", page))


def test_what_is_not_there_is_refused_by_name(audit):
    with pytest.raises(UnknownNameError, match=r"no metric named 'scor'(.|\n)*score"):
        audit.plot("scor")
    with pytest.raises(UnknownNameError, match="no attribute named 'tone'"):
        audit.plot(attribute="tone")
    with pytest.raises(SpecError, match="score has no such label"):
        audit.plot("score", label="x")


def test_without_altair_it_says_what_to_install(audit, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(SpecError, match=r"pip install 'isolux\[notebook\]'"):
        audit.plot()


def test_numbers_stay_to_the_right_of_a_wider_chart(audit) -> None:
    spec = isolux.plot(audit, "score", "light").properties(width=800).to_dict()
    positions = [
        layer["encoding"]["x"]["value"]["expr"]
        for layer in spec["layer"]
        if layer["mark"]["type"] == "text" and layer["mark"].get("align") == "right"
    ]
    assert positions == ["width + 44", "width + 92", "width + 92"]  # value, n, the heading of n
