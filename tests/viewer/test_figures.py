"""The figures of a page: the report's own, and what is said where one is left out."""

from __future__ import annotations

import pytest

from isolux.report import figures as drawings
from isolux.report.figures import svg
from isolux.report.summary import summarise_run
from isolux.viewer import DisplayedRun, build_page_contents, tables
from tests.report import _runs as runs
from tests.viewer._runs import many_groups

pytest.importorskip("vl_convert", reason="EXTRA figures ABSENT: no figure was drawn")


def drawn(run, **asked):
    return build_page_contents([DisplayedRun(run, "a")], figures=True, **asked)


def test_they_are_the_reports_own_in_its_order():
    run = runs.full_run()
    table = drawn(run).tables["figures"]
    expected = []
    for section in summarise_run(run).sections:
        main, more = (
            drawings.draw_intersection_heat_map(section),
            drawings.draw_secondary_metric_figures(section),
        )
        expected += [(section.attribute, one.svg, one.alt) for one in [main, *more] if one]
    assert len(expected) > 4
    assert table.select("attribute", "svg", "alt").rows() == expected


def test_a_comparison_shows_each_groups_change():
    table = drawn(runs.comparison_run()).tables["figures"]
    assert table["alt"].str.starts_with("Change of accuracy by").all()
    assert table["attribute"].n_unique() == table.height > 1


def test_curves_tell_how_scores_are_spread_so_a_page_without_people_has_none():
    assert summarise_run(runs.detector_run()).sections[0].curves
    table, _ = tables.draw_run_figures([runs.detector_run()], curves=True)
    bare, _ = tables.draw_run_figures([runs.detector_run()], curves=False)
    left = set(table["alt"]) - set(bare["alt"])
    assert set(bare["alt"]) < set(table["alt"])
    assert all(alt.startswith("People ") for alt in left)


def test_what_is_left_out_is_named():
    found = drawn(many_groups())
    assert found.tables["figures"].is_empty()
    assert found.manifest["holds"]["undrawn"] == "too many to draw: region"
    assert drawn(runs.full_run()).manifest["holds"]["undrawn"] == ""


def test_without_the_package_or_its_addresses_the_page_says_so(monkeypatch):
    monkeypatch.setattr(svg, "find_spec", lambda _: None)
    found = drawn(runs.full_run())
    assert "isolux[figures]" in found.manifest["holds"]["undrawn"]
    monkeypatch.undo()
    monkeypatch.setattr(svg, "read_address_space_limit_bytes", lambda: 2 << 30)
    found = drawn(runs.full_run())
    assert "ulimit -v allows 2,097,152 KiB" in found.manifest["holds"]["undrawn"]
    assert found.tables["groups"].height > 0
