"""Runs by hand for the analysis ``confounders``: people, boxes, and a slow reading of both."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.tables import ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES

SPEC = {
    "data": "table:made.csv", "task": "detection", "by": ["tone"], "min_units": 1,
    "min_clusters": 1, "replicates": 100,
}  # fmt: skip


def attributes(**columns):
    """Make attributes of people p0, p1, … (``name=values``); None: unknown."""
    rows = [
        {"unit_kind": "instance", "unit_id": f"p{i}", "attribute": name, "value": value}
        for name, values in columns.items()
        for i, value in enumerate(values)
    ]
    return ATTRIBUTES.conform(pl.DataFrame(rows, infer_schema_length=None))


def run_of(
    scores,
    people,
    *,
    evidence=None,
    spec=None,
    metric="average_recall",
    cluster=None,
    task="detection",
):
    """Make a run of people's scores, their attributes, and evidence of detections."""
    n = len(scores)
    units = pl.DataFrame(
        {"model": "m", "task": task, "metric": metric, "unit_kind": "instance",
         "unit_id": [f"p{i}" for i in range(n)], "value": scores,
         "cluster_id": [None] * n if cluster is None else [f"c{c}" for c in cluster]},
        schema_overrides={"value": pl.Float64, "cluster_id": pl.String},
    )  # fmt: skip
    tables = (ATTRIBUTES.conform(people), GROUP_METRICS, DISPARITIES, FINDINGS)
    full = [t if isinstance(t, pl.DataFrame) else t.empty() for t in tables]
    return Run(
        {"spec": SPEC | {"task": task} | (spec or {}), "task": task},
        SCORES.conform(units) if n else SCORES.empty(),
        *full,
        evidence={} if evidence is None else {"detections": evidence},
    )


def evidence_of(people, found):
    """Evidence of (image, class) people and (image, class, score, person or None, bits) boxes."""
    images = sorted({i for i, *_ in people} | {i for i, *_ in found})
    rows = [{"kind": "image", "image_id": str(i)} for i in images]
    rows += [
        {"kind": "person", "unit_id": f"p{k}", "image_id": str(i), "label": c, "cluster_id": str(i)}
        for k, (i, c) in enumerate(people)
    ]
    rows += [
        {"kind": "wrong" if p is None else "right", "unit_id": None if p is None else f"p{p}",
         "image_id": str(i), "label": c, "score": s, "at": bits, "cluster_id": str(i)}
        for i, c, s, p, bits in found
    ]  # fmt: skip
    schema = {
        "unit_id": pl.String, "cluster_id": pl.String, "image_id": pl.String, "label": pl.String,
        "score": pl.Float64, "kind": pl.String, "at": pl.UInt16, "common": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema).insert_column(0, pl.lit("m").alias("model"))


def slow_precision(people, found, inside, label, *, weight, n, by_image, overlap, area):
    """Weighted, normalised average precision of the people ``inside``, by its definition.

    ``weight`` is of images; ``n`` the common count, None: the group's own.
    """
    own = [k for k, (_, c) in enumerate(people) if c == label and k in inside]
    total = sum(weight[people[k][0]] for k in own)
    if total == 0:
        return float("nan")
    images = {people[k][0] for k in own}
    counts = total if n is None else n
    true = false = 0.0
    points = []
    for i, c, _, p, bits in sorted(found, key=lambda row: -row[2]):
        if c != label or not (bits >> overlap) & 1:
            continue
        if p in own:
            true += weight[i]
        elif p is None and (i in images or not by_image):
            false += weight[i]
        else:
            continue
        recall = true / total
        points.append((recall, recall * counts / (recall * counts + false) if true else 0.0))
    best = [max((p for r, p in points if r >= at), default=0.0) for at in np.linspace(0, 1, 101)]
    if not area:
        return float(np.mean(best))
    recalls = sorted({0.0, *(r for r, _ in points)})
    return sum(
        (high - low) * max(p for r, p in points if r >= high) for low, high in pairwise(recalls)
    )
