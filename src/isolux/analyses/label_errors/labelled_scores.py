"""Scores and labels of the people of one metric and attribute, and annotators' votes, as arrays.

The first step of the analysis ``label_errors``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.spec import AuditSpec
from isolux.groups import build_membership, read_groupings
from isolux.groups.unknown_values import UNKNOWN
from isolux.stats.cluster_sums import IntArray
from isolux.stats.clustered_proportions import ClusterMeans
from isolux.stats.statistic import FloatArray

MEASURE = ("model", "metric", "label", "threshold")


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """All people with a score of one metric, and their labels of one attribute.

    Parameters
    ----------
    row : dict
        model, metric, label, threshold.
    attribute : str
    groups : tuple of str
    unit_ids : list of str
    score : [n] float
    label_code : [n] int
        The label; -1: unknown.
    cluster : [n] int
    """

    row: dict[str, Any]
    attribute: str
    groups: tuple[str, ...]
    unit_ids: list[str]
    score: FloatArray
    label_code: IntArray
    cluster: IntArray

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.cluster.max(initial=-1)) + 1

    @property
    def score_limits(self) -> tuple[float, float]:
        """Limits of scores: 0 to 1 for shares and rates, infinite for others."""
        is_share = len(self.score) > 0 and self.score.min() >= 0 and self.score.max() <= 1
        return (0.0, 1.0) if is_share else (-np.inf, np.inf)

    def split_rows(self, g: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return the rows labelled g, labelled otherwise, and of unknown label."""
        masks = (
            self.label_code == g,
            (self.label_code >= 0) & (self.label_code != g),
            self.label_code < 0,
        )
        first, second, unknown = (np.flatnonzero(mask) for mask in masks)
        return first, second, unknown

    def count_min_clusters(self, g: int) -> int:
        """Return the smaller number of clusters: with people labelled g, or labelled otherwise."""
        return min(len(np.unique(self.cluster[rows])) for rows in self.split_rows(g)[:2])

    def sum_by_cluster(self) -> tuple[FloatArray, FloatArray]:
        """Count people, and sum scores, of each cluster by label: ``[clusters, g]``."""
        is_known = self.label_code >= 0
        g, n = len(self.groups), self.n_clusters
        cell = self.cluster[is_known] * g + self.label_code[is_known]
        count = np.bincount(cell, minlength=n * g).astype(np.float64)
        sums = np.bincount(cell, self.score[is_known], minlength=n * g).astype(np.float64)
        return count.reshape(n, g), sums.reshape(n, g)

    def estimate_proportions(self, group_sets: Sequence[Sequence[int]]) -> ClusterMeans | None:
        """Estimate proportions of sets of labels as the audit does; None: scores are not 0 or 1."""
        from scipy.sparse import csr_array

        from isolux.stats.clustered_proportions import (
            are_rows_zero_or_one,
            means_from_cluster_sums,
            pooled_intracluster_correlation,
        )

        count, sums = self.sum_by_cluster()
        n, s = (
            csr_array(np.stack([x[:, group_set].sum(axis=1) for group_set in group_sets]))
            for x in (count, sums)
        )
        if not are_rows_zero_or_one(s, n):
            return None
        multiplicity = np.ones(len(count), dtype=np.int64)
        all_s, all_n = (csr_array(x.sum(axis=1)[None, :]) for x in (sums, count))
        return means_from_cluster_sums(
            s,
            n,
            multiplicity,
            float(pooled_intracluster_correlation(all_s, all_n, multiplicity)[0]),
        )


