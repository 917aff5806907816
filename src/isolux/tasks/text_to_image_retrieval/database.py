"""The images that queries search: whose each is, and what was sampled with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.tasks._truth import instances_with_truth
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

__all__ = ["Images", "read_images"]


@dataclass(frozen=True, slots=True)
class Images:
    """The database: whose each image is, and what was sampled with it.

    Parameters
    ----------
    ids : polars.Series
    groups : tuple of str
    member : [n, a] float
        Rows sum to 1; to 0 where the group is not known.
    cluster : [n] int
    """

    ids: pl.Series
    groups: tuple[str, ...]
    member: FloatArray
    cluster: IntArray

    @property
    def known(self) -> IntArray:
        """Rows of images whose group is known."""
        return np.flatnonzero(self.member.sum(axis=1) > 0)


def read_images(
    database: Dataset | None, target: str | None, unknown_values: Sequence[str]
) -> Images:
    """Read whose each image of the database is; a database of one value is refused."""
    if database is None:
        raise SpecError(
            "nothing says which images are searched",
            expected="database, the images with the attribute that is looked at "
            "(--database table:images.csv --target gender)",
            found="none",
        )
    truth = instances_with_truth(database, target, {}, unknown_values)
    groups = tuple(truth["truth"].explode().drop_nulls().unique().sort().to_list())
    if truth.height and len(groups) < 2:
        raise SpecError(
            "the images are all of one value" if groups else "no image has a known value",
            expected=f"at least two values of {target or 'classes'}",
            found=", ".join(map(repr, groups)) or "none",
            where="database",
        )
    number = {name: i for i, name in enumerate(groups)}
    member = np.zeros((truth.height, len(groups)))
    for row, names in enumerate(truth["truth"].to_list()):
        for name in names or ():
            member[row, number[name]] = 1.0 / len(names)
    own = pl.col("cluster_id").fill_null(pl.format("row {}", pl.int_range(pl.len())))
    cluster = truth.select(own.rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    return Images(truth["unit_id"], groups, member, cluster)
