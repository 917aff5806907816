"""Average precision of every cell from a run's evidence of detections, as in ICON².

True positives count for the cells of the people whom they match; matches of other people are
ignored. False positives count for the cells that have a person of their class in their image
(ICON²'s "images that have positive ground truth annotations for the class of interest and for the
sensitive attribute value"), or for every cell of their class, in any image. N of normalised
precision is the mean count of the cells that a cell is compared with (over the groups, over the
values of the explanatory attribute, over the groups within a value), or the overall count.

The paper's choices favour the group with fewer people where a model serves all groups equally: N is
equal, while the false positives of a group's own images still grow with the group. Hoiem et al.
count the false positives of *all* images against one N; with N the overall count, groups, values
and their combinations are then on one scale, differ by recall alone, and do not differ where recall
does not. That is the default; the price is that a group's own false positives are not measured.

The paper leaves open how precision is averaged over recall: COCO's 101 points and the area under
the same curve are both here, and the analysis prints both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses.confounders.strata import (
    StratumEstimates,
    StratumLayout,
    evaluate_cells_on_replicates,
)
from isolux.stats.cluster_sums import IntArray
from isolux.stats.detection_cells import DetectionIndex, DetectionOutcomes, rank_detection_cells
from isolux.stats.precision_recall import (
    Reading,
    average_precision_by_class_and_iou,
    sum_people_weights_by_class,
)
from isolux.stats.statistic import FloatArray, Ranking

FalseAlarmScope = Literal["class and value", "every image"]
"""Images whose false positives count for a group: those with a person of the class and the value
(the paper's), or all."""
CountMethod = Literal["mean of peers", "everyone"]
"""N of normalised precision: the mean count of the cells compared (the paper's), or overall."""


@dataclass(frozen=True, slots=True)
class ModelDetectionTable:
    """One model's detections of one class, and the annotated people, as numbers.

    Rows of ``outcomes`` are its detections; ``image`` and ``person_image`` number images.
    """

    label: str | None
    outcomes: DetectionOutcomes
    score: FloatArray
    image: IntArray
    cluster: IntArray
    person_unit: IntArray
    person_image: IntArray
    person_cluster: IntArray


@dataclass(frozen=True, slots=True)
class PrecisionSettings:
    """Settings of average precision."""

    overlaps: tuple[int, ...] = tuple(range(10))
    reading: Reading = "101 points"
    normalised: bool = True
    false_alarm_scope: FalseAlarmScope = "every image"
    count_method: CountMethod = "everyone"


def build_detection_tables_by_class(evidence: pl.DataFrame) -> tuple[ModelDetectionTable, ...]:
    """Build the table of each class from one model's evidence of detections."""
    rows = evidence.filter(pl.col("kind").is_in(["person", "right", "wrong"])).with_columns(
        image=pl.col("image_id").rank("dense").cast(pl.Int64) - 1
    )
    # One class at a time: every false positive counts once in each cell of its class.
    return tuple(
        _build_detection_table_of_class(
            label, rows.filter(pl.col("label").eq_missing(pl.lit(label)))
        )
        for label in rows["label"].unique().sort().to_list()
    )


def _build_detection_table_of_class(label: str | None, rows: pl.DataFrame) -> ModelDetectionTable:
    people = rows.filter(kind="person").with_row_index("person")
    matches = people.select("unit", "person", kind=pl.lit("right"))
    detections = rows.filter(pl.col("kind") != "person")
    detections = detections.join(matches, on=["unit", "kind"], how="left", maintain_order="left")
    # A true positive always has its person's row of that class; others would be dropped here.
    detections = detections.filter((pl.col("kind") == "wrong") | pl.col("person").is_not_null())
    person = detections["person"].cast(pl.Int64).fill_null(-1).to_numpy()
    return ModelDetectionTable(
        label,
        DetectionOutcomes(
            np.arange(len(person)), person, detections["at"].to_numpy().astype(np.uint16)
        ),
        detections["score"].to_numpy(),
        detections["image"].to_numpy(),
        detections["cluster"].cast(pl.Int64).to_numpy(),
        people["unit"].cast(pl.Int64).to_numpy(),
        people["image"].to_numpy(),
        people["cluster"].cast(pl.Int64).to_numpy(),
    )


def estimate_average_precision_of_cells(
    layout: StratumLayout,
    tables: Sequence[ModelDetectionTable],
    n_clusters: int,
    settings: tuple[int, int, str] | None,
    precision_settings: PrecisionSettings,
    *,
    min_people: int = 1,
) -> list[StratumEstimates]:
    """Estimate average precision in every cell, class by class, and its mean over classes."""
    class_cells = [
        _estimate_class_average_precision(layout, table, n_clusters, settings, precision_settings)
        for table in tables
    ]
    return (
        [*class_cells, _average_cells_over_common_classes(layout, class_cells, min_people)]
        if len(class_cells) > 1
        else class_cells
    )


def _estimate_class_average_precision(
    layout: StratumLayout,
    detections: ModelDetectionTable,
    n_clusters: int,
    settings: tuple[int, int, str] | None,
    precision_settings: PrecisionSettings,
) -> StratumEstimates:
    n_cells = layout.n_cells
    people = pl.DataFrame({"unit": detections.person_unit}).with_row_index("person")
    entries = people.join(pl.DataFrame({"unit": layout.unit, "cell": layout.cell}), on="unit")
    entry_person, cell = entries["person"].cast(pl.Int64).to_numpy(), entries["cell"].to_numpy()
    images = detections.image, detections.person_image
    if precision_settings.false_alarm_scope == "every image":
        images = np.zeros_like(detections.image), np.zeros_like(detections.person_image)
    detection_index = DetectionIndex(*images, detections.cluster, detections.person_cluster)
    ranking = rank_detection_cells(
        detections.outcomes, detections.score, detection_index, entry_person, cell, n_cells
    )
    n_people = np.bincount(cell, minlength=n_cells)
    group_clusters = detections.person_cluster[
        np.isin(detections.person_unit, layout.sensitive.unit)
    ]
    no_counts = np.empty(0, dtype=np.uint16)
    # A ranking without detections, which only counts the people who are in any group.
    overall_ranking = Ranking(
        np.empty(0, dtype=np.int64),
        no_counts,
        no_counts,
        np.zeros(2, dtype=np.int64),
        group_clusters,
        np.zeros(len(group_clusters), dtype=np.int64),
    )

    def evaluate(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        weighted_people = sum_people_weights_by_class(ranking, weights)
        common = None
        if precision_settings.normalised and precision_settings.count_method == "mean of peers":
            common = _average_people_over_peer_cells(
                weighted_people, layout.peer_sets, n_people > 0
            )
        elif precision_settings.normalised:
            common = np.repeat(
                sum_people_weights_by_class(overall_ranking, weights), n_cells, axis=1
            )
        cell_precision = average_precision_by_class_and_iou(
            ranking,
            weights,
            precision_settings.overlaps,
            reading=precision_settings.reading,
            common_count=common,
            n_threads=1,
        )
        return cell_precision.mean(axis=2), weighted_people

    precision = evaluate(np.ones((n_clusters, 1)))[0][0]
    replicates = weight = np.empty((0, n_cells))
    if settings is not None:
        replicates, weight = evaluate_cells_on_replicates(evaluate, n_clusters, settings)
    pairs = np.unique(cell * n_clusters + detections.person_cluster[entry_person])
    clusters = np.bincount(pairs // max(n_clusters, 1), minlength=n_cells)
    return StratumEstimates(precision, n_people, clusters, replicates, weight)


def _average_people_over_peer_cells(
    people: FloatArray, peers: IntArray, has_people: npt.NDArray[np.bool_]
) -> FloatArray:
    """Average the weight of people over a cell's non-empty peers: ``[r, n_cells]``."""
    order = np.argsort(peers, kind="stable")
    starts = np.flatnonzero(np.diff(peers[order], prepend=-1))
    total = np.add.reduceat(people[:, order], starts, axis=1)
    n = np.maximum(np.add.reduceat(has_people[order].astype(np.int64), starts), 1)
    _, set_index = np.unique(peers, return_inverse=True)
    return np.ascontiguousarray((total / n)[:, set_index])


def _average_cells_over_common_classes(
    layout: StratumLayout, class_cells: list[StratumEstimates], min_people: int
) -> StratumEstimates:
    """Average over the classes that every group has; a person counts once a class."""
    class_values = np.stack([cells.value for cells in class_cells], axis=1)  # [n_cells, k]
    units = np.sum([cells.units for cells in class_cells], axis=0)
    large_groups = np.flatnonzero(layout.take_groups(units) >= max(min_people, 1))
    is_shared = np.isfinite(class_values[large_groups]).all(axis=0) & bool(len(large_groups))
    replicates = np.stack([cells.replicates for cells in class_cells], axis=2)[:, :, is_shared]
    return StratumEstimates(
        class_values[:, is_shared].mean(axis=1)
        if is_shared.any()
        else np.full(len(class_values), np.nan),
        units,
        np.max([cells.clusters for cells in class_cells], axis=0),
        replicates.mean(axis=2) if is_shared.any() else np.full(replicates.shape[:2], np.nan),
        np.sum([cells.replicate_counts for cells in class_cells], axis=0),
    )
