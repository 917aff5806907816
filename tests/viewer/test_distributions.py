"""How scores are spread in a group: counts that agree with the run's own, and nothing of others."""

from __future__ import annotations

import polars as pl

from isolux.api.publish import publish
from isolux.viewer import DisplayedRun, build_page_contents
from isolux.viewer.name_codes import OVERALL_INDEX
from tests.viewer._runs import audited, people


def test_counts_of_a_group_are_its_people_and_their_mean_is_its_value():
    contents = build_page_contents([DisplayedRun(audited(), "a")], people=True)
    key = ["model", "line", "attribute", "group"]
    both = contents.tables["groups"].join(contents.tables["distributions"], on=key, how="inner")
    assert both.height == contents.tables["groups"].height
    for row in both.iter_rows(named=True):
        zeros, ones = row["counts"]
        assert zeros + ones == row["n_units"]
        if row["value"] is not None:
            assert abs(ones / (zeros + ones) - row["value"]) < 1e-12


def test_a_cell_counted_by_hand():
    frame = people()
    found = build_page_contents([DisplayedRun(audited(), "a")])
    number = [one["name"] for one in found.manifest["attributes"]].index("light*tone")
    rows = found.tables["distributions"].filter(attribute=number, group="dusk × 4-6")
    cell = frame.filter(light="dusk", tone="4-6")
    assert rows["counts"].to_list() == [
        [cell.filter(value=0.0).height, cell.filter(value=1.0).height]
    ]
    assert rows["unscored"].to_list() == [cell["value"].null_count()]


def test_scores_that_are_no_yes_or_no_fall_into_bins_of_their_range():
    import isolux

    frame = people().with_columns(value=pl.int_range(pl.len()) / pl.len() * 8 - 3)
    run = isolux.audit(frame, by=["size"], replicates=100).run
    found = build_page_contents([DisplayedRun(run, "a")])
    bins = found.manifest["lines"][0]["bins"]
    assert (bins["two"], bins["n"], bins["low"]) == (False, 20, -3.0)
    everyone = found.tables["distributions"].filter(attribute=OVERALL_INDEX)
    assert everyone["counts"].to_list() == [[150] * 20]


def test_a_published_run_has_no_distribution():
    assert (
        build_page_contents([DisplayedRun(publish(audited(), 10), "a")])
        .tables["distributions"]
        .is_empty()
    )
