"""The laws run on sums; here the whole pipeline, tables and all, gives the same numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import isolux
from isolux.core.containers import Scores
from isolux.core.info import Reference, TaskInfo
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import MEMBERSHIP, SCORES, check
from isolux.groups.measure import measure_groups
from isolux_worlds import confounded_scene, simulate_scene
from isolux_worlds.populations.rates import RateWorlds, simulate_rates
from tests.laws._measured import measured, scored
from tests.laws._worlds import ACCURACY, one_attribute, with_bootstrap

pytestmark = pytest.mark.law(whole=True)
INFO = TaskInfo(
    title="t", summary="s", references=(Reference("k", "c"),), metrics=(ACCURACY,)
)  # fmt: skip


def tables(made: RateWorlds) -> tuple[Scores, pl.DataFrame]:
    """Lay out world 0 photo by photo."""
    group, subject = np.nonzero(made.photos[0])
    photos, right = made.photos[0][group, subject], made.successes[0][group, subject]
    rows = pl.DataFrame(
        {
            "group": [f"g{g}" for g in group],
            "cluster_id": [f"{g}-{s:04d}" for g, s in zip(group, subject, strict=True)],
            "value": [[1.0] * int(r) + [0.0] * int(n - r)
                      for n, r in zip(photos, right, strict=True)],
        }
    )  # fmt: skip
    rows = rows.explode("value").with_row_index("unit_id")
    rows = rows.with_columns(pl.col("unit_id").cast(pl.String))
    scores = check(
        rows.select(
            model=pl.lit("m"), task=pl.lit("classification"), metric=pl.lit("accuracy"),
            label=pl.lit(None, dtype=pl.String), threshold=pl.lit(None, dtype=pl.Float64),
            unit_kind=pl.lit("instance"), unit_id="unit_id", cluster_id="cluster_id",
            value="value", reason=pl.lit(None, dtype=pl.String),
        ),
        SCORES,
    )  # fmt: skip
    membership = rows.select(
        attribute=pl.lit("a"), group="group", values=pl.concat_list("group"), unit_id="unit_id"
    )
    return Scores(scores, INFO), check(membership, MEMBERSHIP)


def _made(subjects: int, seed: int = 0) -> RateWorlds:
    return simulate_rates(
        np.random.default_rng(seed), groups=2, subjects_per_group=subjects, photos=10,
        rates=(0.8, 0.6), icc=0.3, within_cluster=False, worlds=1,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["score", "percentile", "bca", "wilson", "clopper-pearson"])
def test_the_pipeline_gives_the_kernels_interval(method):
    made = _made(30)
    spec = ComparisonSettings(replicates=500, seed=4, interval=method)
    ours = measure_groups(*tables(made), spec)
    kernel = with_bootstrap(one_attribute(made.photos[0], made.successes[0], shared=False), spec)
    np.testing.assert_allclose(ours.value, kernel.value, atol=1e-15)
    np.testing.assert_allclose(ours.interval.low, kernel.interval.low, atol=1e-12)
    np.testing.assert_allclose(ours.interval.high, kernel.interval.high, atol=1e-12)
    shown = ours.to_table()
    np.testing.assert_allclose(shown["low"].to_numpy(), kernel.interval.low[:, 0], atol=1e-12)


@pytest.mark.parametrize("subjects", [9, 10])
def test_below_ten_subjects_there_is_no_interval(subjects):
    spec = ComparisonSettings(replicates=200, min_units=1, min_clusters=1)
    rows = (
        measure_groups(*tables(_made(subjects)), spec)
        .to_table()
        .filter(pl.col("attribute").is_not_null())
    )
    assert rows["value"].null_count() == 0
    assert rows["status"].to_list() == ["few clusters"] * 2
    assert rows["low"].null_count() == rows["high"].null_count() == (2 if subjects < 10 else 0)
    by_default = measure_groups(*tables(_made(subjects)), ComparisonSettings(replicates=200))
    word = "insufficient clusters" if subjects < 10 else "few clusters"
    assert by_default.to_table()["status"].to_list()[1:] == [word] * 2
    assert by_default.to_table()["value"].null_count() == 0
    assert by_default.is_comparable()[1:].all() == (subjects >= 10)


def test_the_tables_that_laws_measure_are_those_of_an_audit():
    scene, detector = confounded_scene("both", clusters=60, people=(1, 4))
    world = simulate_scene(scene, detector, 5)
    metrics = ("average_recall", "recall_at_iou")
    scores = scored(world, metrics)
    asked = isolux.score("detection", world.dataset, world.predictions, metrics=metrics,
                         iou_thresholds=(0.5,))  # fmt: skip
    assert_frame_equal(scores.units, asked.units)
    settings = {"by": ("tone", "light", "tone*light"), "replicates": 200, "seed": 5}
    ours = measured(scores, world.dataset, **settings)
    audit = isolux.audit(scores, world.dataset, **settings).run
    assert ours.disparities["p_adjusted"].count() > 10
    assert_frame_equal(ours.disparities, audit.disparities)
    borrowed = pl.selectors.starts_with("shrunken")  # the estimates of small intersections
    assert_frame_equal(ours.group_metrics.drop(borrowed),
                       audit.group_metrics.drop(borrowed))  # fmt: skip
