"""Evidence of detections: what found a person counts for the person's groups, the rest for images'.

A wrong detection has no person. It weighs what its image's cluster does and counts for every group
with a person in that image; for everyone, in every image. What found another group's person is
left out: neither right nor wrong for this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.measure.overlaps import OverlapRows, overlap_rows
from isolux.stats.resampling.rows import replicate_rankings
from isolux.stats.statistic import DetectionStatistic, FloatArray, IntArray, Ranking
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.spec import Statistics


@dataclass(frozen=True, slots=True)
class DetectionRows:
    """One model's detections, ranked, and whose they are.

    ``unit [n]`` is -1 for a wrong detection; ``image [n]`` and ``person_image [m]`` are numbers of
    images; ``n_clusters`` counts those of images without people too. ``labels [K]`` names the
    ranking's classes, of which there is one without a name where boxes are not judged by class.
    ``common`` is N of normalised precision where it was given; ``apart``: each class is a measure
    of its own, beside their mean. ``sizes``: the same detections, matched to the people of one of
    COCO's sizes alone.
    """

    ranking: Ranking
    unit: IntArray
    image: IntArray
    person_unit: IntArray
    person_image: IntArray
    n_images: int
    n_clusters: int
    labels: tuple[str, ...] = ("",)
    common: float | None = None
    apart: bool = True
    sizes: tuple[DetectionRows, ...] = ()

    @property
    def person_class(self) -> IntArray:
        """Class of each person."""
        return self.ranking.person_class

    def within(self, inside: npt.NDArray[np.bool_] | None) -> Ranking:
        """Rank what counts for the people ``inside [n_units]``; default: for everyone."""
        if inside is None:
            return self.ranking
        people = inside[self.person_unit]
        sized = self._of_size(inside, people)
        if sized is not None:
            return sized
        looked_at = np.zeros(self.n_images, dtype=np.bool_)
        looked_at[self.person_image[people]] = True
        looked_at |= self._whole_classes(people)
        # unit -1 reads the last entry, which the second choice never takes
        counts = np.where(self.unit < 0, looked_at[self.image], inside[self.unit])
        rows, whole = np.flatnonzero(counts), self.ranking
        return Ranking(
            whole.cluster[rows],
            whole.right[rows],
            whole.wrong[rows],
            np.searchsorted(rows, whole.starts).astype(np.int64),
            whole.person_cluster[people],
            whole.person_class[people],
        )

    def _whole_classes(self, people: npt.NDArray[np.bool_]) -> bool:
        """Tell whether a group is some of several classes, each with all of its people."""
        held = np.bincount(self.person_class, minlength=len(self.labels))
        own = np.bincount(self.person_class[people], minlength=len(self.labels))
        whole = (own == held) | (own == 0)
        return bool(whole.all() and np.count_nonzero(held) > 1)

    def _of_size(
        self, inside: npt.NDArray[np.bool_], people: npt.NDArray[np.bool_]
    ) -> Ranking | None:
        """Return the ranking of a size if the group is its people, and no others."""
        own = np.unique(self.person_unit[people])
        units = [np.unique(one.person_unit) for one in self.sizes]
        for k, one in enumerate(self.sizes):
            others = np.concatenate([u for j, u in enumerate(units) if j != k])
            beyond = units[k][~inside[units[k]]]
            # COCO's ranges share their ends: who lies on one is of two sizes, and of one group.
            if len(own) and np.isin(own, units[k]).all() and np.isin(beyond, others).all():
                return one.ranking
        return None


Detected = dict[int, tuple[DetectionStatistic, DetectionRows | OverlapRows, int | None]]
"""By measure: the statistic, what it is a statistic of, and its class; None: their mean."""


def detection_rows(evidence: pl.DataFrame, units: pl.DataFrame) -> DetectionRows | OverlapRows:
    """Give detections the numbers of their units, images and clusters, and rank them."""
    if evidence.height and not (evidence["kind"] == "image").any():
        raise TableError(
            "the evidence of detections has lost its images, and false alarms with them",
            expected="rows of the kinds image, person, right and wrong",
            found=", ".join(evidence["kind"].unique().sort()),
        )
    named = evidence["label"].fill_null("")
    labels = tuple(named.unique().sort())
    numbered = evidence.with_columns(
        image=pl.col("image_id").rank("dense").cast(pl.Int64) - 1,
        label=named.rank("dense").cast(pl.Int64) - 1,
    )
    placed = numbered.join(
        units.select("unit_id", "unit", "cluster"), on="unit_id", how="left", maintain_order="left"
    )
    placed, n_clusters = _with_clusters(placed, units)
    if "overlap" in placed.columns:
        return overlap_rows(placed, labels, n_clusters)
    common = evidence["common"].drop_nulls().first() if "common" in evidence.columns else None
    people = placed.filter(pl.col("kind") == "person")
    return DetectionRows(
        *_ranked(placed, people, len(labels)),
        people["unit"].cast(pl.Int64).to_numpy(),
        people["image"].to_numpy(),
        _count(numbered["image"]),
        n_clusters,
        labels,
        None if common is None else float(common),  # type: ignore[arg-type]
        "apart" not in evidence.columns or evidence["apart"].first() is not False,
    )


def _ranked(
    placed: pl.DataFrame, people: pl.DataFrame, n_labels: int
) -> tuple[Ranking, IntArray, IntArray]:
    """Rank right and wrong detections, and give their units and images."""
    ranked = placed.filter(pl.col("kind").is_in(["right", "wrong"])).sort(
        "label", "score", descending=[False, True], maintain_order=True
    )
    at = ranked["at"].to_numpy()
    right = (ranked["kind"] == "right").to_numpy()
    none = np.uint16(0)
    ranking = Ranking(
        ranked["cluster"].to_numpy(),
        np.where(right, at, none),
        np.where(right, none, at),
        np.searchsorted(ranked["label"].to_numpy(), np.arange(n_labels + 1)).astype(np.int64),
        people["cluster"].to_numpy(),
        people["label"].to_numpy(),
    )
    unit = ranked["unit"].cast(pl.Int64).fill_null(-1).to_numpy()
    return ranking, unit, ranked["image"].to_numpy()


def _count(numbers: pl.Series) -> int:
    """Count numbers that run from 0 to the highest."""
    return int(numbers.to_numpy().max(initial=-1)) + 1


def _with_clusters(placed: pl.DataFrame, units: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Find the cluster of what has no unit: a known cluster's, else one of its own."""
    n_clusters = _count(units["cluster"])
    known = units.select("cluster_id", of_people=pl.col("cluster").cast(pl.Int64)).drop_nulls()
    joined = placed.join(
        known.unique("cluster_id"), on="cluster_id", how="left", maintain_order="left"
    )
    number = pl.coalesce(pl.col("cluster").cast(pl.Int64), "of_people")
    joined = joined.with_columns(cluster=number, name=pl.coalesce("cluster_id", "image_id"))
    images = joined.filter((pl.col("kind") == "image") & pl.col("cluster").is_null())
    new = images.select("name").unique().sort("name")
    new = new.with_columns(own=pl.int_range(n_clusters, n_clusters + pl.len(), dtype=pl.Int64))
    full = joined.join(new, on="name", how="left", maintain_order="left")
    full = full.with_columns(cluster=pl.coalesce("cluster", "own"))
    return full, n_clusters + new.height


