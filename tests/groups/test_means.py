"""Groups' means without an interval: those of ``measure_groups``, at a fraction of the cost."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from isolux.core.errors import SpecError
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import COMPARABLE_STATUSES, GROUP_METRICS, check
from isolux.groups.measure import average_metrics_by_group, measure_groups
from isolux.groups.measure.entries import index_membership_entries
from tests._scored import ACCURACY, ERROR, members, scored, stacked

SPEC = ComparisonSettings(min_units=2, min_clusters=2, replicates=100)
SAME = ["model", "metric", "threshold", "attribute", "group", "values", "n_units", "n_clusters"]


def test_values_and_counts_by_hand():
    # Subjects p (1, 0), q (1), r (none scored); groups a = p, b = q and r.
    scores = scored([1, 0, 1, None], ["p", "p", "q", "r"])
    rows = average_metrics_by_group(
        scores, members(g=["a", "a", "b", "b"]), min_units=1, min_clusters=1
    )
    assert rows["group"].to_list() == ["overall", "a", "b"]
    assert rows["value"].to_list() == pytest.approx([2 / 3, 0.5, 1.0])
    assert rows["n_units"].to_list() == [3, 2, 1]
    assert rows["n_clusters"].to_list() == [2, 1, 1]
    assert rows["low"].null_count() == 3
    check(rows, GROUP_METRICS)


def test_a_group_too_small_has_a_status_and_no_value():
    scores, who = scored([1, 0, None]), members(g=["a", "a", "b"])
    rows = average_metrics_by_group(scores, who, min_units=2, min_clusters=1)
    assert rows.filter(group="b").select("value", "status", "reason").row(0) == (
        None, "not scored", "nobody in this group was scored on this metric",
    )  # fmt: skip
    rows = average_metrics_by_group(scores, who, min_units=3, min_clusters=3)
    assert rows["status"].to_list() == ["insufficient units", "insufficient units", "not scored"]
    rows = average_metrics_by_group(scores, who, min_units=1, min_clusters=3)
    assert rows["reason"].to_list()[:2] == ["fewer than 3 clusters"] * 2


values = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=12, max_size=12)
clusters = st.lists(st.sampled_from(["p", "q", "r", None]), min_size=12, max_size=12)
groups = st.lists(
    st.one_of(st.none(), st.sampled_from("abc"), st.just(["a", "b"])), min_size=12, max_size=12
)


@settings(max_examples=100, deadline=None)
@given(values, values, clusters, groups, groups, st.randoms())
def test_the_numbers_are_those_of_the_whole_measurement(first, second, of, one, two, draw):
    scores = stacked(scored(first, of), scored(second, of, metric=ERROR))
    info = dataclasses.replace(scores.info, metrics=(ACCURACY, ERROR))
    scores = dataclasses.replace(scores, info=info)
    who = members(one=one, two=two)
    rows = list(range(who.height))
    draw.shuffle(rows)
    ours = average_metrics_by_group(scores, who, min_units=2, min_clusters=2)
    theirs = measure_groups(scores, who, SPEC).to_table()
    assert_frame_equal(ours.select(SAME), theirs.select(SAME))
    shown = theirs["status"].is_in(COMPARABLE_STATUSES)
    assert (ours["status"] == "ok").to_list() == shown.to_list()
    np.testing.assert_allclose(
        ours["value"].to_numpy(), theirs["value"].to_numpy(), rtol=0, atol=1e-12
    )
    mixed = average_metrics_by_group(scores, who[rows], min_units=2, min_clusters=2)
    order = ["attribute", "group", "metric"]
    assert_frame_equal(mixed.sort(order), ours.sort(order), abs_tol=1e-12)


def test_metrics_of_other_units_and_rows_that_are_mixed():
    scores = stacked(scored([1, 0, 1]), scored([0.5], metric=ERROR))
    who = members(g=["a", "b", "b"])
    rows = average_metrics_by_group(scores, who, min_units=1, min_clusters=1)
    assert rows.filter(metric="error")["n_units"].to_list() == [1, 1, 0]
    shuffled = dataclasses.replace(scores, units=scores.units[[2, 3, 0, 1]])
    mixed = average_metrics_by_group(shuffled, who, min_units=1, min_clusters=1)
    order = ["group", "metric"]
    assert_frame_equal(rows.sort(order), mixed.sort(order))


def test_groups_whose_names_look_alike_are_two():
    # "a × b" and "c", or "a" and "b × c": one display, two groups.
    who = pl.DataFrame(
        {
            "attribute": ["x*y"] * 3,
            "group": ["a × b × c"] * 3,
            "values": [["a × b", "c"], ["a", "b × c"], ["a × b", "c"]],
            "unit_id": ["u0", "u1", "u2"],
        }
    )
    found = index_membership_entries(who, pl.Series(["u0", "u1", "u2"]))
    assert [group.values for group in found.groups[1:]] == [("a × b", "c"), ("a", "b × c")]
    assert found.group_index.tolist() == [1, 2, 1]


def test_what_is_no_mean_is_refused():
    empty = dataclasses.replace(
        scored([]), evidence={"detections": pl.DataFrame({"unit_id": ["u0"]})}
    )
    with pytest.raises(SpecError, match=r"none of these metrics is a mean(?s:.*)measure_groups"):
        average_metrics_by_group(empty, members(g=["a"]))


def test_clusters_are_counted_in_every_group():
    who = members(g=list("abcabc"), h=list("xxyyzz"))
    rows = average_metrics_by_group(
        scored([1] * 6, list("ppqqrs")), who, min_units=1, min_clusters=1
    )
    assert rows["n_clusters"].to_list() == [4, 2, 2, 2, 1, 1, 2]


def test_nobody_at_all():
    assert average_metrics_by_group(scored([]), members(g=[])).is_empty()
