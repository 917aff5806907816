"""Curves and sizes beside each attribute: from the run's record to the page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from isolux.report import figures
from isolux.report.html import render_report
from isolux.report.summary import summarise_run
from tests.report import _runs as runs
from tests.report._page import parse

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def summary():
    return summarise_run(runs.detector_run())


@pytest.fixture(scope="module")
def tree(summary):
    return parse(render_report(summary))


def section(tree, n):
    return next(s for s in tree.all("section") if s.attributes.get("id") == f"attribute-{n}")


def cells(table):
    return [[c.text for c in row.all("th", "td")] for row in table.all("tr")]


def strata(tree, n):
    tables = [t for t in section(tree, n).all("table") if "strata" in t.attributes["class"]]
    return {t.all("caption")[0].text.split(":")[0].split(" (")[0]: t for t in tables}


def test_the_table_stands_beside_its_attribute(tree):
    tables = strata(tree, 1)
    assert list(tables) == ["By size", "By occlusion"]
    rows = cells(tables["By size"])
    assert rows[0] == ["", "small", "medium", "large"]
    assert rows[1] == ["Group", *["Share", "Value"] * 3]
    black = next(row for row in rows if row[0] == "Black")
    sound = ["40 %n = 500", "53.910.0 to 90.0", "40 %n = 500", "63.910.0 to 90.0"]
    assert list(black) == [
        "Black", *sound, "2 %n = 30", "–insufficient units",
    ]  # fmt: skip
    assert rows[-1][0] == "overall"


def test_of_every_attribute_it_is_folded(tree):
    for place in (1, 4):
        assert strata(tree, place)
        (fold,) = [
            d
            for d in section(tree, place).all("details")
            if d.text.startswith("By size and occlusion")
        ]
        assert len(fold.all("table")) == 2
    assert strata(tree, 2) == {}  # nothing was measured by age


def test_the_two_views_have_no_section_of_their_own(summary):
    assert summary.analyses == ()


def test_each_group_has_a_panel_with_everyone_dashed(summary):
    (figure,) = figures.draw_share_curve_figures(summary.sections[0])
    root = ET.fromstring(figure.svg)  # noqa: S314 - our own drawing
    told = [e.text for e in root.iter() if e.tag == f"{SVG}text"]
    assert set(runs.RACES) <= set(told)
    dashed = [e for e in root.iter() if e.attrib.get("stroke-dasharray") == "4,3"]
    assert len(dashed) == len(runs.RACES)
    assert "Black 63.9 % at 0.5" in figure.alt
    assert "Dashed: overall." in figure.caption


def test_a_group_that_the_run_does_not_know_has_no_panel(summary):
    crossed = next(s for s in summary.sections if s.is_intersection)
    (figure,) = figures.draw_share_curve_figures(crossed)
    assert "Black × Female" in figure.alt
    assert "<script>" not in figure.svg
    assert figure.caption.endswith("13 more have no panel.")


def test_curves_are_valid_vega_lite(monkeypatch, summary):
    import altair as alt
    import vl_convert

    seen = []

    def check(spec, **_):
        alt.Chart.from_dict(spec, validate=True)
        seen.append(spec)
        return "<svg></svg>"

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", check)
    assert [f.svg for f in figures.draw_share_curve_figures(summary.sections[0])] == ["<svg></svg>"]
    assert len(seen) == 1


def test_without_these_analyses_there_is_neither(summary):
    run = runs.detector_run()
    bare = summarise_run(replace(run, record={**run.record, "explained": {}}))
    assert all(not s.curves and not s.breakdowns for s in bare.sections)
    assert figures.draw_share_curve_figures(bare.sections[0]) == ()
    assert "By size" not in parse(render_report(bare)).text


def test_another_models_tables_are_not_shown(summary):
    run = runs.detector_run()
    other = run.record["explained"]
    rows = [["other", *row[1:]] for row in other["size_and_occlusion"]["b"]["rows"]]
    changed = {
        **other,
        "size_and_occlusion": {"b": {**other["size_and_occlusion"]["b"], "rows": rows}},
    }
    shown = summarise_run(replace(run, record={**run.record, "explained": changed}))
    assert all(not s.breakdowns for s in shown.sections)
    assert shown.sections[0].curves


def test_the_headline_names_people_whose_group_is_known():
    tables = runs.Tables()
    of = runs.line("accuracy")
    runs.add_everyone(tables, of, 3000, 0.7)
    rates = {("A",): (1000, 0.60), ("B",): (1000, 0.80), ("unknown",): (1000, 0.30)}
    runs.add_attribute(tables, of, "site", rates, everyone=0.7)
    found = summarise_run(runs.run_of(tables))
    lead = found.sections[0].lead
    assert {lead.group_a, lead.group_b} == {"A", "B"}
    assert "worse for people with site = A than for" in found.answer
    assert "unknown" not in found.answer
    (table,) = (
        t
        for t in parse(render_report(found)).all("table")
        if "strips" in t.attributes.get("class", "")
    )
    names = [row.all("th")[0].text for row in table.all("tbody")[0].all("tr")]
    assert names == ["A", "B", "unknown"]


def test_a_line_that_repeats_another_is_not_told_twice():
    tables = runs.Tables()
    rates = {("A",): (1000, 0.60), ("B",): (1000, 0.80)}
    missed = {("A",): (1000, 0.40), ("B",): (1000, 0.20)}
    for of, told in (("accuracy", rates), ("recall", rates), ("miss_rate", missed)):
        runs.add_everyone(tables, runs.line(of), 2000, 0.7)
        runs.add_attribute(tables, runs.line(of), "site", told, everyone=0.7)
    assert summarise_run(runs.run_of(tables)).sections[0].verdict.also == ("recall",)
