"""Who gained and who lost: counts on the people whom both models scored."""

from __future__ import annotations

import polars as pl

import isolux
from isolux.viewer import DisplayedRun, build_page_contents
from isolux.viewer.name_codes import OVERALL_INDEX
from tests.report import _runs as runs
from tests.viewer._runs import audited, people


def second():
    """Score the same people, less every tenth, by another model."""
    frame = people(seed=0).with_row_index("row")
    worse = pl.when(pl.col("row") % 7 == 0).then(1 - pl.col("value")).otherwise("value")
    return frame.with_columns(value=worse).filter(pl.col("row") % 10 != 0).drop("row")


def test_counts_by_hand():
    frame = second()
    run = isolux.audit(frame, by=["light", "tone", "size"], replicates=100).run
    contents = build_page_contents([DisplayedRun(audited(), "a"), DisplayedRun(run, "b")])
    both = people().join(frame, on="unit_id", suffix="_b").drop_nulls(["value", "value_b"])
    for attribute, group, rows in (
        (None, "overall", both), ("light", "dusk", both.filter(light="dusk"))
    ):  # fmt: skip
        names = [a["name"] for a in contents.manifest["attributes"]]
        number = OVERALL_INDEX if attribute is None else names.index(attribute)
        told = contents.tables["moves"].filter(attribute=number, group=group)
        change = rows["value_b"] - rows["value"]
        assert told.select("up", "down", "same").rows() == [
            ((change > 0).sum(), (change < 0).sum(), (change == 0).sum())
        ]


def test_one_model_and_runs_without_people_have_none():
    assert build_page_contents([DisplayedRun(audited(), "a")]).tables["moves"].is_empty()
    assert (
        build_page_contents([DisplayedRun(runs.comparison_run(), "a")]).tables["moves"].is_empty()
    )


def test_the_models_of_a_comparison_are_counted_too(tmp_path):
    del tmp_path
    other = isolux.audit(second(), by=["light", "tone", "size"], replicates=100)
    first = isolux.audit(people(), by=["light", "tone", "size"], replicates=100)
    run = isolux.compare(first, other).run
    told = (
        build_page_contents([DisplayedRun(run, "a")])
        .tables["moves"]
        .filter(attribute=OVERALL_INDEX)
    )
    assert told.height == 1
    assert told["up"].sum() + told["down"].sum() > 300
