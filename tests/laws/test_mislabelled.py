"""Labels that are wrong: what corrections and bounds promise, and the width that honesty costs."""

from __future__ import annotations

import pytest

from tests.laws._annotators import BROKEN, KINDS, SOUND, doubted
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._mislabelled import annotated_gaps, bounded_gaps, corrected_gaps

pytestmark = pytest.mark.law

CELLS = [
    ((0.7, 0.9), 0.05, 200, 100, 5), ((0.7, 0.9), 0.1, 200, 100, 5), ((0.7, 0.9), 0.2, 200, 100, 5),
    ((0.7, 0.9), 0.2, 50, 100, 5), ((0.9, 0.9), 0.1, 200, 100, 5), ((0.5, 0.8), 0.1, 200, 100, 5),
    ((0.9, 0.98), 0.1, 200, 100, 5), ((0.6, 0.8, 0.9), 0.1, 200, 100, 5),
    # Hardly anyone is misjudged, or hardly anyone is there: where an outsider broke it.
    ((0.99, 0.97), 0.1, 200, 400, 1), ((0.999, 0.99), 0.1, 200, 300, 1),
    ((0.7, 0.9), 0.1, 200, 60, 1),
]  # fmt: skip


def test_the_corrected_gap_holds_the_truth():
    worlds = scaled(400, 30)
    cells = CELLS if FULL else [CELLS[1], CELLS[7], CELLS[9]]
    rows = [
        corrected_gaps(rates, e, worlds=worlds, people=n, subjects=s, photos=p)
        for rates, e, n, s, p in cells
    ]
    record("label-errors-corrected", rows, worlds=worlds, replicates=400)
    for row in rows:
        assert row["corrected: holds it, %"] >= at_least(0.95, worlds, full=0.915), row
        # A matrix counted on few people is undone too far on average: an inverse is not linear.
        off = (
            0.03
            if row["matrix, people a group"] < 100 or "60" in row["subjects × photos"]
            else 0.012
        )
        assert abs(row["corrected"] - row["true gap"]) < (off if FULL else 0.05), row
    tenth = rows[1] if FULL else rows[0]
    # What is mended: labels that are wrong draw groups together.
    assert abs(tenth["as labelled"]) < 0.9 * abs(tenth["true gap"]), tenth
    assert tenth["width, times that as labelled"] > 1.1, tenth


def test_annotators_who_err_are_corrected():
    worlds = scaled(200, 10)
    cells = [((0.7, 0.9), (0.1, 0.15, 0.2))]
    if FULL:
        cells += [((0.9, 0.9), (0.1, 0.15, 0.2)), ((0.6, 0.8, 0.9), (0.1, 0.1, 0.2, 0.2))]
    rows = [annotated_gaps(rates, errors, worlds=worlds) for rates, errors in cells]
    record("label-errors-annotators", rows, worlds=worlds, replicates=100)
    for row in rows:
        assert row["holds it, %"] >= at_least(0.95, worlds, full=0.91), row
        assert abs(row["corrected"] - row["true gap"]) < (0.015 if FULL else 0.05), row


@pytest.mark.parametrize("kind", KINDS if FULL else [*SOUND[:1], *BROKEN[2:3]])
def test_annotators_whose_errors_are_not_independent_are_doubted(kind):
    sound = kind in SOUND
    worlds, replicates = scaled(200 if sound else 60, 12), sized(200 if sound else 100, 60)
    row = doubted(kind, worlds=worlds, replicates=replicates)
    slug = list(KINDS).index(kind)
    record(f"label-errors-doubts-{slug:02}", [row], worlds=worlds, replicates=replicates)
    if sound:
        assert row["ok, %"] >= at_least(0.95, worlds, full=0.9), row
        assert row["covered where ok, %"] >= at_least(0.95, worlds, full=0.9), row
    elif kind in BROKEN:
        assert row["ok, %"] <= at_most(0.1, worlds, full=0.25), row


def test_bounds_hold_however_labels_are_wrong():
    worlds = scaled(150, 8)
    rows = [bounded_gaps(how, worlds=worlds) for how in ("chance", "worst")]
    rows += [
        bounded_gaps("chance", worlds=worlds, wrong=wrong, rates=rates, subjects=120, photos=1)
        for wrong, rates in ((0.0, (0.99, 0.97)), (0.02, (0.99, 0.97)), (0.0, (0.7, 0.9)))
    ]
    record("label-errors-bounds", rows, worlds=worlds, replicates=200)
    lowest = at_least(0.95, worlds, full=0.897)  # three standard errors
    held = [row["bounds' interval holds it, %"] for row in rows]
    assert min(held) >= lowest, rows
    assert sum(held) / len(held) >= at_least(0.95, worlds * len(rows), full=0.93), rows
    # Where errors go with the score the gap as labelled is far off, and the bounds still hold.
    assert abs(rows[1]["as labelled"] - rows[1]["true gap"]) > 0.08, rows
