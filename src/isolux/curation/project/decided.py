"""Verdicts that people wrote into a table: reviews, withdrawals of a vendor, second looks."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.curation.project.decisions import IN, OUT, decide
from isolux.curation.project.folder import Project
from isolux.io.cells import as_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import TableError, UnknownNameError, place

__all__ = ["decide_by_sheet", "read_verdicts"]


def decide_by_sheet(
    project: Project, sheet: str | Path, *, step: str, rule: str, unit_kind: str = "image"
) -> int:
    """Write the verdicts of a table."""
    said = read_verdicts(sheet, unit_kind)
    refused = said.filter(verdict=OUT).select("unit_id", "reason")
    return decide(project, step, rule, refused, looked_at=said["unit_id"], unit_kind=unit_kind)


def read_verdicts(
    sheet: str | Path, unit_kind: str = "image", *, key: str | None = None, open_too: bool = False
) -> pl.DataFrame:
    """Read a table of verdicts, and refuse what is none."""
    path = Path(sheet).expanduser()
    frame = read_table(path)
    key = key or f"{unit_kind}_id"
    for name in (key, "verdict", "reason"):
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=str(path))
    said = frame.with_columns(as_text(frame[n]).alias(n) for n in (key, "verdict", "reason"))
    said = said.with_columns(pl.col("verdict").str.to_lowercase().str.strip_chars())
    out, empty = pl.col("verdict") == OUT, pl.col("verdict").is_null()
    for wrong, problem, expected in (
        (~pl.col("verdict").is_in([OUT, IN]) | (empty if not open_too else False),
         "this is not a verdict", "out or in"),
        (out & pl.col("reason").is_null(), "a photo is left out without a reason",
         "why, in words for the person who sent it"),
        (pl.col(key).is_duplicated() | pl.col(key).is_null(),
         "a unit is listed twice, or is not named", f"one row a {unit_kind}"),
    ):  # fmt: skip
        rows = said.with_row_index("row", 1).filter(wrong)
        if rows.height:
            raise TableError(
                problem, expected=expected, found=repr(rows["verdict"][0]),
                where=place(str(path), int(rows["row"][0])),
            )  # fmt: skip
    return said.rename({key: "unit_id"}) if key != "unit_id" else said
