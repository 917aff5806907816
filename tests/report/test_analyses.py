"""What an analysis says in the report: three findings in the open, the others folded away."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.core.tables import FINDINGS
from isolux.report.html import render_report
from isolux.report.summary import summarise_run
from tests.report import _runs as runs
from tests.report._page import parse


def page(n):
    """Render a run on which ``slices`` found n things, the second of them said without its p."""
    run = runs.detector_run()
    rows = [
        {"rank": i, "analysis": "slices", "claim": f"Claim {i}." if i == 2 else f"{i}: p = 0.03",
         "status": "ok", "p_adjusted": 0.03}
        for i in range(1, n + 1)
    ]  # fmt: skip
    found = FINDINGS.conform(pl.DataFrame(rows)) if rows else FINDINGS.empty()
    record = {**run.record, "analyses": [{"name": "slices", "title": "The worst slices"}]}
    tree = parse(render_report(summarise_run(replace(run, record=record, findings=found))))
    return next(s for s in tree.all("section") if s.attributes.get("id") == "analysis-1")


@pytest.mark.parametrize(("n", "folded"), [(2, None), (3, None), (4, "1 more finding"),
                                           (9, "6 more findings")])  # fmt: skip
def test_what_is_told_first_is_open_and_the_rest_is_folded(n, folded):
    section = page(n)
    folds = [d for d in section.all("details") if "more finding" in d.text]
    inside = [item.text for fold in folds for item in fold.all("li")]
    assert len(section.all("li")) == n
    if folded is None:
        assert folds == []
        return
    assert [fold.all("summary")[0].text for fold in folds] == [folded]
    assert len(inside) == n - 3
    assert folds[0].all("ol")[0].attributes["start"] == "4"


def test_a_p_that_a_claim_does_not_say_stands_beside_it():
    told = [item.text for item in page(3).all("li")]
    assert "0.030" in told[1]
    assert "0.030" not in told[0]


def test_an_analysis_that_found_nothing_says_so():
    assert "This analysis has no finding." in page(0).text


def test_tables_print_a_small_p_as_a_bound_and_nothing_as_text_among_texts():
    run = runs.detector_run()
    table = {
        "columns": ["value", "adjusted p", "places", "where"],
        "rows": [["a", 0.00001, 0.00001, "b"], ["c", 0.25, 0.5, None]],
    }
    record = {
        **run.record,
        "analyses": [{"name": "slices", "title": "The worst slices"}],
        "explained": {"slices": {"One": table}},
    }
    tree = parse(render_report(summarise_run(replace(run, record=record))))
    rows = [[c.text for c in row.all("td")] for row in tree.all("tr")]
    found = [row for row in rows if len(row) == 3 and row[2] in ("b", "–")]
    assert [cells[0].replace("\xa0", " ") for cells in found] == ["< 0.001", "0.250"]
    cells = [c for row in tree.all("tr") for c in row.all("td") if c.text == "–"]
    assert any("n" not in (c.attributes.get("class") or "").split() for c in cells)


GAP_TABLE = {
    "columns": [
        "metric",
        "group",
        "n",
        "value",
        "gap",
        "from",
        "to",
        "p_adjusted",
        "lift",
        "share",
    ],
    "rows": [["accuracy", "a", 50, 0.654, -0.137, -0.2, -0.05, 0.137, 1.7, 0.25]],
}


def table_of(unit):
    said = {"name": "confounders", "title": "T"}
    more = {"explained": {"confounders": {"Gaps": GAP_TABLE}}, "analyses": [said]}
    measures = {"accuracy": {"title": "Accuracy", "unit": unit, "direction": "higher"}}
    root = parse(render_report(summarise_run(runs.full_run(**more, measures=measures))))
    (found,) = [t for t in root.all("table") if t.text.startswith("Gaps")]
    heads, cells = ([c.text for c in found.all(part)[0].all("th", "td")] for part in
                    ("thead", "tbody"))  # fmt: skip
    return dict(zip([head.split(" ↕")[0] for head in heads], cells, strict=True))


def test_a_table_is_in_the_units_of_the_sentences_above_it():
    told = table_of("fraction")
    assert told["value (%)"] == "65.4"
    assert told["gap (points)"] == "−13.7"
    assert (told["from (points)"], told["to (points)"]) == ("−20.0", "−5.0")
    assert told["share (%)"] == "25.0"
    assert (told["n"], told["p adjusted"], told["lift"]) == ("50", "0.137", "1.70")


def test_a_metric_of_another_unit_keeps_it_and_shares_are_percent_all_the_same():
    told = table_of("years")
    assert (told["value"], told["gap"], told["to"]) == ("0.654", "−0.137", "−0.050")
    assert told["share (%)"] == "25.0"
