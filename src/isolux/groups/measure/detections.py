"""Evidence of detections: true positives count by person, false positives by image.

A false positive has no person. It has the weight of its image's cluster and counts for every group
with a person in that image; overall, in every image. A detection of another group's person is
ignored: neither a true nor a false positive for this group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError
from isolux.core.spec import Statistics
from isolux.stats.resampling.rows import replicate_detection_statistics
from isolux.stats.statistic import DetectionStatistic, FloatArray, IntArray, Ranking


@dataclass(frozen=True, slots=True)
class DetectionRows:
    """One model's ranked detections, with units and images.

    ``unit [n]`` is -1 for a false positive; ``image [n]`` and ``person_image [m]`` number images;
    ``n_clusters`` includes those of images without people. ``labels [K]`` names the ranking's
    classes, or is one empty name for boxes without classes. ``common_count`` is N of normalised
    precision where it was given; ``has_class_measures``: each class is also a measure of its own.
    ``size_rows``: the same detections, matched to the people of one of COCO's sizes.
    """

    ranking: Ranking
    unit: IntArray
    image: IntArray
    person_unit: IntArray
    person_image: IntArray
    n_images: int
    n_clusters: int
    labels: tuple[str, ...] = ("",)
    common_count: float | None = None
    has_class_measures: bool = True
    size_rows: tuple[DetectionRows, ...] = ()

    @property
    def person_class(self) -> IntArray:
        """Class of each person."""
        return self.ranking.person_class

    def rank_group(self, inside: npt.NDArray[np.bool_] | None) -> Ranking:
        """Rank the detections that count for the people ``inside [n_units]``; default: overall."""
        if inside is None:
            return self.ranking
        people = inside[self.person_unit]
        size_ranking = self._find_size_ranking(inside, people)
        if size_ranking is not None:
            return size_ranking
        is_searched = np.zeros(self.n_images, dtype=np.bool_)
        is_searched[self.person_image[people]] = True
        # A false positive has a class: of a group of complete classes it counts in every image, as
        # in COCO's AP of the class.
        is_searched |= self._consists_of_complete_classes(people)
        # unit -1 reads the last entry, which the condition never selects
        is_counted = np.where(self.unit < 0, is_searched[self.image], inside[self.unit])
        # The rows keep their order, so each class starts where its old start would be inserted.
        rows, overall_ranking = np.flatnonzero(is_counted), self.ranking
        return Ranking(
            overall_ranking.cluster[rows],
            overall_ranking.true_positive[rows],
            overall_ranking.false_positive[rows],
            np.searchsorted(rows, overall_ranking.starts).astype(np.int64),
            overall_ranking.person_cluster[people],
            overall_ranking.person_class[people],
        )

    def _consists_of_complete_classes(self, people: npt.NDArray[np.bool_]) -> bool:
        """Check whether a group consists of complete classes."""
        class_sizes = np.bincount(self.person_class, minlength=len(self.labels))
        group_class_sizes = np.bincount(self.person_class[people], minlength=len(self.labels))
        is_all_or_none = (group_class_sizes == class_sizes) | (group_class_sizes == 0)
        return bool(is_all_or_none.all() and np.count_nonzero(class_sizes) > 1)

    def _find_size_ranking(
        self, inside: npt.NDArray[np.bool_], people: npt.NDArray[np.bool_]
    ) -> Ranking | None:
        """Return the ranking of a size if the group is exactly its people."""
        group_units = np.unique(self.person_unit[people])
        units = [np.unique(rows_of_size.person_unit) for rows_of_size in self.size_rows]
        for k, rows_of_size in enumerate(self.size_rows):
            other_units = np.concatenate([u for j, u in enumerate(units) if j != k])
            excluded_units = units[k][~inside[units[k]]]
            # COCO's size ranges share their limits: a person on one is in two sizes, but one group.
            if (
                len(group_units)
                and np.isin(group_units, units[k]).all()
                and np.isin(excluded_units, other_units).all()
            ):
                return rows_of_size.ranking
        return None


DetectionMeasures = dict[int, tuple[DetectionStatistic, DetectionRows, int | None]]
"""By measure: the statistic, its rows, and its class; None: the mean over classes."""


def index_and_rank_detections(evidence: pl.DataFrame, units: pl.DataFrame) -> DetectionRows:
    """Assign numbers to units, images and clusters of detections, and rank them."""
    if evidence.height and not (evidence["kind"] == "image").any():
        raise TableError(
            "the evidence of detections has lost its images, and false alarms with them",
            expected="rows of the kinds image, person, right and wrong",
            found=", ".join(evidence["kind"].unique().sort()),
        )
    label_names = evidence["label"].fill_null("")
    labels = tuple(label_names.unique().sort())
    numbered_rows = evidence.with_columns(
        image=pl.col("image_id").rank("dense").cast(pl.Int64) - 1,
        label=label_names.rank("dense").cast(pl.Int64) - 1,
    )
    evidence_rows = numbered_rows.join(
        units.select("unit_id", "unit", "cluster"), on="unit_id", how="left", maintain_order="left"
    )
    evidence_rows, n_clusters = _cluster_rows_without_unit(evidence_rows, units)
    common_count = evidence["common"].drop_nulls().first() if "common" in evidence.columns else None
    people = evidence_rows.filter(pl.col("kind") == "person")
    return DetectionRows(
        *_rank_detections(evidence_rows, people, len(labels)),
        people["unit"].cast(pl.Int64).to_numpy(),
        people["image"].to_numpy(),
        _count_consecutive_numbers(numbered_rows["image"]),
        n_clusters,
        labels,
        None if common_count is None else float(common_count),  # type: ignore[arg-type]
        "apart" not in evidence.columns or evidence["apart"].first() is not False,
    )


def _rank_detections(
    evidence_rows: pl.DataFrame, people: pl.DataFrame, n_labels: int
) -> tuple[Ranking, IntArray, IntArray]:
    """Rank true and false positives, and return their units and images."""
    # COCO ranks equal scores in their order, so the sort must be stable.
    ranked_rows = evidence_rows.filter(pl.col("kind").is_in(["right", "wrong"])).sort(
        "label", "score", descending=[False, True], maintain_order=True
    )
    iou_bits = ranked_rows["at"].to_numpy()
    is_true_positive = (ranked_rows["kind"] == "right").to_numpy()
    no_bits = np.uint16(0)
    ranking = Ranking(
        ranked_rows["cluster"].to_numpy(),
        np.where(is_true_positive, iou_bits, no_bits),
        np.where(is_true_positive, no_bits, iou_bits),
        np.searchsorted(ranked_rows["label"].to_numpy(), np.arange(n_labels + 1)).astype(np.int64),
        people["cluster"].to_numpy(),
        people["label"].to_numpy(),
    )
    unit = ranked_rows["unit"].cast(pl.Int64).fill_null(-1).to_numpy()
    return ranking, unit, ranked_rows["image"].to_numpy()


def _count_consecutive_numbers(numbers: pl.Series) -> int:
    """Count numbers that run from 0 to the highest."""
    return int(numbers.to_numpy().max(initial=-1)) + 1


def _cluster_rows_without_unit(
    evidence_rows: pl.DataFrame, units: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Assign clusters to rows without a unit: a unit's cluster of that name, else a new one."""
    n_clusters = _count_consecutive_numbers(units["cluster"])
    known_clusters = units.select(
        "cluster_id", of_people=pl.col("cluster").cast(pl.Int64)
    ).drop_nulls()
    joined_rows = evidence_rows.join(
        known_clusters.unique("cluster_id"), on="cluster_id", how="left", maintain_order="left"
    )
    number = pl.coalesce(pl.col("cluster").cast(pl.Int64), "of_people")
    joined_rows = joined_rows.with_columns(
        cluster=number, name=pl.coalesce("cluster_id", "image_id")
    )
    images = joined_rows.filter((pl.col("kind") == "image") & pl.col("cluster").is_null())
    # Sorted, so that the numbers, and with them the random weights, do not depend on row order.
    new_clusters = images.select("name").unique().sort("name")
    new_clusters = new_clusters.with_columns(
        own=pl.int_range(n_clusters, n_clusters + pl.len(), dtype=pl.Int64)
    )
    all_rows = joined_rows.join(new_clusters, on="name", how="left", maintain_order="left")
    all_rows = all_rows.with_columns(cluster=pl.coalesce("cluster", "own"))
    return all_rows, n_clusters + new_clusters.height


