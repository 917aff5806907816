"""Groups without one error: analyses of photos claim nothing there that is not so.

At a rate of .99 a rare kind of photo is often flawless. Flipping clusters' signs took all signs
alike for a difference; asking the interval does not.
"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.analyses._features import Features
from isolux.analyses.error_model.groups import ScoreScale, compare_subgroups_with_others
from isolux.analyses.trends import explain
from isolux.core.spec import Bootstrap
from tests.laws._discovery import a_run
from tests.laws._figures import FULL, record, scaled, sized

pytestmark = pytest.mark.law

SUBJECTS, PHOTOS = 100, 8
KINDS = {"hat": (0.04, 0.96), "light": (0.75, 0.20, 0.05)}


def photos(rng, rate, correlation):
    """Draw subjects' photos: how right each is, and of which kind the photo is."""
    subject = np.repeat(np.arange(SUBJECTS), PHOTOS)
    luck = np.full(SUBJECTS, rate)
    if correlation:
        scale = 1 / correlation - 1
        luck = rng.beta(rate * scale, (1 - rate) * scale, SUBJECTS)
    value = (rng.random(len(subject)) < luck[subject]).astype(float)
    kinds = {name: rng.choice(len(p), len(subject), p=p) for name, p in KINDS.items()}
    return subject, value, kinds


@pytest.mark.parametrize("rate", [0.97, 0.98, 0.99])
@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_values_of_photos_that_hardly_ever_fail(rate, correlation):
    worlds, replicates = scaled(1000, 60), sized(999, 199)
    rng = np.random.default_rng([91, int(1000 * rate), int(10 * correlation)])
    how = Bootstrap(replicates=replicates, seed=0)
    false = flawless = 0
    for _ in range(worlds):
        subject, value, kinds = photos(rng, rate, correlation)
        found = compare_subgroups_with_others(
            items(kinds), value, subject.astype(np.int64), SUBJECTS, how,
                             min_units=20, min_clusters=10, scale=ScoreScale())  # fmt: skip
        false += bool((np.nan_to_num(found.p_adjusted, nan=1.0) <= 0.05).any())
        flawless += bool((found.contrasts.mean == 1.0).any())
    row = {"rate": rate, "correlation": correlation, "subjects": SUBJECTS,
           "a group without an error, %": flawless / worlds,
           "a difference claimed, %": false / worlds}  # fmt: skip
    slug = f"rare-errors-{rate:g}-{correlation:g}"
    record(slug, [row], worlds=worlds, replicates=replicates)
    assert row["a difference claimed, %"] <= (0.071 if FULL else 0.1), row


def test_the_ends_of_a_number_where_one_is_flawless():
    worlds, replicates = scaled(500, 60), sized(999, 199)  # of 2,000, four found a difference
    rng = np.random.default_rng(92)
    false = contradicts = 0
    for _ in range(worlds):
        subject, value, _ = photos(rng, 0.99, 0.0)
        run = a_run(subject, {"light": rng.random(len(subject)).astype(str)}, value,
                    replicates=replicates)  # fmt: skip
        found = explain(run, attribute=["light"], bins={"light": "edges:0.05,0.25"}, by=())
        row = found.findings.row(0, named=True)
        claimed = row["p_adjusted"] is not None and row["p_adjusted"] <= 0.05
        false += claimed
        contradicts += claimed and row["low"] <= 0 <= row["high"]
    row = {
        "a difference claimed, %": false / worlds,
        "its interval holds 0, %": contradicts / worlds,
    }
    record("rare-errors-along", [row], worlds=worlds, replicates=replicates)
    assert row["a difference claimed, %"] <= (0.06 if FULL else 0.1), row
    assert contradicts == 0, row


def items(kinds):
    """Lay kinds of photos out as items, one column for each value."""
    names = [(name, str(v)) for name, p in KINDS.items() for v in range(len(p))]
    matrix = np.column_stack([kinds[name] == int(v) for name, v in names])
    attribute, value = zip(*names, strict=True)
    return Features(attribute, value, matrix)
