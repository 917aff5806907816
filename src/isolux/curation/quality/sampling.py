"""Samples for review: drawn from what stands, written with the sheet that a person fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.curation.project import Project, note, refuse_held
from isolux.curation.quality.drawing import DESIGN, SHEET, Design, draw
from isolux.curation.quality.sizes import EXPECTED, LEVEL, MARGIN, size_needed
from isolux.curation.quality.units import facts_of_units, units_of
from isolux.io.atomic import staged_directory, write_text
from isolux.io.cells import as_text
from isolux.io.csv_text import csv_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError
from isolux.vocabulary.notes import Caution

__all__ = ["Sampled", "draw_sample"]

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
    level: float = LEVEL,
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
    level : float
        The interval's confidence.
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
            raise SpecError(f"there is no {kind} to review", expected="units that stand",
                            found="none", where=str(project.folder))  # fmt: skip
        n = size if size is not None else size_needed(units.height, margin, expected, level)
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
    settings: dict[str, Any] = {"seed": seed, "by": list(by), "level": level}
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
    frame = read_table(path.expanduser())
    for name in ("unit_id", *by):
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=str(path))
    text = frame.select(as_text(frame[n]).alias(n) for n in dict.fromkeys(("unit_id", *by)))
    if text["unit_id"].null_count() or text["unit_id"].is_duplicated().any():
        raise TableError("a unit is listed twice, or is not named", expected="one row a unit",
                         where=str(path))  # fmt: skip
    image = as_text(frame["image_id"]) if "image_id" in frame.columns else pl.lit(None, pl.String)
    return text.with_columns(image_id=image).select("unit_id", "image_id", stratum=_stratum(by))
