"""Samples for review: how many units, which, and what some of them say of all.

A review is drawn without replacement from units that can be counted, so the more of them are seen
the less is left to chance: the variance of a share is multiplied by (N - n) / (N - 1) (Cochran
1977, "Sampling Techniques", 3rd ed., section 3.2). Wilson's interval takes that as a design effect;
of strata, the larger of two: their own variances, and those that one share for all would give, so
that strata without a single finding do not count as known.

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

from isolux.io.atomic import staged_directory, write_text
from isolux.io.csv_text import csv_text
from isolux.io.settings_files import read_mapping
from isolux.stats.proportions import wilson
from isolux.vocabulary.errors import FileError, SpecError, TableError
from isolux.vocabulary.notes import Caution
from isolux_curate.project.decisions import note, refuse_held
from isolux_curate.project.folder import Project
from isolux_curate.quality.answers import facts_of_units, units_of
from isolux_curate.user_tables import read_text

LEVEL, MARGIN, EXPECTED = 0.95, 0.05, 0.5
METHOD = "Wilson, with finite population correction"


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a finite population, 0 to 1, as a sample tells it.

    ``value, low, high``; ``found`` of ``n`` that were seen, of ``population``.
    """

    value: float
    low: float
    high: float
    found: int
    n: int
    population: int


def share_of_finite(found: Sequence[int], seen: Sequence[int], population: Sequence[int]) -> Share:
    """Estimate the share of a population that has something, from some that were drawn.

    Examples
    --------
    FHIBE's 14 of 400, drawn from 2,017 subjects: 3.5 %. It prints ± 1.7 points.

    >>> found = share_of_finite([14], [400], [2017])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.035, 0.0221, 0.055)
    """
    x, n, size = (np.asarray(given, dtype=np.float64) for given in (found, seen, population))
    if not len(n) or (n < 1).any() or (x < 0).any() or (x > n).any() or (n > size).any():
        raise SpecError(
            "these are not the counts of a sample",
            expected="found ≤ seen ≤ population, and at least one seen, in each stratum",
            found=f"{list(found)} of {list(seen)} of {list(population)}",
        )
    weight = size / size.sum()
    share = x / n
    value = float((weight * share).sum())
    total = float(n.sum())
    counts = int(x.sum()), int(total), int(size.sum())
    effect = _design_effect(weight, share, n, size)
    if effect == 0.0:  # everyone was seen
        return Share(value, value, value, *counts)
    worth = total / effect
    bounds = wilson(value * worth, worth, LEVEL)
    ends = _within_counts(float(bounds.low), float(bounds.high), counts)
    return Share(value, *ends, *counts)


def _within_counts(low: float, high: float, counts: tuple[int, int, int]) -> tuple[float, float]:
    """Keep to what was seen: nobody who was found can be undone, nor anybody who was not."""
    found, n, size = counts
    return max(low, found / size), min(high, (size - n + found) / size)


def _design_effect(weight: np.ndarray, share: np.ndarray, n: np.ndarray, size: np.ndarray) -> float:
    """Give the variance over that of as many independent units; of strata the larger of two."""
    left = np.where(size > 1, (size - n) / np.maximum(size - 1, 1), 0.0)
    value = float((weight * share).sum())
    alike = float((weight**2 * left / n).sum())
    own = 0.0
    if len(n) > 1 and 0.0 < value < 1.0:
        # Each stratum's variance without bias: (1 - n / N) p (1 - p) / (n - 1).
        spread = (1 - n / size) * share * (1 - share) / np.maximum(n - 1, 1)
        own = float((weight**2 * spread).sum()) / (value * (1 - value))
    return max(alike, own) * float(n.sum())


def size_needed(population: int, margin: float = MARGIN, expected: float = EXPECTED) -> int:
    """Find the fewest units whose interval is no wider than the margin on either side.

    Examples
    --------
    >>> size_needed(10_000), size_needed(2_017, margin=0.017, expected=0.035)
    (367, 381)
    """
    for name, given, low, high in (
        ("margin", margin, 0.0, 0.5),
        ("expected", expected, -1e-9, 1 + 1e-9),
    ):
        if not low < given < high:
            raise SpecError(
                f"{name} is out of its range",
                expected=f"above {max(low, 0):g}, below {high:g}",
                found=f"{given:g}",
                where=name,
            )
    if population < 1:
        raise SpecError("there is nothing to review", expected="one unit or more", found="none")
    n = np.arange(1, population + 1, dtype=np.float64)
    left = np.maximum(population - n, 0) / max(population - 1, 1)
    worth = n / np.maximum(left, 1e-12)
    bounds = wilson(expected * worth, worth, LEVEL)
    enough = (bounds.high - bounds.low) / 2 <= margin
    enough[-1] = True  # everyone: nothing is left to chance
    return int(np.argmax(enough)) + 1


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
            "there is no sample",
            expected=f"a folder with {DESIGN}",
            where=str(folder),
            hint="`isolux curate sample` makes one",
        )
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


