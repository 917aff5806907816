"""Average precision of every cell, read off a run's evidence of detections as ICON² reads it.

Right detections count for the cells of the people they found; what found anybody else is ignored.
False alarms count for the cells that have a person of their class in their image (ICON²'s "images
that have positive ground truth annotations for the class of interest and for the sensitive
attribute value"), or for every cell of their class, whatever the image. N of normalised precision
is the mean count of the cells that a cell is compared with (over the groups, over the values of the
explanatory attribute, over the groups within a value), or the count of everyone.

The paper's choices favour the group with fewer people where a model serves all alike: N is made
equal, while the false alarms of a group's own images still grow with the group. Hoiem et al. set
the false alarms of *all* images against one N; with N the count of everyone, groups, values and
both at once are then on one scale, differ by recall alone, and do not differ where recall does not.
That is the default; the price is that a group's own false alarms are not seen.

The paper's words leave open how precision is averaged over recall: COCO's 101 points and the area
under the same curve are both here, and the analysis prints them side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses.confounders.cells import Cells, Layout, on_replicates
from isolux.stats.cells import Outcomes, Places, rank_cells
from isolux.stats.design import IntArray
from isolux.stats.precision_recall import Reading, people_of_classes, precision_table
from isolux.stats.statistic import FloatArray, Ranking

__all__ = ["Alarms", "Boxes", "Count", "Precision", "boxes_of", "precision_of_cells"]

Alarms = Literal["class and value", "every image"]
"""Whose false alarms a group's are: those of images that hold a truth of the class and the value
(the paper's), or those of every image."""
Count = Literal["mean of peers", "everyone"]
"""N of normalised precision: the mean count of the cells compared (the paper's), or of everyone."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """One model's detections and the people to be found, in numbers.

    Rows of ``outcomes`` are its detections. ``image`` and ``person_image``, ``label`` and
    ``person_label`` number images and classes; ``labels`` names the classes.
    """

    outcomes: Outcomes
    score: FloatArray
    image: IntArray
    label: IntArray
    cluster: IntArray
    person_unit: IntArray
    person_image: IntArray
    person_label: IntArray
    person_cluster: IntArray
    labels: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Precision:
    """How average precision is read."""

    overlaps: tuple[int, ...] = tuple(range(10))
    reading: Reading = "101 points"
    normalised: bool = True
    alarms: Alarms = "every image"
    count: Count = "everyone"
    n_threads: int = 1


def boxes_of(evidence: pl.DataFrame) -> Boxes:
    """Turn one model's evidence of detections into numbers."""
    found = evidence.filter(pl.col("kind").is_in(["person", "right", "wrong"]))
    labels = tuple(found["label"].unique().sort().to_list())
    place = {label: k for k, label in enumerate(labels)}
    numbered = found.with_columns(
        image=pl.col("image_id").rank("dense").cast(pl.Int64) - 1,
        class_=pl.col("label").replace_strict(place, return_dtype=pl.Int64)
        if labels != (None,)
        else pl.lit(0, dtype=pl.Int64),
    )
    people = numbered.filter(kind="person").with_row_index("person")
    seen = numbered.filter(pl.col("kind") != "person")
    own = people.select("unit", "class_", "person").with_columns(kind=pl.lit("right"))
    placed = seen.join(own, on=["unit", "class_", "kind"], how="left", maintain_order="left")
    # A right detection whose person has no row of that class cannot be; dropping it is safe.
    placed = placed.filter((pl.col("kind") == "wrong") | pl.col("person").is_not_null())
    person = placed["person"].cast(pl.Int64).fill_null(-1).to_numpy()
    return Boxes(
        Outcomes(np.arange(len(person)), person, placed["at"].to_numpy().astype(np.uint16)),
        placed["score"].to_numpy(),
        placed["image"].to_numpy(),
        placed["class_"].to_numpy(),
        placed["cluster"].cast(pl.Int64).to_numpy(),
        people["unit"].cast(pl.Int64).to_numpy(),
        people["image"].to_numpy(),
        people["class_"].to_numpy(),
        people["cluster"].cast(pl.Int64).to_numpy(),
        labels,
    )


def precision_of_cells(
    layout: Layout,
    boxes: Boxes,
    n_clusters: int,
    settings: tuple[int, int, str] | None,
    how: Precision,
    *,
    least: int = 1,
) -> list[Cells]:
    """Read average precision in every cell, class by class, and of all classes."""
    # One class at a time: the false alarms of every image stand once in each cell of their class.
    parts = [
        _of_one(layout, _of_class(boxes, k), n_clusters, settings, how)
        for k in range(len(boxes.labels))
    ]
    return [*parts, _together(layout, parts, least)] if len(parts) > 1 else parts


def _of_class(boxes: Boxes, k: int) -> Boxes:
    """Keep one class's detections and people."""
    found, people = np.flatnonzero(boxes.label == k), np.flatnonzero(boxes.person_label == k)
    row_of = np.full(len(boxes.label), -1, dtype=np.int64)
    row_of[found] = np.arange(len(found))
    person_of = np.full(len(boxes.person_label) + 1, -1, dtype=np.int64)  # the last: no person's
    person_of[people] = np.arange(len(people))
    own = boxes.outcomes
    person = person_of[own.person]
    kept = (row_of[own.detection] >= 0) & ((own.person < 0) | (person >= 0))
    return Boxes(
        Outcomes(row_of[own.detection[kept]], person[kept], own.at[kept]),
        boxes.score[found],
        boxes.image[found],
        np.zeros(len(found), dtype=np.int64),
        boxes.cluster[found],
        boxes.person_unit[people],
        boxes.person_image[people],
        np.zeros(len(people), dtype=np.int64),
        boxes.person_cluster[people],
        (boxes.labels[k],),
    )


def _of_one(
    layout: Layout,
    boxes: Boxes,
    n_clusters: int,
    settings: tuple[int, int, str] | None,
    how: Precision,
) -> Cells:
    """Read every cell of one class."""
    c = layout.n_cells
    who, cell = _entries(layout, boxes)
    by_image = how.alarms == "class and value"
    places = Places(
        boxes.image if by_image else np.zeros_like(boxes.image),
        boxes.person_image if by_image else np.zeros_like(boxes.person_image),
        boxes.cluster,
        boxes.person_cluster,
    )
    ranking = rank_cells(boxes.outcomes, boxes.score, places, who, cell, c)
    counted = np.bincount(cell, minlength=c)
    everyone = _everyone(boxes, layout)

    def read(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        people = people_of_classes(ranking, weights)
        common = None
        if how.normalised and how.count == "mean of peers":
            common = _common(people, layout.peers, counted > 0)
        elif how.normalised:
            common = np.repeat(people_of_classes(everyone, weights), c, axis=1)
        table = precision_table(
            ranking, weights, how.overlaps, reading=how.reading, common=common,
            n_threads=how.n_threads,
        )  # fmt: skip
        return table.mean(axis=2), people

    value, _ = read(np.ones((n_clusters, 1)))
    none = np.empty((0, c))
    replicates, weight = (
        (none, none) if settings is None else on_replicates(read, n_clusters, settings)
    )
    both = np.unique(cell * n_clusters + boxes.person_cluster[who])
    clusters = np.bincount(both // max(n_clusters, 1), minlength=c)
    return Cells(value[0], counted, clusters, replicates, weight)


def _everyone(boxes: Boxes, layout: Layout) -> Ranking:
    """Rank nothing, and count the people who are in a group at all."""
    nothing = np.empty(0, dtype=np.int64)
    short = np.empty(0, dtype=np.uint16)
    inside = np.isin(boxes.person_unit, layout.sensitive.unit)
    return Ranking(
        nothing, short, short, np.zeros(2, dtype=np.int64), boxes.person_cluster[inside],
        boxes.person_label[inside],
    )  # fmt: skip


def _entries(layout: Layout, boxes: Boxes) -> tuple[IntArray, IntArray]:
    """List people and the cells they are in."""
    people = pl.DataFrame({"unit": boxes.person_unit}).with_row_index("person")
    cells = pl.DataFrame({"unit": layout.unit, "cell": layout.cell})
    both = people.join(cells, on="unit", how="inner")
    return both["person"].cast(pl.Int64).to_numpy(), both["cell"].to_numpy()


def _common(people: FloatArray, peers: IntArray, held: npt.NDArray[np.bool_]) -> FloatArray:
    """Mean weight of the people of a cell's peers that hold anybody: ``[r, n_cells]``."""
    order = np.argsort(peers, kind="stable")
    starts = np.flatnonzero(np.diff(peers[order], prepend=-1))
    total = np.add.reduceat(people[:, order], starts, axis=1)
    n = np.maximum(np.add.reduceat(held[order].astype(np.int64), starts), 1)
    mean = total / n
    _, place = np.unique(peers, return_inverse=True)
    return np.ascontiguousarray(mean[:, place])


def _together(layout: Layout, parts: list[Cells], least: int) -> Cells:
    """Average over the classes that every group has; who counts once a class."""
    value = np.stack([part.value for part in parts], axis=1)  # [n_cells, k]
    units = np.sum([part.units for part in parts], axis=0)
    large = np.flatnonzero(layout.of_groups(units) >= max(least, 1))
    shared = np.isfinite(value[large]).all(axis=0) & bool(len(large))
    drawn = np.stack([part.replicates for part in parts], axis=2)[:, :, shared]
    nothing = np.full(drawn.shape[:2], np.nan)
    return Cells(
        value[:, shared].mean(axis=1) if shared.any() else np.full(len(value), np.nan),
        units,
        np.max([part.clusters for part in parts], axis=0),
        drawn.mean(axis=2) if shared.any() else nothing,
        np.sum([part.weight for part in parts], axis=0),
    )
