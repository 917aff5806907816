"""On whom a threshold is set: a value of an attribute, or a random share of the clusters."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

__all__ = ["having", "part_to_set_on"]


def part_to_set_on(
    threshold_on: float | str, dataset: Dataset, units: pl.DataFrame, seed: int
) -> tuple[npt.NDArray[np.bool_], str]:
    """Tell who sets the threshold, and what they are called.

    Returns [n].
    """
    on, words = _part(threshold_on, dataset, units, seed)
    if on.all() or not on.any():
        raise SpecError(
            "threshold_on must leave people on either side",
            expected="some to set the threshold on, and others to audit",
            found=f"{'everyone' if on.all() else 'no one'} to set it on ({words})",
        )
    return on, words


def _part(
    threshold_on: float | str, dataset: Dataset, units: pl.DataFrame, seed: int
) -> tuple[npt.NDArray[np.bool_], str]:
    share = _number(str(threshold_on))
    if 0.0 < share < 1.0:
        clusters = pl.coalesce("cluster_id", pl.col("unit_id"))
        code = units.select(clusters.rank("dense")).to_series().to_numpy().astype(np.int64) - 1
        drawn = np.random.default_rng(seed).random(int(code.max(initial=0)) + 1) < share
        return drawn[code], f"a random {100 * share:g} % (seed {seed})"
    on, words = having(
        str(threshold_on), dataset, units["unit_id"], setting="threshold_on",
        expected="ATTRIBUTE=VALUE, such as split=val, or a share such as 0.3",
    )  # fmt: skip
    name, _, value = words.partition("=")
    rows = dataset.instance_attributes().filter(pl.col("attribute") == name)
    several = rows.drop_nulls("value").group_by("unit_id").agg(pl.col("value").unique())
    torn = several.filter(pl.col("value").list.len() > 1)["unit_id"]
    both = units.filter(pl.Series(on) & pl.col("unit_id").is_in(torn.implode()))["unit_id"]
    if len(both):
        raise SpecError(
            f"{len(both):,} people have other values of {name!r} beside {value!r}",
            expected="one value each: people set the threshold, or are judged",
            found=f"{both[0]!r} has several",
            where="threshold_on",
        )
    return on, words


def having(
    text: str, dataset: Dataset, unit_ids: pl.Series, *, setting: str, expected: str
) -> tuple[npt.NDArray[np.bool_], str]:
    """Tell who has the value of an attribute that a setting ``ATTRIBUTE=VALUE`` names.

    Returns [n].
    """
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        raise SpecError(f"{setting} cannot be used", expected=expected, found=repr(text))
    rows = dataset.values_of(name)
    known = rows["value"].drop_nulls().unique().sort().to_list()
    if value not in known:
        raise SpecError(
            f"nobody has {name}={value}",
            expected="one of " + ", ".join(map(repr, known[:20])),
            found=repr(value),
            where=setting,
        )
    held = dataset.instance_attributes().filter(attribute=name, value=value)["unit_id"]
    return unit_ids.is_in(held.unique().implode()).to_numpy(), f"{name}={value}"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
