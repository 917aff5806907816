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

from collections.abc import Sequence
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

Alarms = Literal["class and value", "every image"]
"""Whose false alarms a group's are: those of images that hold a truth of the class and the value
(the paper's), or those of every image."""
Count = Literal["mean of peers", "everyone"]
"""N of normalised precision: the mean count of the cells compared (the paper's), or of everyone."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """One model's detections of one class and the people to be found, in numbers.

    Rows of ``outcomes`` are its detections; ``image`` and ``person_image`` number images.
    """

    label: str | None
    outcomes: Outcomes
    score: FloatArray
    image: IntArray
    cluster: IntArray
    person_unit: IntArray
    person_image: IntArray
    person_cluster: IntArray


@dataclass(frozen=True, slots=True)
class Precision:
    """How average precision is read."""

    overlaps: tuple[int, ...] = tuple(range(10))
    reading: Reading = "101 points"
    normalised: bool = True
    alarms: Alarms = "every image"
    count: Count = "everyone"


def boxes_of(evidence: pl.DataFrame) -> tuple[Boxes, ...]:
    """Turn one model's evidence of detections into numbers, class by class."""
    rows = evidence.filter(pl.col("kind").is_in(["person", "right", "wrong"])).with_columns(
        image=pl.col("image_id").rank("dense").cast(pl.Int64) - 1
    )
    # One class at a time: the false alarms of every image stand once in each cell of their class.
    return tuple(
        _boxes_of_class(label, rows.filter(pl.col("label").eq_missing(pl.lit(label))))
        for label in rows["label"].unique().sort().to_list()
    )


def _boxes_of_class(label: str | None, rows: pl.DataFrame) -> Boxes:
    people = rows.filter(kind="person").with_row_index("person")
    found = people.select("unit", "person", kind=pl.lit("right"))
    seen = rows.filter(pl.col("kind") != "person")
    seen = seen.join(found, on=["unit", "kind"], how="left", maintain_order="left")
    # A right detection whose person has no row of that class cannot be; dropping it is safe.
    seen = seen.filter((pl.col("kind") == "wrong") | pl.col("person").is_not_null())
    person = seen["person"].cast(pl.Int64).fill_null(-1).to_numpy()
    return Boxes(
        label,
        Outcomes(np.arange(len(person)), person, seen["at"].to_numpy().astype(np.uint16)),
        seen["score"].to_numpy(),
        seen["image"].to_numpy(),
        seen["cluster"].cast(pl.Int64).to_numpy(),
        people["unit"].cast(pl.Int64).to_numpy(),
        people["image"].to_numpy(),
        people["cluster"].cast(pl.Int64).to_numpy(),
    )


def precision_of_cells(
    layout: Layout,
    boxes: Sequence[Boxes],
    n_clusters: int,
    settings: tuple[int, int, str] | None,
    how: Precision,
    *,
    least: int = 1,
) -> list[Cells]:
    """Read average precision in every cell, class by class, and of all classes."""
    parts = [_precision_of_class(layout, one, n_clusters, settings, how) for one in boxes]
    return [*parts, _mean_of_classes(layout, parts, least)] if len(parts) > 1 else parts


def _precision_of_class(
    layout: Layout,
    boxes: Boxes,
    n_clusters: int,
    settings: tuple[int, int, str] | None,
    how: Precision,
) -> Cells:
    c = layout.n_cells
    people = pl.DataFrame({"unit": boxes.person_unit}).with_row_index("person")
    entries = people.join(pl.DataFrame({"unit": layout.unit, "cell": layout.cell}), on="unit")
    who, cell = entries["person"].cast(pl.Int64).to_numpy(), entries["cell"].to_numpy()
    images = boxes.image, boxes.person_image
    if how.alarms == "every image":
        images = np.zeros_like(boxes.image), np.zeros_like(boxes.person_image)
    places = Places(*images, boxes.cluster, boxes.person_cluster)
    ranking = rank_cells(boxes.outcomes, boxes.score, places, who, cell, c)
    counted = np.bincount(cell, minlength=c)
    grouped = boxes.person_cluster[np.isin(boxes.person_unit, layout.sensitive.unit)]
    short = np.empty(0, dtype=np.uint16)
    # Ranks nothing, and counts the people who are in a group at all.
    everyone = Ranking(
        np.empty(0, dtype=np.int64),
        short,
        short,
        np.zeros(2, dtype=np.int64),
        grouped,
        np.zeros(len(grouped), dtype=np.int64),
    )

    def read(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        people = people_of_classes(ranking, weights)
        common = None
        if how.normalised and how.count == "mean of peers":
            common = _mean_of_peers(people, layout.peers, counted > 0)
        elif how.normalised:
            common = np.repeat(people_of_classes(everyone, weights), c, axis=1)
        table = precision_table(
            ranking, weights, how.overlaps, reading=how.reading, common=common, n_threads=1
        )
        return table.mean(axis=2), people

    value = read(np.ones((n_clusters, 1)))[0][0]
    replicates = weight = np.empty((0, c))
    if settings is not None:
        replicates, weight = on_replicates(read, n_clusters, settings)
    pairs = np.unique(cell * n_clusters + boxes.person_cluster[who])
    clusters = np.bincount(pairs // max(n_clusters, 1), minlength=c)
    return Cells(value, counted, clusters, replicates, weight)


def _mean_of_peers(
    people: FloatArray, peers: IntArray, has_people: npt.NDArray[np.bool_]
) -> FloatArray:
    """Mean weight of the people of a cell's peers that hold anybody: ``[r, n_cells]``."""
    order = np.argsort(peers, kind="stable")
    starts = np.flatnonzero(np.diff(peers[order], prepend=-1))
    total = np.add.reduceat(people[:, order], starts, axis=1)
    n = np.maximum(np.add.reduceat(has_people[order].astype(np.int64), starts), 1)
    _, place = np.unique(peers, return_inverse=True)
    return np.ascontiguousarray((total / n)[:, place])


def _mean_of_classes(layout: Layout, parts: list[Cells], least: int) -> Cells:
    """Average over the classes that every group has; who counts once a class."""
    value = np.stack([part.value for part in parts], axis=1)  # [n_cells, k]
    units = np.sum([part.units for part in parts], axis=0)
    large = np.flatnonzero(layout.of_groups(units) >= max(least, 1))
    shared = np.isfinite(value[large]).all(axis=0) & bool(len(large))
    drawn = np.stack([part.replicates for part in parts], axis=2)[:, :, shared]
    return Cells(
        value[:, shared].mean(axis=1) if shared.any() else np.full(len(value), np.nan),
        units,
        np.max([part.clusters for part in parts], axis=0),
        drawn.mean(axis=2) if shared.any() else np.full(drawn.shape[:2], np.nan),
        np.sum([part.weight for part in parts], axis=0),
    )
