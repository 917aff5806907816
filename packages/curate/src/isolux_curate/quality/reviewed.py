"""A sheet that people filled: their verdicts, and what they say of everything there is.

FHIBE looked for 400 of its 2,017 subjects on the web, found 14, took those out and estimated 3.5 %
for all; the ± 1.7 points beside it are of no interval that its numbers give (Wald's is ± 1.8, or
± 1.6 for a finite population). Here the interval is named, and keeps to counts that are possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.stats.proportions import wilson
from isolux.vocabulary.errors import SpecError, TableError
from isolux.vocabulary.notes import Caution
from isolux_curate.project.decisions import OUT, decide, note, read_verdicts
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import read_images
from isolux_curate.quality.evidence import STEP
from isolux_curate.quality.sampling import (
    LEVEL,
    METHOD,
    Design,
    Share,
    read_design,
    share_of_finite,
)

_UNITS = ("subject", "image", "instance")


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a review said.

    Parameters
    ----------
    new : int
        Verdicts that are new.
    looked_at, out : int
        Units that were reviewed, and of these left out.
    photos : int
        Photos that left by this review.
    kinds : polars.DataFrame
        By kind of evidence, where the sheet says it: ``kind, reviewed, out, share, low, high``.
    estimate : Share, optional
        Of all units that the sample was drawn from.
    notes : tuple of str
    """

    new: int
    looked_at: int
    out: int
    photos: int
    kinds: pl.DataFrame
    estimate: Share | None
    notes: tuple[str, ...]


def bring_review(
    project: Project,
    sheet: str | Path,
    *,
    rule: str,
    unit: Literal["subject", "image", "instance"] = "subject",
    sample: str | Path | None = None,
    kind: str | None = None,
) -> Reviewed:
    """Write the verdicts of a filled sheet, and estimate from a sample.

    Parameters
    ----------
    project : Project
        An open project.
    sheet : str or Path
        The sheet.
    rule : str
        The question that was reviewed, as named in the funnel, such as found online.
    unit : {"subject", "image", "instance"}
        What the decision is about, if the sheet has no unit_kind; with a subject go their photos.
    sample : str, optional
        The folder of the sample that the sheet belongs to.
    kind : str, optional
        The type of the sample, if it has several.
    """
    path = Path(sheet).expanduser()
    whole = read_verdicts(path, "unit", key="unit_id", open_too=True)
    said = whole.filter(pl.col("verdict").is_not_null())
    if said.is_empty():
        raise TableError(
            "nothing was reviewed yet",
            expected="verdicts in some rows: out, or in",
            where=str(path),
        )
    n_open, notes = whole.height - said.height, list[str]()
    if n_open:
        words = f"{n_open:,} of {whole.height:,} rows have no verdict yet: nothing is decided about"
        notes.append(Caution(f"{words} them."))
    design = None if sample is None else read_design(sample)
    estimate = None
    told: dict[str, object] = {}
    if design is not None:
        estimate, more = _estimate(said, design, kind)
        notes += more
        told = {"sample": _told(estimate)}
    before = set(read_images(project)["image_id"])
    new = 0
    for one, rows in _by_unit(said, unit):
        refused = rows.filter(verdict=OUT).select("unit_id", "reason")
        new += decide(project, STEP, rule, refused, looked_at=rows["unit_id"], unit_kind=one)
    if told:
        note(project, STEP, f"{rule}: estimate", told)
    left = before - set(read_images(project)["image_id"])
    out = said.filter(verdict=OUT).height
    return Reviewed(new, said.height, out, len(left), _by_kind(said), estimate, tuple(notes))


def _told(estimate: Share) -> Mapping[str, object]:
    return {
        "population": estimate.population,
        "reviewed": estimate.n,
        "found": estimate.found,
        "share": round(estimate.value, 6),
        "low": round(estimate.low, 6),
        "high": round(estimate.high, 6),
        "level": LEVEL,
        "method": METHOD,
    }


def _by_unit(said: pl.DataFrame, unit: str) -> list[tuple[str, pl.DataFrame]]:
    if "unit_kind" not in said.columns:
        said = said.with_columns(unit_kind=pl.lit(unit))
    found = [(str(k), rows) for (k,), rows in said.group_by("unit_kind", maintain_order=True)]
    for one, _ in found:
        if one not in _UNITS:
            raise SpecError(
                "this is not a kind of unit",
                expected=", ".join(_UNITS),
                found=repr(one),
                where="unit",
            )
    return found


def _estimate(said: pl.DataFrame, design: Design, kind: str | None) -> tuple[Share, list[str]]:
    """Estimate the share of all that were drawn from; strata are those of the design."""
    types = design.strata["type"].unique(maintain_order=True).to_list()
    if kind is None and len(types) > 1:
        raise SpecError("the sample has several types", expected=f"--kind, of {', '.join(types)}")
    strata = design.strata.filter(type=kind or types[0])
    if strata.is_empty():
        raise SpecError("the sample has no such type", expected=", ".join(types), found=str(kind))
    rows = said if "type" not in said.columns else said.filter(pl.col("type") == (kind or types[0]))
    stratum = (
        pl.col("stratum").cast(pl.String).fill_null("") if "stratum" in rows.columns else pl.lit("")
    )
    counted = rows.group_by(stratum=stratum).agg(
        seen=pl.len(), found=(pl.col("verdict") == OUT).sum()
    )
    held = strata.join(counted, on="stratum", how="left")
    strange = counted.join(strata, on="stratum", how="anti")
    over = held.filter(pl.col("seen") > pl.col("drawn"))
    if strange.height or over.height or held["seen"].null_count():
        raise TableError(
            "the sheet is not of this sample",
            expected="the rows of its sample.csv, by stratum",
            found=f"{said.height:,} reviewed of {int(strata['drawn'].sum()):,} that were drawn",
        )
    missing = int((held["drawn"] - held["seen"]).sum())
    notes: list[str] = []
    if missing:
        notes.append(
            Caution(
                f"{missing:,} of {int(strata['drawn'].sum()):,} units that were drawn were not"
                " reviewed: the estimate takes the others for a random part of them."
            )
        )
    found, seen, population = (held[n].to_list() for n in ("found", "seen", "population"))
    return share_of_finite(found, seen, population), notes


def _by_kind(said: pl.DataFrame) -> pl.DataFrame:
    """Tell how often each kind of evidence was right."""
    schema = {
        "kind": pl.String,
        "reviewed": pl.Int64,
        "out": pl.Int64,
        "share": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    if "kinds" not in said.columns:
        return pl.DataFrame(schema=schema)
    each = said.select("verdict", kind=pl.col("kinds").cast(pl.String).str.split(";")).explode(
        "kind"
    )
    counted = (
        each.drop_nulls("kind")
        .group_by("kind")
        .agg(reviewed=pl.len(), out=(pl.col("verdict") == OUT).sum())
        .sort("kind")
    )
    bounds = wilson(counted["out"].to_numpy(), counted["reviewed"].to_numpy(), LEVEL)
    return counted.with_columns(
        share=pl.col("out") / pl.col("reviewed"),
        low=pl.Series(bounds.low),
        high=pl.Series(bounds.high),
    ).select(pl.col(n).cast(t) for n, t in schema.items())