STEP = "quality"
_COLUMNS = ("type", "unit_id", "image_id", "stratum", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was drawn: the sheet's rows, the design, and what is to be known of it."""

    sheet: pl.DataFrame
    design: Design
    notes: tuple[str, ...]


def draw_sample(
    project: Project,
    out: str | Path,
    *,
    of: Sequence[str] = (),
    table: str | Path | None = None,
    by: Sequence[str] = (),
    margin: float = MARGIN,
    expected: float = EXPECTED,
    size: int | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Sampled:
    """Draw units for review, and write ``sample.csv`` and ``design.json``.

    Parameters
    ----------
    project : Project
        An open project.
    out : str or Path
        The folder to write.
    of : sequence of str
        What is drawn, each type separately: subject, image, instance, or a stage of annotation.
    table : str, optional
        Draw from the column unit_id of a table in place of the project's units.
    by : sequence of str
        Facts (or the table's columns) whose values are strata, each drawn from in proportion.
    margin : float
        Half the width of the interval of a share, 0 to 1: the sample is as large as it needs.
    expected : float
        The share that is expected, 0 to 1; .5 needs most.
    size : int, optional
        How many of each type, in place of a margin.
    seed : int
        The same seed draws the same units.
    overwrite : bool
        Replace an earlier sample.
    """
    refuse_held(project)
    if bool(of) == (table is not None):
        raise SpecError(
            "what is to be drawn is not said, or twice", expected="--of TYPE, or --table FILE"
        )
    if size is not None and size < 1:
        raise SpecError("a sample of no units is none", expected="1 or more", found=str(size))
    found = (
        {"table": _of_table(Path(str(table)), by)}
        if table is not None
        else {kind: _with_strata(project, units_of(project, kind), by) for kind in of}
    )
    sheets: list[pl.DataFrame] = []
    strata: list[pl.DataFrame] = []
    notes: list[str] = []
    for kind, units in found.items():
        if units.is_empty():
            raise SpecError(
                f"there is no {kind} to review",
                expected="units that stand",
                found="none",
                where=str(project.folder),
            )
        n = size if size is not None else size_needed(units.height, margin, expected)
        drawn = draw(units, kind, n, seed).with_columns(type=pl.lit(kind))
        sheets.append(drawn)
        counted = (
            units.group_by("stratum")
            .agg(population=pl.len())
            .join(drawn.group_by("stratum").agg(drawn=pl.len()), on="stratum")
        )
        strata.append(counted.with_columns(type=pl.lit(kind)).sort("stratum"))
        if size is not None and size > units.height:
            notes.append(
                Caution(f"{kind}: {size:,} were requested, but there are only {units.height:,}.")
            )
    settings: dict[str, Any] = {"seed": seed, "by": list(by), "level": LEVEL}
    settings |= {"size": size} if size is not None else {"margin": margin, "expected": expected}
    table_of = pl.concat(strata).select(
        "type", "stratum", *(pl.col(c).cast(pl.Int64) for c in ("population", "drawn"))
    )
    design = Design(table_of, settings)
    sheet = pl.concat(sheets, how="diagonal").with_columns(
        verdict=pl.lit(None, dtype=pl.String), reason=pl.lit(None, dtype=pl.String)
    )
    sheet = sheet.select(_COLUMNS)
    with staged_directory(out, overwrite=overwrite, marks=(DESIGN,), what="sample") as stage:
        write_text(stage / SHEET, csv_text(sheet))
        write_text(stage / DESIGN, design.text())
    for (kind,), rows in table_of.group_by("type", maintain_order=True):
        counts = {c: int(rows[c].sum()) for c in ("population", "drawn")}
        note(project, STEP, f"sample of {kind}", settings | counts | {"strata": rows.height})
    return Sampled(sheet, design, tuple(notes))


def _with_strata(project: Project, units: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    facts = facts_of_units(project, by)
    held = units.join(facts, on="unit_id", how="left", maintain_order="left")
    return held.select("unit_id", "image_id", stratum=_stratum(by))


def _stratum(by: Sequence[str]) -> pl.Expr:
    """Name the stratum; what is not known is one of its own."""
    if not by:
        return pl.lit("")
    return pl.concat_str([pl.col(n).fill_null("(not said)") for n in by], separator=" | ")


def _of_table(path: Path, by: Sequence[str]) -> pl.DataFrame:
    text = read_text(path, "unit_id", *by)
    if text["unit_id"].null_count() or text["unit_id"].is_duplicated().any():
        raise TableError(
            "a unit is listed twice, or is not named", expected="one row a unit", where=str(path)
        )
    image = pl.col("image_id") if "image_id" in text.columns else pl.lit(None, pl.String)
    return text.select("unit_id", image_id=image, stratum=_stratum(by))
