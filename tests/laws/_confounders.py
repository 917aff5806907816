"""Worlds of boxes through the analysis ``confounders``: what it ranks, covers and claims.

Size goes with tone in every world (people of tone b are smaller, and more often occluded). In the
worlds here a detector finds whom it finds by COCO's three sizes, and by nothing else within them,
so that three bins of size can control for all of it; ``bins`` worlds are the others, in which every
doubling counts.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from isolux.analyses import confounders
from isolux.core.containers import Run
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS
from isolux_worlds import Detector, Effect, confounded_scene, injected_recall
from tests.laws._measured import boxes_of, measured, scored

BY_SIZE = (Effect({"size": "small"}, -1.0), Effect({"size": "large"}, 0.8))
BY_TONE = (Effect({"tone": "b"}, -0.5),)
EXPLANATORY = ("size", "occluded", "light")
# Of an unknown role a gap at an equal mix must be shown twice: the level is held by one test alone.
BEFORE = dict.fromkeys(EXPLANATORY, "before")
PUBLISHED = {"false_alarms": "class and value", "count": "mean of peers"}

EVIDENT = ("probable explanation", "associated (role not known)")
"""The paper's verdict, with the attribute's role and without."""


def scene_of(matters, *, varies="person", **settings):
    """A scene, and a detector for which sizes, the tone, both or nothing matters."""
    scene, _ = confounded_scene("nothing", varies=varies, **settings)
    effects = (BY_SIZE if matters in ("size", "both") else ()) + (
        BY_TONE if matters in ("attribute", "both") else ()
    )
    return scene, Detector(name="m", base_rate=0.7, effects=effects, false_alarms=2.0)


def run_of(scene, detector, seed, metrics, replicates, *, audited=False):
    """Draw a world and score it; the run has what the analysis reads.

    ``audited``: with the audit's own comparisons too.
    """
    world = boxes_of(scene, detector, seed)
    scores = scored(world, metrics)
    area = world.dataset.instances.select(
        unit_kind=pl.lit("instance"), unit_id="instance_id", attribute=pl.lit("area"),
        value=pl.col("area").cast(pl.String), number="area",
    )  # fmt: skip
    attributes = pl.concat(
        [ATTRIBUTES.conform(t) for t in (world.dataset.instance_attributes(), area)]
    )
    if audited:
        return measured(scores, attributes, by=("tone",), min_units=20, seed=seed,
                        replicates=replicates)  # fmt: skip
    spec = {"data": "synthetic", "task": "detection", "by": ["tone"], "min_units": 20,
            "seed": seed, "replicates": replicates}  # fmt: skip
    empty = (t.empty() for t in (GROUP_METRICS, DISPARITIES, FINDINGS))
    record = {"spec": spec, "task": "detection"}
    return Run(record, scores.units, attributes, *empty, evidence=dict(scores.evidence))


def table(explained, start):
    (frame,) = (t for caption, t in explained.tables.items() if caption.startswith(start))
    return frame


def ranks_first(metric, *, worlds, replicates, clusters):
    """Count worlds of about 20,000 boxes in which size, which alone matters, ranks first."""
    scene, detector = scene_of("size", clusters=clusters, images=4, people=(1, 5))
    first, boxes, evidenced = 0, 0, 0
    for seed in range(worlds):
        run = run_of(scene, detector, seed, (metric,), replicates)
        found = confounders.explain(
            run, explanatory=EXPLANATORY, metric=[metric], regression=False, **PUBLISHED
        )
        rows = table(found, "Explanatory")
        first += rows["explanatory"][0] == "size"
        evidenced += rows["verdict"][0] in EVIDENT
        boxes += run.attributes.filter(attribute="size").height
    return {
        "metric": metric, "boxes": round(boxes / worlds), "size first": first / worlds,
        "probable explanation": evidenced / worlds,
    }  # fmt: skip


def planted_gap(scene, detector):
    """Truth at everyone's mix of sizes: tone b less tone a."""
    truth = injected_recall(replace(scene, by=("size", "tone*size")), detector)
    recall = truth.filter(metric="recall_at_iou")
    mix = dict(recall.filter(attribute="size").select("group", "share").iter_rows())
    within = {tuple(v): x for v, x in recall.filter(attribute="tone*size")
              .select("values", "value").iter_rows()}  # fmt: skip
    return sum(q * (within["b", s] - within["a", s]) for s, q in mix.items())


