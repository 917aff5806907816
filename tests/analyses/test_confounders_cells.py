"""Average precision of cells, by hand and against a slow reading; means of cells."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.analyses.confounders.audit_tests import AuditTestResults
from isolux.analyses.confounders.detections import (
    PrecisionSettings,
    build_detection_tables_by_class,
    estimate_average_precision_of_cells,
)
from isolux.analyses.confounders.groups import (
    ExplanatoryStrata,
    SensitiveAttribute,
    cross_explanatory_strata,
)
from isolux.analyses.confounders.strata import build_stratum_layout, estimate_cell_means
from tests.analyses._confounded import evidence_of, slow_precision

PLAIN = PrecisionSettings(overlaps=(0,), normalised=False, false_alarm_scope="class and value")


def boxes(people, found):
    """Number evidence: units p0, p1, … and clusters by image."""
    table = evidence_of(people, found)
    return build_detection_tables_by_class(
        table.with_columns(
            unit=pl.col("unit_id").str.strip_prefix("p").cast(pl.Int64),
            cluster=pl.col("image_id").cast(pl.Int64),
        )
    )


def layout_of(group, value, n_groups=2, n_values=2):
    group, value = np.array(group), np.array(value)
    known = np.flatnonzero(group >= 0)
    tone = SensitiveAttribute("tone", tuple("abc"[:n_groups]), known, group[known])
    names = tuple(f"v{e}" for e in range(n_values))
    return build_stratum_layout(
        tone, [ExplanatoryStrata(("size",), names, value, is_image_level=False)]
    )


def test_a_cell_by_hand():
    """Two people of tone a (images 0 and 1), one of b (image 1); one false alarm, in image 1.

    a, plain, own images: right, wrong, right: 1 up to recall 1/2, 2/3 beyond: area 5/6. With N = 3
    (everyone) 1/2 x 1 + 1/2 x 3/4 = 7/8; with N = 1.5 (the mean of 2 and 1) 1/2 + 1/2 x .6 = .8.
    b, found below everything, after the alarm: 1/2 plain, 3/4 with N = 3, .6 with N = 1.5.
    """
    people = [(0, None), (1, None), (1, None)]
    found = [(0, None, 0.9, 0, 1), (1, None, 0.8, None, 1), (1, None, 0.7, 1, 1),
             (1, None, 0.6, 2, 1)]  # fmt: skip
    layout = layout_of([0, 0, 1], [0, 1, 1])
    for how, expected in (
        (PLAIN, [5 / 6, 1 / 2]),
        (PrecisionSettings((0,), "area", false_alarm_scope="class and value"), [7 / 8, 3 / 4]),
        (
            PrecisionSettings(
                (0,), "area", false_alarm_scope="class and value", count_method="mean of peers"
            ),
            [0.8, 0.6],
        ),
    ):
        asked = PrecisionSettings(
            (0,), "area", how.normalised, how.false_alarm_scope, how.count_method
        )
        (cells,) = estimate_average_precision_of_cells(layout, boxes(people, found), 2, None, asked)
        assert layout.take_groups(cells.value).tolist() == pytest.approx(expected), how
        assert layout.take_groups(cells.units).tolist() == [2, 1]
        assert layout.take_groups(cells.clusters).tolist() == [2, 1]


def test_whose_false_alarms_count():
    """a is in image 0, the alarm in image 1: not a's by the paper's rule, a's if every image's."""
    people = [(0, None), (1, None)]
    found = [(1, None, 0.9, None, 1), (0, None, 0.8, 0, 1), (1, None, 0.7, 1, 1)]
    layout = layout_of([0, 1], [0, 1])
    own = PrecisionSettings((0,), "area", normalised=False, false_alarm_scope="class and value")
    every = PrecisionSettings((0,), "area", normalised=False)
    for how, expected in ((own, 1.0), (every, 0.5)):
        (cells,) = estimate_average_precision_of_cells(layout, boxes(people, found), 2, None, how)
        assert layout.take_groups(cells.value)[0] == expected


@st.composite
def scenes(draw):
    """People in images, of two classes, tones and sizes, and boxes."""
    image, kind = st.integers(0, 3), st.sampled_from(["car", "dog"])
    people = draw(st.lists(st.tuples(image, kind), min_size=1, max_size=7))
    found = []
    for k, (i, c) in enumerate(people):
        if draw(st.booleans()):
            found.append((i, c, draw(st.floats(0, 1)), k, draw(st.integers(1, 3))))
    for i, c, s in draw(st.lists(st.tuples(image, kind, st.floats(0, 1)), max_size=6)):
        found.append((i, c, s, None, 3))
    n = len(people)
    group = draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    value = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    return people, found, group, value


@settings(max_examples=60, deadline=None)
@given(
    scenes(),
    st.sampled_from(["class and value", "every image"]),
    st.sampled_from(["mean of peers", "overall", None]),
    st.booleans(),
)
def test_every_cell_against_a_slow_reading(scene, alarms, count, area):
    people, found, group, value = scene
    found = [(*row[:2], row[2] + 1e-3 * i, *row[3:]) for i, row in enumerate(found)]  # no ties
    layout = layout_of(group, value)
    how = PrecisionSettings(
        (0, 1), "area" if area else "101 points", count is not None, alarms, count or "overall"
    )
    cells = estimate_average_precision_of_cells(layout, boxes(people, found), 4, None, how)
    members = [
        {u for u, c in zip(layout.unit.tolist(), layout.cell.tolist(), strict=True) if c == cell}
        for cell in range(layout.n_cells)
    ]
    judged = set(layout.sensitive.unit.tolist())
    ones = dict.fromkeys(range(4), 1.0)
    labels = sorted({c for _, c in people} | {row[1] for row in found})
    for label, own in zip(labels, cells, strict=False):
        size = [sum(people[u][1] == label for u in inside) for inside in members]
        for cell, inside in enumerate(members):
            peers = [
                s
                for s, p in zip(size, layout.peer_sets, strict=True)
                if p == layout.peer_sets[cell]
            ]
            held = [s for s in peers if s]
            n = {
                None: None,
                "overall": sum(people[u][1] == label for u in judged),
                "mean of peers": np.mean(held) if held else 1.0,
            }[count]
            expected = np.mean([
                slow_precision(people, found, inside, label, weight=ones, n=n,
                               by_image=alarms == "class and value", overlap=t, area=area)
                for t in (0, 1)
            ])  # fmt: skip
            assert own.value[cell] == pytest.approx(expected, nan_ok=True, abs=1e-12)
    if (
        len(cells) > 1
    ):  # all classes: the mean of those that every group has, in cells with them all
        stacked = np.stack([own.value for own in cells[:-1]])
        held = layout.take_groups(cells[-1].units) > 0
        shared = np.isfinite(layout.take_groups(stacked)[:, held]).all(axis=1)
        for cell in range(layout.n_cells):
            expected = stacked[shared, cell].mean() if shared.any() else np.nan
            assert cells[-1].value[cell] == pytest.approx(expected, nan_ok=True)


def test_equal_to_plain_precision_where_n_is_the_groups_own():
    """Two groups of as many people: N_i = N, and normalised precision is plain precision."""
    rng = np.random.default_rng(5)
    people = [(i // 3, None) for i in range(60)]
    found = [(k // 3, None, float(rng.random()), k, 1) for k in range(60) if rng.random() < 0.7]
    found += [(int(i), None, float(rng.random()), None, 1) for i in rng.integers(0, 20, 40)]
    layout = layout_of([k % 2 for k in range(60)], [0] * 60, n_values=1)
    plain, normal = (
        estimate_average_precision_of_cells(
            layout, boxes(people, found), 20, None,
            PrecisionSettings((0,), "101 points", normalised, "class and value", "mean of peers"),
        )[0]
        for normalised in (False, True)
    )  # fmt: skip
    assert np.array_equal(layout.take_groups(plain.value), layout.take_groups(normal.value))


def test_replicates_are_the_statistic_of_weighted_images(monkeypatch):
    people = [(0, None), (1, None), (2, None), (2, None)]
    found = [(0, None, 0.9, 0, 1), (1, None, 0.8, None, 1), (2, None, 0.7, 2, 1)]
    layout = layout_of([0, 0, 0, 1], [0, 0, 0, 0], n_values=1)
    weights = np.array([[2.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    law = {"multinomial": lambda rng, copies, size: weights}
    monkeypatch.setattr("isolux.analyses.confounders.strata._WEIGHT_FUNCTIONS", law)
    how = PrecisionSettings((0,), "area", normalised=False)
    (cells,) = estimate_average_precision_of_cells(
        layout, boxes(people, found), 3, (2, 0, "multinomial"), how
    )
    # Image 0 twice, image 1 not: a's people weigh 2 + 1, the alarm nothing: precision 1, recall 1.
    assert cells.replicates[:, 0].tolist() == pytest.approx([1.0, 1 / 3 + 1 / 3 * 2 / 3])
    assert cells.replicate_counts[:, 0].tolist() == [3.0, 3.0]


def test_means_of_cells_and_their_replicates():
    layout = layout_of([0, 0, 1, -1], [0, 1, 1, 0])
    scored = pl.DataFrame({"unit": [0, 1, 2, 3], "cluster": [0, 0, 1, 1],
                           "value": [1.0, 0.0, 1.0, 0.0]})  # fmt: skip
    cells = estimate_cell_means(layout, scored, 2, (100, 0, "multinomial"))
    assert layout.take_groups(cells.value).tolist() == [0.5, 1.0]
    # Person 3 is of no group, and so not at the first value either.
    assert layout.take_values(cells.value, 0).tolist() == [1.0, 0.5]
    both = layout.take_groups_by_value(cells.value, 0)
    assert both[0].tolist() == [1.0, 0.0]
    assert np.isnan(both[1, 0])
    assert layout.take_groups(cells.clusters).tolist() == [1, 1]
    # A replicate without cluster 1 has nobody of the second group.
    lost = cells.replicate_counts[:, 1] == 0
    assert lost.any()
    assert np.isnan(cells.replicates[lost, 1]).all()


def test_crossing_keeps_unknown_out():
    one = ExplanatoryStrata(("size",), ("s", "l"), np.array([0, 1, -1]), is_image_level=False)
    two = ExplanatoryStrata(("light",), ("d",), np.array([0, 0, 0]), is_image_level=True)
    both = cross_explanatory_strata([one, two])
    assert both.code.tolist() == [0, 1, -1]
    assert both.attributes == ("size", "light")
    assert not both.is_image_level


def test_the_worst_groups_pair_speaks_as_it_does_in_the_audits_findings():
    # Pairs of A .93, B .60, C .95: A−B, A−C, B−C. All differ; B is worst, and C farthest from it.
    gap, worst = np.array([0.33, 0.02, 0.35]), np.array([0.60, 0.93, 0.60])
    assert AuditTestResults(np.array([0.01, 0.01, 0.01]), worst, gap).find_leading_pair(0.05) == 2
    # Of B nothing is established: A speaks, however far B seems to be.
    assert AuditTestResults(np.array([0.2, 0.01, 0.3]), worst, gap).find_leading_pair(0.05) == 1
