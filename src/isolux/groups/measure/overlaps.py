"""Evidence of overlaps: each group's people matched alone, as if no one else could be found.

Not COCO's rule: a detection may be claimed by one group's person here and by another group's there.
As the match is made from the group's people, whatever makes a group will do: votes, bins,
intersections, people who are in several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.matching import Detections, Pairs, Truths, match
from isolux.stats.statistic import IntArray, Ranking


@dataclass(frozen=True, slots=True)
class OverlapRows:
    """One model's detections and people, who overlaps whom, and whose people are.

    ``truth_unit [m]`` is -1 for people who take part and are not scored. ``place [n]`` ranks
    detections by class and falling score.
    """

    pairs: Pairs
    detections: Detections
    truths: Truths
    truth_unit: IntArray
    truth_cluster: IntArray
    truth_class: IntArray
    detection_cluster: IntArray
    place: IntArray
    class_starts: IntArray
    others: Literal["ignore", "remove"]
    n_clusters: int
    labels: tuple[str, ...]
    common: float | None = None

    @property
    def person_unit(self) -> IntArray:
        """Units of those who are scored."""
        return self.truth_unit[self.truth_unit >= 0]

    @property
    def person_class(self) -> IntArray:
        """Class of each of them."""
        return self.truth_class[self.truth_unit >= 0]

    def within(self, inside: npt.NDArray[np.bool_] | None) -> Ranking:
        """Match the people ``inside [n_units]`` alone, and rank; default: everyone together."""
        scored = self.truth_unit >= 0
        people, group, truths = scored, None, self.truths
        sides = (self.detections.image, self.truths.image)
        n_images = 1 + max(int(side.max(initial=-1)) for side in sides)
        looked_at = np.ones(n_images, dtype=np.bool_)
        if inside is not None:
            people = scored & inside[self.truth_unit]
            looked_at[:] = False
            looked_at[self.truths.image[people]] = True
            # People who are not scored are in no group, and what finds them is not a false alarm.
            truths = replace(truths, ignore=truths.is_ignored | ~scored)
            group = people | truths.is_ignored
        found = match(
            self.pairs,
            self.detections,
            truths,
            max_detections=None,
            group=group,
            other_groups=self.others,
        )
        bit = np.left_shift(1, np.arange(len(found.thresholds)))
        wrong = np.full(len(self.detections), int(bit.sum()), dtype=np.int64)
        wrong[found.candidate] = (found.candidate_truth < 0) @ bit
        false = np.flatnonzero((wrong > 0) & looked_at[self.detections.image])
        c, t = np.nonzero(found.candidate_truth >= 0)
        who = found.candidate_truth[c, t].astype(np.int64)
        counts = people[who] if len(who) else np.zeros(0, np.bool_)
        pair = found.candidate[c[counts]] * len(people) + who[counts]
        both, first = np.unique(pair, return_inverse=True)
        right = np.zeros(len(both), dtype=np.int64)
        np.add.at(right, first, bit[t[counts]])
        person = both % max(1, len(people))
        return self._ranked((both // max(1, len(people)), person, right), (false, wrong), people)

    def _ranked(
        self,
        right: tuple[IntArray, IntArray, IntArray],
        alarms: tuple[IntArray, IntArray],
        people: npt.NDArray[np.bool_],
    ) -> Ranking:
        detection, person, bits = right
        false, wrong = alarms
        row = np.concatenate([detection, false])
        cluster = np.concatenate([self.truth_cluster[person], self.detection_cluster[false]])
        none = np.zeros(len(row), dtype=np.int64)
        is_right, is_wrong = none.copy(), none.copy()
        is_right[: len(bits)], is_wrong[len(bits) :] = bits, wrong[false]
        order = np.argsort(self.place[row], kind="stable")
        return Ranking(
            cluster[order],
            is_right[order].astype(np.uint16),
            is_wrong[order].astype(np.uint16),
            np.searchsorted(self.place[row][order], self.class_starts).astype(np.int64),
            self.truth_cluster[people],
            self.truth_class[people],
        )


def overlap_rows(placed: pl.DataFrame, labels: tuple[str, ...], n_clusters: int) -> OverlapRows:
    """Arrange rows of the table ``overlaps`` whose images, classes and clusters have numbers."""
    people = placed.filter(pl.col("kind").is_in(["person", "other"])).sort("person")
    drawn = placed.filter(pl.col("kind") == "detection").sort("detection")
    over = placed.filter(pl.col("kind") == "overlap").sort("detection", "person")
    image, score = drawn["image"].to_numpy(), drawn["score"].to_numpy()
    label = drawn["label"].to_numpy()
    detection = over["detection"].to_numpy()
    pairs = Pairs(
        image[detection],
        detection,
        over["person"].to_numpy(),
        over["overlap"].to_numpy(),
        0.5,
        len(drawn),
        len(people),
    )
    order = np.lexsort((np.arange(len(drawn)), -score, label))
    place = np.empty(len(drawn), dtype=np.int64)
    place[order] = np.arange(len(drawn))
    common = placed["common"].drop_nulls().first()
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
        people["cluster"].fill_null(0).to_numpy(),  # theirs alone who are not scored
        people["label"].to_numpy(),
        drawn["cluster"].to_numpy(),
        place,
        np.searchsorted(label[order], np.arange(len(labels) + 1)).astype(np.int64),
        "remove" if placed["others"].first() == "remove" else "ignore",
        n_clusters,
        labels,
        None if common is None else float(common),  # type: ignore[arg-type]
    )