def cover(matters, varies, *, worlds, replicates, clusters=150):
    """Measure how often the gap at an equal mix of sizes holds what was planted."""
    scene, detector = scene_of(matters, varies=varies, clusters=clusters, people=(2, 5))
    truth = planted_gap(scene, detector)
    by = {"stratified": [], "regression": []}
    agree = []
    for seed in range(worlds):
        run = run_of(scene, detector, seed, ("recall_at_iou",), replicates)
        found = confounders.explain(run, explanatory=("size",), metric=["recall_at_iou"])
        row = table(found, "Gaps").row(0, named=True)
        own = truth if row["group"] == "b" else -truth
        for name, start in (("stratified", "gap"), ("regression", "regression")):
            if row[f"{start}_low"] is not None:
                by[name].append(row[f"{start}_low"] <= own <= row[f"{start}_high"])
        agree.append(bool(row["agrees"]))
    return {
        "matters": matters, "varies": varies, "clusters": clusters, "planted": truth,
        **{name: sum(held) / len(held) for name, held in by.items()},
        "judged": len(by["stratified"]) / worlds, "agree": sum(agree) / worlds,
    }  # fmt: skip


def left_within_bins(bins, *, worlds, replicates):
    """Measure what bins of size leave where every doubling of it counts and tone does not."""
    scene, detector = confounded_scene("size", clusters=400, images=2, people=(2, 5))
    truth = injected_recall(replace(scene, by=("tone",)), detector)
    recall = truth.filter(metric="recall_at_iou", attribute="tone")["value"].to_list()
    covered, left = dict.fromkeys(bins, 0), dict.fromkeys(bins, 0.0)
    for seed in range(worlds):
        run = run_of(scene, detector, seed, ("recall_at_iou",), replicates)
        for cut in bins:
            settings = {"explanatory": ["area"], "bins": {"area": cut}, "regression": False}
            found = confounders.explain(run, metric=["recall_at_iou"], **settings)
            row = table(found, "Gaps").row(0, named=True)
            covered[cut] += row["gap_low"] <= 0 <= row["gap_high"]
            left[cut] += row["gap"] if row["group"] == "b" else -row["gap"]
    return [
        {"bins": cut, "as it stands": recall[1] - recall[0], "left": left[cut] / worlds,
         "covers 0": covered[cut] / worlds}
        for cut in bins
    ]  # fmt: skip


def false_findings(
    metric, varies, *, worlds, replicates, published=False, clusters=100, matters="nothing"
):
    """Count worlds in which nothing matters and something is claimed; ten photos a subject."""
    scene, detector = scene_of(matters, varies=varies, clusters=clusters, images=10, people=1,
                               correlation=0.3)  # fmt: skip
    claims, printed = 0, 0
    for seed in range(worlds):
        run = run_of(scene, detector, 10_000 + seed, (metric,), replicates)
        found = confounders.explain(run, explanatory=EXPLANATORY, metric=[metric], regression=False,
                                    roles=BEFORE, **(PUBLISHED if published else {}))  # fmt: skip
        claims += bool((found.findings["p_adjusted"] <= 0.05).any())
        rows = table(found, "Explanatory")
        printed += bool(rows["verdict"].is_in(EVIDENT).any())
    return {
        "metric": metric, "varies": varies, "reading": "published" if published else "default",
        "clusters": clusters, "any finding": claims / worlds,
        "probable by the paper's rule": printed / worlds,
    }  # fmt: skip