def read_unit_labels_and_groups(
    run: Run, spec: AuditSpec, attribute: str
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read every scored unit's label, ``unit_id, group`` (null: unknown), and list the labels."""
    units = run.scores.drop_nulls("value")["unit_id"].unique(maintain_order=True)
    label_spec = spec.updated(by=tuple(dict.fromkeys([*spec.groups.by, attribute])))
    rule = replace(read_groupings(label_spec.groups, run.attributes)[attribute], unknown="drop")
    members = build_membership(run.attributes, [attribute], {attribute: rule}, units=units).frame
    duplicates = members.filter(pl.col("unit_id").is_duplicated())
    if duplicates.height:
        raise SpecError(
            f"people are in several groups of {attribute}, and an error of labels is of one label",
            expected="one group each",
            found=f"{duplicates['unit_id'].n_unique():,} people in two or more",
            hint="audit with --votes top-or-none",
        )
    labels = pl.DataFrame({"unit_id": units}).join(
        members.select("unit_id", "group"), on="unit_id", how="left", maintain_order="left"
    )
    return labels, tuple(labels["group"].drop_nulls().unique().sort().to_list())


def iterate_labelled_scores(
    run: Run, labels: pl.DataFrame, attribute: str, groups: tuple[str, ...]
) -> Iterator[LabelledScores]:
    """Yield the labelled scores of the run's first metric, by model, class and threshold."""
    metric_names = run.scores["metric"].unique(maintain_order=True).to_list()
    if len(groups) < 2:
        raise SpecError(
            f"{attribute} has fewer than two groups with scores",
            expected="two or more",
            found=", ".join(groups) or UNKNOWN,
        )
    code_by_name = {name: i for i, name in enumerate(groups)}
    scores = run.scores.filter(pl.col("metric").is_in(metric_names[:1]))
    cluster = pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
    for key, score_rows in scores.drop_nulls("value").group_by(MEASURE, maintain_order=True):
        rows = score_rows.join(
            labels, on="unit_id", how="left", maintain_order="left"
        ).with_columns(
            code=pl.col("group").replace_strict(code_by_name, default=-1, return_dtype=pl.Int64),
            cluster=cluster.rank("dense").cast(pl.Int64) - 1,
        )
        yield LabelledScores(
            dict(zip(MEASURE, key, strict=True)),
            attribute,
            groups,
            rows["unit_id"].to_list(),
            rows["value"].to_numpy(),
            rows["code"].fill_null(-1).to_numpy(),
            rows["cluster"].to_numpy(),
        )


def count_annotator_labels_or_none(
    run: Run, people: LabelledScores
) -> tuple[FloatArray, list[str]] | None:
    """Count each annotator's labels of each person: ``[n, annotators, g]``, and name annotators."""
    if "annotator" not in run.attributes.columns:
        return None
    rows = run.attributes.filter(
        pl.col("annotator").is_not_null(),
        pl.col("value").is_in(list(people.groups)),
        attribute=people.attribute,
    ).join(pl.DataFrame({"unit_id": people.unit_ids}).with_row_index("_person"), on="unit_id")
    if not (rows.group_by("unit_id").agg(pl.col("annotator").n_unique())["annotator"] > 1).any():
        return None
    names = rows["annotator"].unique().sort().to_list()
    votes = np.zeros((len(people.unit_ids), len(names), len(people.groups)))
    annotator_index = (
        rows["annotator"].replace_strict({n: i for i, n in enumerate(names)}).to_numpy()
    )
    group_index = (
        rows["value"].replace_strict({n: i for i, n in enumerate(people.groups)}).to_numpy()
    )
    weight: FloatArray | float = 1.0
    if "votes" in rows.columns:
        weight = rows["votes"].fill_null(1).to_numpy().astype(np.float64)
    np.add.at(votes, (rows["_person"].to_numpy(), annotator_index, group_index), weight)
    # Repeated labels of a person by one annotator count as one label.
    votes /= np.maximum(votes.sum(axis=2, keepdims=True), 1e-12)
    return votes, [str(name) for name in names]


def note_labels_correction_cannot_use(
    run: Run, people: LabelledScores, *, has_used: bool
) -> list[str]:
    """Build notes on labels that a correction cannot use: unnamed, or without a second annotator.

    ``has_used``: whether some person has labels of two annotators.
    """
    if "annotator" not in run.attributes.columns:
        return []
    rows = run.attributes.filter(attribute=people.attribute)
    units = pl.DataFrame({"unit_id": people.unit_ids}, schema={"unit_id": pl.String})
    annotator = rows.join(units, on="unit_id", how="semi")["annotator"]
    n_unnamed = annotator.null_count()
    if n_unnamed == len(annotator):
        return []
    notes = []
    if n_unnamed:
        notes.append(
            f"{n_unnamed:,} labels without an annotator's name do not enter the correction"
        )
    if not has_used:
        notes.append(
            "no person has labels of two annotators, whose disagreements would tell how they err; "
            "a confusion matrix would tell too"
        )
    return notes
