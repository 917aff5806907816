"""Single people enter a page only when asked, and are then what the run says of them."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.api.publish import publish
from isolux.core.errors import SpecError
from isolux.viewer import DisplayedRun, build_page_contents
from tests.viewer._runs import audited, people


def test_unasked_no_table_holds_a_person():
    contents = build_page_contents([DisplayedRun(audited(), "a")])
    assert contents.manifest["holds"]["people"] is False
    for name, table in contents.tables.items():
        assert "unit_id" not in table.columns, name


def test_each_person_has_their_own_score_and_groups():
    contents = build_page_contents([DisplayedRun(audited(), "a")], people=True)
    table = contents.tables["people-0"]
    facets = contents.manifest["people"][0]["attributes"]
    assert [facet["name"] for facet in facets] == ["light", "tone", "size"]
    told = table.with_columns(
        pl.col(f"a{i}").replace_strict(dict(enumerate(facet["values"]))).alias(facet["name"])
        for i, facet in enumerate(facets)
    ).select("unit_id", "light", "tone", "size", value="s0_0")
    assert told.sort("unit_id").equals(people().sort("unit_id"))
    unscored = table.filter(pl.col("s0_0").is_null())
    assert unscored.height == people()["value"].null_count()
    assert unscored["r0_0"].null_count() == 0


def test_people_in_several_groups_are_in_all_of_them():
    import isolux

    twice = pl.DataFrame({"unit_id": [str(i) for i in range(300)], "value": [1.0, 0.0, 1.0] * 100})
    several = pl.DataFrame(
        {
            "unit_id": [*twice["unit_id"], *twice["unit_id"][:50]],
            "ancestry": ["a", "b", "c"] * 100 + ["d"] * 50,
        }
    )
    rows = several.select(
        pl.lit("instance").alias("unit_kind"), "unit_id", attribute=pl.lit("ancestry"),
        value="ancestry",
    )  # fmt: skip
    run = isolux.audit(twice, rows, by=["ancestry"], replicates=100).run
    contents = build_page_contents([DisplayedRun(run, "a")], people=True)
    (facet,) = contents.manifest["people"][0]["attributes"]
    first = contents.tables["people-0"].filter(unit_id="0")["a0"].to_list()[0]
    assert {facet["values"][i] for i in first} == {"a", "d"}


def test_what_is_published_and_what_keeps_no_people_hold_none():
    with pytest.raises(SpecError, match="made to be published"):
        build_page_contents([DisplayedRun(publish(audited(), 10), "a")], people=True)
    from tests.report import _runs as runs

    with pytest.raises(SpecError, match="keeps no scores of single people"):
        build_page_contents([DisplayedRun(runs.full_run(), "a")], people=True)
