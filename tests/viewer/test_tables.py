"""What the page holds of a run's tables: the same numbers, and a number for each name."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest

from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.printable import clean_line
from isolux.viewer import DisplayedRun, build_page_contents, build_standalone_page
from isolux.viewer.name_codes import LINE, OVERALL_INDEX
from tests.report import _runs as runs
from tests.viewer._runs import audited

NUMBERS = ["n_units", "n_clusters", "value", "low", "high", "standard_error"]


def named(contents, table):
    """Put the names back in the place of numbers."""
    said = contents.manifest
    models = {i: one["model"] for i, one in enumerate(said["models"])}
    attributes = {i: one["name"] for i, one in enumerate(said["attributes"])} | {
        OVERALL_INDEX: None
    }
    lines = pl.DataFrame([{name: one[name] for name in LINE} for one in said["lines"]],
                         infer_schema_length=None).with_row_index("line")  # fmt: skip
    return contents.tables[table].with_columns(
        pl.col("line").cast(pl.UInt32),
        pl.col("attribute").replace_strict(attributes, return_dtype=pl.String),
        pl.col("model").replace_strict(models),
    ).join(lines, on="line", how="left", maintain_order="left")  # fmt: skip


@pytest.mark.parametrize("make", [audited, runs.full_run, runs.comparison_run, runs.hostile_run])
def test_every_number_of_every_group_is_the_runs_own(make):
    run = make()
    found = named(build_page_contents([DisplayedRun(run, "a")]), "groups")
    key = ["model", "metric", "label", "attribute", "group"]
    kept = run.group_metrics.select(*key, *NUMBERS, "status", "reason")
    # Names are as the report prints them: no letter of theirs turns a line around.
    kept = kept.with_columns(pl.col(pl.String).map_elements(clean_line, return_dtype=pl.String))
    told = found.select(*key, *NUMBERS, "status", "reason")
    told = told.with_columns(pl.col("n_units", "n_clusters").cast(pl.Int64))
    assert told.sort(key, nulls_last=True).equals(kept.sort(key, nulls_last=True))


def test_a_page_opens_with_the_answer_of_its_run():
    """Of two models: with that of the comparison, in words that a page can hold."""
    contents = build_page_contents([DisplayedRun(runs.comparison_run(), "a")])
    assert contents.manifest["runs"][0]["answer"] in build_standalone_page(contents)


def test_a_difference_to_everyone_stands_at_its_group():
    run = audited()
    found = named(build_page_contents([DisplayedRun(run, "a")]), "groups")
    kept = run.disparities.filter(kind="difference_to_overall")
    assert kept.height > 10
    met = kept.join(found, left_on=["metric", "attribute", "group_a"],
                    right_on=["metric", "attribute", "group"], how="inner")  # fmt: skip
    assert met.height == kept.height
    for own, theirs in (("value", "difference"), ("low", "difference_low"),
                        ("high", "difference_high"), ("p_adjusted", "difference_p")):  # fmt: skip
        assert met[theirs].to_list() == met[own].to_list()


def test_the_changes_of_a_comparison_are_there_and_an_audit_has_none():
    run = runs.comparison_run()
    found = build_page_contents([DisplayedRun(run, "a")]).tables["changes"]
    assert found.height == run.disparities.height
    assert Counter(found["value"]) == Counter(run.disparities["value"])
    assert build_page_contents([DisplayedRun(audited(), "a")]).tables["changes"].is_empty()


def test_two_runs_stand_side_by_side_and_share_their_lines():
    both = build_page_contents([DisplayedRun(audited(0), "may"), DisplayedRun(audited(1), "june")])
    names = [model["name"] for model in both.manifest["models"]]
    assert len(both.manifest["lines"]) == 1
    assert [name.rpartition(" ")[2] for name in names] == ["(may)", "(june)"]
    assert both.tables["groups"]["model"].n_unique() == 2


def test_files_that_were_changed_are_told_first():
    run = audited()
    said = build_page_contents([DisplayedRun(run, "a", ["group_metrics.parquet"])]).manifest[
        "runs"
    ][0]
    assert "not as they were written (group_metrics.parquet)" in said["warnings"][0]


def test_a_run_that_measured_nothing_is_refused():
    run = audited()
    nothing = Run(run.record, run.scores, run.attributes, run.group_metrics.clear(),
                  run.disparities, run.findings)  # fmt: skip
    with pytest.raises(SpecError, match="measured nothing"):
        build_page_contents([DisplayedRun(nothing, "a")])
    with pytest.raises(SpecError, match="nothing to look at"):
        build_page_contents([])
