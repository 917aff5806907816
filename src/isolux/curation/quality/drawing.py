"""Which units are reviewed: drawn by a seed, stratum by stratum, with the design written down.

A unit's place in the draw is the hash of the seed, the type and its id: the same seed draws the
same units whatever order they come in, and a larger sample holds the smaller one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import FileError, SpecError, TableError

__all__ = ["DESIGN", "SHEET", "Design", "allocated", "draw", "read_design"]

SHEET, DESIGN = "sample.csv", "design.json"
_FEWEST = 2  # of a stratum: one alone has no variance
_STRATUM = ("type", "stratum", "population", "drawn")


@dataclass(frozen=True, slots=True)
class Design:
    """How a sample was drawn.

    Parameters
    ----------
    strata : polars.DataFrame
        ``type, stratum, population, drawn``: units that there are, and that were drawn.
    settings : mapping
        ``seed``, ``by``, and ``margin, expected, level`` or ``size``.
    """

    strata: pl.DataFrame
    settings: Mapping[str, Any]

    def text(self) -> str:
        """Write it as JSON."""
        told = {"settings": dict(self.settings), "strata": self.strata.to_dicts()}
        return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def draw(units: pl.DataFrame, kind: str, size: int, seed: int) -> pl.DataFrame:
    """Draw units of one type, from each stratum in proportion to its size.

    Examples
    --------
    >>> units = pl.DataFrame({"unit_id": list("abcdefgh"), "stratum": ["x"] * 6 + ["y"] * 2})
    >>> draw(units, "boxes", 4, 0)["stratum"].to_list()
    ['x', 'x', 'y', 'y']
    """
    if units["unit_id"].is_duplicated().any():
        raise TableError("a unit is listed twice", expected="each unit once", where=kind)
    place = [_place(seed, kind, unit) for unit in units["unit_id"]]
    sizes = units.group_by("stratum").agg(population=pl.len()).sort("stratum")
    wanted = sizes.with_columns(drawn=pl.Series(allocated(sizes["population"].to_list(), size)))
    return (
        units.with_columns(_place=pl.Series(place, dtype=pl.String))
        .sort("stratum", "_place")
        .join(wanted, on="stratum", how="left", maintain_order="left")
        .filter(pl.int_range(pl.len()).over("stratum") < pl.col("drawn"))
        .select(units.columns)
        .sort("stratum", "unit_id")
    )


def _place(seed: int, kind: str, unit: str) -> str:
    return hashlib.sha256(f"{seed}\x00{kind}\x00{unit}".encode()).hexdigest()


def allocated(population: Sequence[int], size: int) -> list[int]:
    """Share a sample among strata by their sizes (largest remainders), two of each at least.

    Examples
    --------
    >>> allocated([700, 290, 10, 1], 100)
    [69, 28, 2, 1]
    """
    have = np.asarray(population, dtype=np.int64)
    total = int(have.sum())
    size = min(size, total)
    least = np.minimum(have, _FEWEST)
    exact = size * have / max(total, 1)
    given = np.maximum(np.floor(exact).astype(np.int64), least)
    given = np.minimum(given, have)
    order = np.argsort(-(exact - np.floor(exact)), kind="stable")
    while given.sum() < size:
        for k in order:
            if given.sum() < size and given[k] < have[k]:
                given[k] += 1
    while given.sum() > size and (given > least).any():
        k = int(np.argmax(np.where(given > least, given - exact, -np.inf)))
        given[k] -= 1
    return [int(n) for n in given]


def read_design(folder: str | Path) -> Design:
    """Read the design that a sample was drawn by."""
    path = Path(folder).expanduser() / DESIGN
    if not path.is_file():
        raise FileError(
            "there is no sample", expected=f"a folder with {DESIGN}", where=str(folder),
            hint="`isolux curate sample` makes one",
        )  # fmt: skip
    told = read_mapping(path)
    rows = told.get("strata")
    whole = isinstance(rows, list) and all(
        isinstance(row, Mapping) and set(_STRATUM) <= set(row) for row in rows
    )
    if not whole or not rows:
        raise SpecError(
            "this is not the design of a sample", expected=", ".join(_STRATUM), where=str(path)
        )
    kinds = {"type": pl.String, "stratum": pl.String, "population": pl.Int64, "drawn": pl.Int64}
    strata = pl.DataFrame([{name: row[name] for name in _STRATUM} for row in rows], schema=kinds)
    return Design(strata, dict(told.get("settings") or {}))
