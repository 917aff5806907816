"""Estimates of small intersections: nearer the truth than published ones, intervals that hold it.

Promise: intervals hold the truth in 93 of 100 cells on average and in 88 of the worst kind of cell,
and the mean squared error is at most SureMap's on the same worlds.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

from isolux.core.containers import Scores
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import Statistics
from isolux.core.tables import ATTRIBUTES
from isolux.groups import build_membership
from isolux.groups.measure import measure_groups
from isolux.groups.small_intersections import add_shrinkage_estimates
from isolux.stats.small_groups import estimate_intersection_cells
from tests.laws import _small_groups as peers
from tests.laws._figures import FULL, record, scaled

pytestmark = pytest.mark.law
WORLDS = scaled(300, 24)


@pytest.mark.parametrize("shape", peers.SHAPES if FULL else list(peers.SHAPES)[:1])
@pytest.mark.parametrize("kind", peers.KINDS)
def test_nearer_the_truth_than_published_methods_and_intervals_hold(kind, shape):
    rng = np.random.default_rng([12, list(peers.KINDS).index(kind), len(shape)])
    methods = {"raw": peers.raw, "empirical Bayes": peers.plain_empirical_bayes,
               "SureMap": peers.suremap}  # fmt: skip
    errors = {name: [] for name in (*methods, "ours", "structured regression", "ours, there")}
    rows = []
    for number in range(WORLDS):
        world = peers.a_world(rng, kind, peers.SHAPES[shape])
        noise = np.diag(1.0 / np.maximum(world.people, 0.5))
        found = estimate_intersection_cells(world.share, noise, world.levels)
        guesses = {name: method(world) for name, method in methods.items()} | {"ours": found.value}
        if number < 40:  # a lasso with cross-validation takes its time
            guesses["structured regression"] = peers.structured_regression(world, rng)
            guesses["ours, there"] = found.value
        for name, guess in guesses.items():
            errors[name].append(np.mean((guess - world.truth) ** 2))
        inside = (found.low <= world.truth) & (world.truth <= found.high)
        odd = np.arange(len(inside)) == world.odd
        wilson = np.full(len(inside), np.nan)
        wilson[world.people > 0] = peers.wilson_width(world)
        rows.append(np.stack([world.people, inside, odd, found.high - found.low, wilson]))
    people, inside, odd, width, wilson = np.concatenate(rows, axis=1)
    of = {"empty": people == 0, "1 to 5 people": (people > 0) & (people < 6), "odd": odd > 0}
    row = {"cells": shape, "world": kind}
    row |= {f"{name}, error": 100 * np.sqrt(np.mean(own)) for name, own in errors.items()}
    row |= {"holds it %": inside.mean()}
    row |= {f"{name} %": inside[at].mean() if at.any() else None for name, at in of.items()}
    row |= {"width over Wilson's": width[people > 0].sum() / wilson[people > 0].sum()}
    slug = f"{kind}-{shape}".replace(" ", "-").replace("×", "x").replace(".", "")
    record(f"small-groups-cells-{slug}", [row], worlds=WORLDS, replicates=1)
    assert np.mean(errors["ours"]) <= np.mean(errors["SureMap"]), row
    assert np.mean(errors["ours"]) < 0.6 * np.mean(errors["raw"]), row
    # Small: 24 worlds of 24 cells, alike within a world; and 24 odd cells at .9.
    assert row["holds it %"] >= (0.93 if FULL else 0.9), row
    # 88 of 100 is promised over both shapes; 300 odd cells have a standard error of two points.
    lowest = 0.86 if FULL else 0.68
    assert min(v for name in of if (v := row[f"{name} %"]) is not None) >= lowest, row


ROWS = {
    "photos of subjects, attributes of the subject": (True, False, False),
    "photos of subjects, one attribute of the photo": (True, True, False),
    "graded scores": (False, False, True),
    "graded scores, photos of subjects": (True, False, True),
}


@pytest.mark.parametrize("kind", ROWS)
def test_intervals_hold_where_photos_come_in_clusters_and_where_scores_are_graded(kind):
    clustered, of_photo, graded = ROWS[kind]
    worlds = scaled(200, 16)
    rng = np.random.default_rng([13, list(ROWS).index(kind)])
    inside, errors, raws = [], [], []
    for _ in range(worlds):
        units, truth = _people(rng, clustered=clustered, of_photo=of_photo, graded=graded)
        found = _measured(units, graded=graded).join(truth, on="group")
        true, low, high, ours, own = (
            found[name].to_numpy()
            for name in ("truth", "shrunken_low", "shrunken_high", "shrunken", "shrunken_from")
        )
        inside.append(np.mean((low <= true) & (true <= high)))
        errors.append(np.mean((ours - true) ** 2))
        raws.append(np.mean((own - true) ** 2))
    row = {
        "scores": kind,
        "raw, error": 100 * np.sqrt(np.mean(raws)),
        "ours, error": 100 * np.sqrt(np.mean(errors)),
        "holds it %": np.mean(inside),
    }
    record(f"small-groups-rows-{list(ROWS).index(kind)}", [row], worlds=worlds, replicates=1)
    assert np.mean(errors) < 0.75 * np.mean(raws), row
    assert row["holds it %"] >= (0.93 if FULL else 0.9), row


def _people(rng, *, clustered, of_photo, graded):
    """Draw units of 4 × 2 × 3 cells with 1 to 50 subjects, and what each cell truly gets."""
    levels, eta, _ = peers.log_odds(rng, (4, 2, 3), main=0.5, pairs=0.3)
    truth = expit(eta)
    of_subject = levels[levels[:, 2] == 0] if of_photo else levels
    subjects = np.rint(np.exp(rng.uniform(0, np.log(50.5), len(of_subject)))).astype(int)
    kin = np.repeat(np.arange(len(of_subject)), subjects)
    photos = rng.integers(1, 13, len(kin)) if clustered else np.ones(len(kin), dtype=int)
    who = np.repeat(np.arange(len(kin)), photos)
    cell = of_subject[kin[who]].copy()
    if of_photo:
        cell[:, 2] = rng.integers(0, 3, len(who))
    at = cell @ np.array([6, 3, 1])
    luck = rng.normal(0, 1, len(kin))[who]
    rho = 0.3 if clustered else 0.0
    mixed = np.sqrt(rho) * luck + np.sqrt(1 - rho) * rng.normal(0, 1, len(who))
    if graded:
        value = truth[at] + 0.15 * mixed
    else:
        from scipy.special import ndtri

        value = (mixed < ndtri(truth[at])).astype(float)
    names = ["/".join(map(str, row)) for row in levels.tolist()]
    units = pl.DataFrame({"value": value, "cluster": [f"s{w}" for w in who],
                          **{f"a{k}": cell[:, k].astype(str) for k in range(3)}})  # fmt: skip
    return units, pl.DataFrame({"group": names, "truth": truth})


def _measured(units, *, graded):
    info = Metric(name="found", title="Found", definition="Share.", direction="higher",
                  **({"unit": "points", "low": None, "high": None} if graded else {}))  # fmt: skip
    ids = [str(i) for i in range(units.height)]
    rows = pl.DataFrame({"model": "m", "task": "t", "metric": "found", "label": None,
                         "threshold": None, "unit_kind": "instance", "unit_id": ids,
                         "cluster_id": units["cluster"], "value": units["value"], "reason": None},
                        schema_overrides={"label": pl.String, "threshold": pl.Float64,
                                          "reason": pl.String})  # fmt: skip
    scores = Scores(rows, TaskInfo(title="T", summary="S.", references=(), metrics=(info,),
                                   defaults=("found",)))  # fmt: skip
    names = ["a0", "a1", "a2"]
    attributes = units.select(*names, unit_id=pl.Series(ids)).unpivot(
        names, index="unit_id", variable_name="attribute"
    )
    attributes = ATTRIBUTES.conform(attributes.with_columns(unit_kind=pl.lit("instance")))
    members = build_membership(attributes, ["a0*a1*a2"], {}, units=scores.evaluated_units())
    spec = Statistics(min_units=50, min_clusters=10, replicates=100)
    table = add_shrinkage_estimates(measure_groups(scores, members, spec), spec)
    return table.filter(pl.col("attribute").is_not_null()).with_columns(
        group=pl.col("values").list.join("/")
    )