def small_cells(sizes, *, worlds, replicates, clusters):
    """Measure the gap at an equal mix of three attributes crossed, of which size alone matters.

    A row for each of ``sizes``, the people whom a cell must have.
    """
    scene, detector = scene_of("size", clusters=clusters, people=(2, 5))
    gaps = {least: [] for least in sizes}
    for seed in range(worlds):
        run = run_of(scene, detector, 40_000 + seed, ("recall_at_iou",), replicates)
        for least in sizes:
            found = confounders.explain(run, explanatory=EXPLANATORY, min_cell=least,
                                        regression=False)  # fmt: skip
            gaps[least].append(table(found, "Gaps").row(-1, named=True))
    return [_of_cells(clusters, least, rows) for least, rows in gaps.items()]


def _of_cells(clusters, least, gaps):
    ends = [(g["gap_low"], g["gap_high"]) for g in gaps if g["gap_low"] is not None]
    judged = max(len(ends), 1)
    return {
        "clusters": clusters, "people a cell": least,
        "compared": sum(g["people_compared"] for g in gaps) / len(gaps),
        "judged": len(ends) / len(gaps),
        "covers 0": sum(low <= 0 <= high for low, high in ends) / judged,
        "width": sum(high - low for low, high in ends) / judged,
    }  # fmt: skip


def audited_too(varies, *, worlds, replicates, clusters=100):
    """Count null worlds with a finding where the audit's own test says whether groups differ."""
    scene, detector = scene_of("nothing", varies=varies, clusters=clusters, images=10, people=1,
                               correlation=0.3)  # fmt: skip
    gaps, own, together = 0, 0, 0
    for seed in range(worlds):
        run = run_of(scene, detector, 30_000 + seed, ("recall_at_iou",), replicates, audited=True)
        found = confounders.explain(run, explanatory=EXPLANATORY, regression=False,
                                    roles=BEFORE).findings  # fmt: skip
        first, rest = found["reference"] == "icon2", found["reference"] != "icon2"
        gap = bool((found.filter(first)["p_adjusted"] <= 0.05).any())
        more = bool((found.filter(rest)["p_adjusted"] <= 0.05).any())
        gaps, own, together = gaps + gap, own + more, together + (gap or more)
    return {
        "varies": varies, "clusters": clusters, "the audit's gap": gaps / worlds,
        "the gaps at an equal mix": own / worlds, "either": together / worlds,
    }  # fmt: skip


def unequal_groups(*, worlds, replicates):
    """Count worlds in which nothing matters, a tenth is of tone b, and a gap is claimed.

    A row for each reading: the published one, and the default.
    """
    scene, detector = scene_of("nothing", varies="image", clusters=400, people=2)
    shares = {"a": 0.9, "b": 0.1}
    attributes = tuple(
        replace(a, shares=shares) if a.name == "tone" else a for a in scene.attributes
    )
    scene = replace(scene, attributes=attributes)
    readings = {"published": PUBLISHED, "default": {}}
    claims, gap = dict.fromkeys(readings, 0), dict.fromkeys(readings, 0.0)
    for seed in range(worlds):
        run = run_of(scene, replace(detector, false_alarms=4.0), 20_000 + seed,
                     ("normalised_average_precision",), replicates)  # fmt: skip
        for name, settings in readings.items():
            found = confounders.explain(run, explanatory=("light",), roles={"light": "before"},
                                        **settings)  # fmt: skip
            claims[name] += bool((found.findings["p_adjusted"] <= 0.05).any())
            values = dict(table(found, "Values by group").select("group", "value").iter_rows())
            gap[name] += values["b"] - values["a"]
    return [
        {"reading": name, "share of tone b": 0.1, "b less a": gap[name] / worlds,
         "any finding": claims[name] / worlds}
        for name in readings
    ]  # fmt: skip
