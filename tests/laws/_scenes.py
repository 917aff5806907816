"""Worlds of boxes through detection, groups and disparities, as an audit takes them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux_worlds import confounded_scene, injected_recall
from tests.laws._measured import boxes_of, measured, scored

CLUSTERS = 100
_CERTAIN = ["metric", "attribute"]


def one_world(matters: str, varies: str, by: tuple[str, ...], *, seed: int, replicates: int):
    """Draw a world of about 500 people in 200 images and measure it as an audit does."""
    scene, detector = confounded_scene(matters, clusters=CLUSTERS, people=(1, 4), varies=varies)
    world = boxes_of(replace(scene, by=by), detector, seed)
    scores = scored(world, ("average_recall", "recall_at_iou"))
    return measured(scores, world.dataset, by=by, replicates=replicates, seed=seed)


def cover_scenes(matters: str, varies: str, *, worlds: int, replicates: int) -> dict[str, object]:
    """Measure the coverage of recalls of groups, and of differences, both as planted."""
    by = ("tone", "size")
    scene, detector = confounded_scene(matters, varies=varies)
    truth = injected_recall(replace(scene, by=by), detector).select(
        *_CERTAIN, group="group", injected="value"
    )
    of_groups, of_pairs = [], []
    for seed in range(worlds):
        found = one_world(matters, varies, by, seed=seed, replicates=replicates)
        of_groups.append(found.group_metrics.join(truth, on=[*_CERTAIN, "group"], nulls_equal=True))
        pairs = found.disparities.filter(kind="difference")
        for side in ("group_a", "group_b"):
            known = truth.rename({"group": side, "injected": f"injected_{side}"})
            pairs = pairs.join(known, on=[*_CERTAIN, side])
        gap = pl.col("injected_group_a") - pl.col("injected_group_b")
        of_pairs.append(pairs.with_columns(injected=gap))
    rates, gaps = pl.concat(of_groups), pl.concat(of_pairs)
    return {
        "matters": matters, "varies": varies, "clusters": CLUSTERS,
        "rates": _covered(rates.filter(metric="recall_at_iou")),
        "average recalls": _covered(rates.filter(metric="average_recall")),
        "differences": _covered(gaps),
        "judged": rates["low"].is_not_null().mean(),
        "mean width": (rates["high"] - rates["low"]).mean(),
    }  # fmt: skip


def _covered(rows: pl.DataFrame) -> float:
    inside = pl.col("injected").is_between(pl.col("low"), pl.col("high"))
    return float(rows.drop_nulls("low").select(inside.mean()).item())


def false_findings(
    varies: str, *, worlds: int, replicates: int, matters: str = "nothing"
) -> dict[str, object]:
    """Count worlds with a claim (though nothing matters), over the family of five groupings."""
    by = ("tone", "size", "occluded", "light", "tone*size")
    claimed, tests = 0, 0
    for seed in range(worlds):
        found = one_world(matters, varies, by, seed=10_000 + seed, replicates=replicates)
        pairs = found.disparities.filter(kind="difference").drop_nulls("p_adjusted")
        claimed += bool((pairs["p_adjusted"] <= 0.05).any())
        tests += pairs.height
    return {
        "varies": varies, "clusters": CLUSTERS, "tests": round(tests / worlds, 1),
        "any claim": claimed / worlds,
    }  # fmt: skip