def measure_detections(
    detected: Detected,
    groups: Sequence[str | None],
    entries: tuple[IntArray, IntArray],
    n_units: int,
    out: tuple[FloatArray, FloatArray],
    spec: Statistics,
) -> None:
    """Fill values ``[g, m]`` and replicates ``[g, m, r]`` of these measures.

    Shapes: ``groups`` [g], ``entries`` [n], ``out`` [g, m].
    """
    value, replicates = out
    group_of, unit_of = entries
    of_attribute: dict[str | None, list[int]] = {}
    for g, attribute in enumerate(groups):
        of_attribute.setdefault(attribute, []).append(g)
    peers = [np.array(of_attribute[attribute], dtype=np.int64) for attribute in groups]
    alike: dict[int, list[int]] = {}  # measures of the same detections
    for j, (_, rows, _) in detected.items():
        alike.setdefault(id(rows), []).append(j)
    for measures in alike.values():
        rows = detected[measures[0]][1]
        rankings = [rows.within(None)]
        for g in range(1, len(value)):
            inside = np.zeros(n_units, dtype=np.bool_)
            inside[unit_of[group_of == g]] = True
            rankings.append(rows.within(inside))
        asked = [(detected[j][0], detected[j][2]) for j in measures]
        found = replicate_rankings(
            asked, rankings, peers, rows.n_clusters, spec, common=rows.common
        )
        value[:, measures], replicates[:, measures] = found
