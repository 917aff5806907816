"""Evidence of overlaps: each group's people are matched separately.

This is not COCO's rule: a detection may match one person in one group and another person in another
group. As matching uses only the group's people, groups may be formed in any way: votes, bins,
intersections, people in several groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.matching import Detections, OverlapPairs, Truths, match
from isolux.stats.statistic import IntArray, Ranking


@dataclass(frozen=True, slots=True)
class OverlapRows:
    """One model's detections and people, their overlaps, and the people's units.

    ``truth_unit [m]`` is -1 for people who are matched but not scored. ``rank [n]`` ranks
    detections by class and falling score.
    """

    pairs: OverlapPairs
    detections: Detections
    truths: Truths
    truth_unit: IntArray
    truth_cluster: IntArray
    truth_class: IntArray
    detection_cluster: IntArray
    rank: IntArray
    class_starts: IntArray
    other_groups: Literal["ignore", "remove"]
    n_clusters: int
    labels: tuple[str, ...]
    common_count: float | None = None

    @property
    def person_unit(self) -> IntArray:
        """Units of the scored people."""
        return self.truth_unit[self.truth_unit >= 0]

    @property
    def person_class(self) -> IntArray:
        """Class of each scored person."""
        return self.truth_class[self.truth_unit >= 0]

    def rank_group(self, inside: npt.NDArray[np.bool_] | None) -> Ranking:
        """Match and rank the people ``inside [n_units]`` separately; default: all people."""
        is_scored = self.truth_unit >= 0
        people, group, truths = is_scored, None, self.truths
        image_arrays = (self.detections.image, self.truths.image)
        n_images = 1 + max(int(image_array.max(initial=-1)) for image_array in image_arrays)
        is_searched = np.ones(n_images, dtype=np.bool_)
        if inside is not None:
            people = is_scored & inside[self.truth_unit]
            is_searched[:] = False
            is_searched[self.truths.image[people]] = True
            # People without scores are in no group, and detections of them are not false positives.
            truths = replace(truths, ignore=truths.is_ignored | ~is_scored)
            group = people | truths.is_ignored
        matches = match(
            self.pairs,
            self.detections,
            truths,
            max_detections=None,
            group=group,
            other_groups=self.other_groups,
        )
        bit = np.left_shift(1, np.arange(len(matches.thresholds)))
        false_bits = np.full(len(self.detections), int(bit.sum()), dtype=np.int64)
        false_bits[matches.candidate] = (matches.candidate_truth < 0) @ bit
        false_rows = np.flatnonzero((false_bits > 0) & is_searched[self.detections.image])
        c, t = np.nonzero(matches.candidate_truth >= 0)
        truth_index = matches.candidate_truth[c, t].astype(np.int64)
        counts = people[truth_index] if len(truth_index) else np.zeros(0, np.bool_)
        pair = matches.candidate[c[counts]] * len(people) + truth_index[counts]
        distinct_pairs, first = np.unique(pair, return_inverse=True)
        true_bits = np.zeros(len(distinct_pairs), dtype=np.int64)
        # A pair occurs once for each IoU threshold, and each occurrence is one bit.
        np.add.at(true_bits, first, bit[t[counts]])
        person = distinct_pairs % max(1, len(people))
        return self._build_ranking(
            (distinct_pairs // max(1, len(people)), person, true_bits),
            (false_rows, false_bits),
            people,
        )

    def _build_ranking(
        self,
        true_positives: tuple[IntArray, IntArray, IntArray],
        false_positives: tuple[IntArray, IntArray],
        people: npt.NDArray[np.bool_],
    ) -> Ranking:
        detection, person, bits = true_positives
        false_rows, false_bits = false_positives
        row = np.concatenate([detection, false_rows])
        cluster = np.concatenate([self.truth_cluster[person], self.detection_cluster[false_rows]])
        zeros = np.zeros(len(row), dtype=np.int64)
        is_right, is_wrong = zeros.copy(), zeros.copy()
        is_right[: len(bits)], is_wrong[len(bits) :] = bits, false_bits[false_rows]
        order = np.argsort(self.rank[row], kind="stable")
        return Ranking(
            cluster[order],
            is_right[order].astype(np.uint16),
            is_wrong[order].astype(np.uint16),
            np.searchsorted(self.rank[row][order], self.class_starts).astype(np.int64),
            self.truth_cluster[people],
            self.truth_class[people],
        )


def index_overlap_rows(
    evidence_rows: pl.DataFrame, labels: tuple[str, ...], n_clusters: int
) -> OverlapRows:
    """Build from the rows of the table ``overlaps``, with numbered images, classes and clusters."""
    people = evidence_rows.filter(pl.col("kind").is_in(["person", "other"])).sort("person")
    predicted = evidence_rows.filter(pl.col("kind") == "detection").sort("detection")
    overlapping = evidence_rows.filter(pl.col("kind") == "overlap").sort("detection", "person")
    image, score = predicted["image"].to_numpy(), predicted["score"].to_numpy()
    label = predicted["label"].to_numpy()
    detection = overlapping["detection"].to_numpy()
    pairs = OverlapPairs(
        image[detection],
        detection,
        overlapping["person"].to_numpy(),
        overlapping["overlap"].to_numpy(),
        0.5,
        len(predicted),
        len(people),
    )
    # COCO's order: by class and descending score, ties in input order.
    order = np.lexsort((np.arange(len(predicted)), -score, label))
    rank = np.empty(len(predicted), dtype=np.int64)
    rank[order] = np.arange(len(predicted))
    common_count = evidence_rows["common"].drop_nulls().first()
    return OverlapRows(
        pairs,
        Detections(image, score, label),
        Truths(
            people["image"].to_numpy(),
            people["is_ignored"].to_numpy(),
            people["is_crowd"].to_numpy(),
            people["label"].to_numpy(),
        ),
        people["unit"].cast(pl.Int64).fill_null(-1).to_numpy(),
        people["cluster"].fill_null(0).to_numpy(),  # 0 is only for people who are not scored
        people["label"].to_numpy(),
        predicted["cluster"].to_numpy(),
        rank,
        np.searchsorted(label[order], np.arange(len(labels) + 1)).astype(np.int64),
        "remove" if evidence_rows["others"].first() == "remove" else "ignore",
        n_clusters,
        labels,
        None if common_count is None else float(common_count),  # type: ignore[arg-type]
    )