def fill_detection_measures(
    detection_measures: DetectionMeasures,
    groups: Sequence[str | None],
    entries: tuple[IntArray, IntArray],
    n_units: int,
    outputs: tuple[FloatArray, FloatArray],
    spec: Statistics,
) -> None:
    """Fill values ``[g, m]`` and replicates ``[g, m, r]`` of these measures.

    Shapes: ``groups`` [g], ``entries`` [n], ``outputs`` [g, m].
    """
    estimates, replicates = outputs
    group_index, unit_index = entries
    groups_by_attribute: dict[str | None, list[int]] = {}
    for g, attribute in enumerate(groups):
        groups_by_attribute.setdefault(attribute, []).append(g)
    # ICON²'s common count N is a mean over the groups of one attribute.
    peers = [np.array(groups_by_attribute[attribute], dtype=np.int64) for attribute in groups]
    # Measures of the same detections share rankings and replicate weights.
    measures_by_rows: dict[int, list[int]] = {}  # measures of the same detections
    for j, (_, rows, _) in detection_measures.items():
        measures_by_rows.setdefault(id(rows), []).append(j)
    for measures in measures_by_rows.values():
        rows = detection_measures[measures[0]][1]
        rankings = [rows.rank_group(None)]
        for g in range(1, len(estimates)):
            inside = np.zeros(n_units, dtype=np.bool_)
            inside[unit_index[group_index == g]] = True
            rankings.append(rows.rank_group(inside))
        statistics = [(detection_measures[j][0], detection_measures[j][2]) for j in measures]
        values_and_replicates = replicate_detection_statistics(
            statistics, rankings, peers, rows.n_clusters, spec, common_count=rows.common_count
        )
        estimates[:, measures], replicates[:, measures] = values_and_replicates
