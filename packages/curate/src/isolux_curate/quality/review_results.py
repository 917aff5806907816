"""Import a filled review sheet: its verdicts, and an estimate for the population it was drawn from.

FHIBE searched the web for 400 of its 2,017 subjects, found 14, excluded those and estimated 3.5 %
for all; the printed ± 1.7 points match no interval of its numbers (Wald's is ± 1.8, or ± 1.6 for a
finite population). Here the interval is named, and its bounds are possible counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux.stats.proportions import wilson_interval
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_images
from isolux_curate.project.verdicts import (
    OUT,
    read_and_check_verdict_sheet,
    record_changed_verdicts,
    record_journal_note_unless_repeated,
)
from isolux_curate.quality.evidence import STEP
from isolux_curate.quality.sampling import (
    LEVEL,
    METHOD,
    SamplingDesign,
    ShareEstimate,
    estimate_stratified_population_share,
    read_sampling_design,
)

_UNITS = ("subject", "image", "instance")


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """The results of a review.

    Parameters
    ----------
    n_new_verdicts : int
        Verdicts that are new.
    n_reviewed, n_out : int
        Units that were reviewed, and of these left out.
    n_excluded_photos : int
        Photos that left by this review.
    evidence_kinds : polars.DataFrame
        By kind of evidence, where the sheet says it: ``kind, reviewed, out, share, low, high``.
    estimate : ShareEstimate, optional
        Of all units that the sample was drawn from.
    notes : tuple of str
    """

    n_new_verdicts: int
    n_reviewed: int
    n_out: int
    n_excluded_photos: int
    evidence_kinds: pl.DataFrame
    estimate: ShareEstimate | None
    notes: tuple[str, ...]


def record_review_and_estimate_share(
    project: Project,
    sheet: str | Path,
    *,
    rule: str,
    unit: Literal["subject", "image", "instance"] = "subject",
    sample: str | Path | None = None,
    kind: str | None = None,
) -> ReviewResult:
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
    verdict_rows = read_and_check_verdict_sheet(
        path, "unit", id_column="unit_id", allow_undecided=True
    )
    verdicts = verdict_rows.filter(pl.col("verdict").is_not_null())
    if verdicts.is_empty():
        raise TableError(
            "nothing was reviewed yet",
            expected="verdicts in some rows: out, or in",
            where=str(path),
        )
    n_open, notes = verdict_rows.height - verdicts.height, list[str]()
    if n_open:
        text = f"{n_open:,} of {verdict_rows.height:,} rows have no verdict yet:"
        notes.append(Caution(f"{text} nothing is decided about them."))
    design = None if sample is None else read_sampling_design(sample)
    estimate = None
    details: dict[str, object] = {}
    if design is not None:
        estimate, estimate_notes = _estimate_share_with_notes(verdicts, design, kind)
        notes += estimate_notes
        details = {"sample": _convert_estimate_to_journal_details(estimate)}
    photos_before = set(read_images(project)["image_id"])
    n_new_verdicts = 0
    for unit_kind, rows in _split_verdicts_by_unit_kind(verdicts, unit):
        refused = rows.filter(verdict=OUT).select("unit_id", "reason")
        n_new_verdicts += record_changed_verdicts(
            project, STEP, rule, refused, examined_units=rows["unit_id"], unit_kind=unit_kind
        )
    if details:
        record_journal_note_unless_repeated(project, STEP, f"{rule}: estimate", details)
    excluded_photos = photos_before - set(read_images(project)["image_id"])
    n_out = verdicts.filter(verdict=OUT).height
    return ReviewResult(
        n_new_verdicts,
        verdicts.height,
        n_out,
        len(excluded_photos),
        _count_out_by_evidence_kind(verdicts),
        estimate,
        tuple(notes),
    )


def _convert_estimate_to_journal_details(estimate: ShareEstimate) -> Mapping[str, object]:
    return {
        "population": estimate.population,
        "reviewed": estimate.n,
        "found": estimate.n_found,
        "share": round(estimate.value, 6),
        "low": round(estimate.low, 6),
        "high": round(estimate.high, 6),
        "level": LEVEL,
        "method": METHOD,
    }


def _split_verdicts_by_unit_kind(
    verdicts: pl.DataFrame, default_unit_kind: str
) -> list[tuple[str, pl.DataFrame]]:
    if "unit_kind" not in verdicts.columns:
        verdicts = verdicts.with_columns(unit_kind=pl.lit(default_unit_kind))
    rows_by_unit = [
        (str(k), rows) for (k,), rows in verdicts.group_by("unit_kind", maintain_order=True)
    ]
    for unit_kind, _ in rows_by_unit:
        if unit_kind not in _UNITS:
            raise SpecError(
                "this is not a kind of unit",
                expected=", ".join(_UNITS),
                found=repr(unit_kind),
                where="unit",
            )
    return rows_by_unit


def _estimate_share_with_notes(
    verdicts: pl.DataFrame, design: SamplingDesign, sample_type: str | None
) -> tuple[ShareEstimate, list[str]]:
    """Estimate the population's share of units that are out, by the design's strata."""
    types = design.strata["type"].unique(maintain_order=True).to_list()
    if sample_type is None and len(types) > 1:
        raise SpecError("the sample has several types", expected=f"--kind, of {', '.join(types)}")
    strata = design.strata.filter(type=sample_type or types[0])
    if strata.is_empty():
        raise SpecError(
            "the sample has no such type", expected=", ".join(types), found=str(sample_type)
        )
    rows = (
        verdicts
        if "type" not in verdicts.columns
        else verdicts.filter(pl.col("type") == (sample_type or types[0]))
    )
    stratum = (
        pl.col("stratum").cast(pl.String).fill_null("") if "stratum" in rows.columns else pl.lit("")
    )
    counts = rows.group_by(stratum=stratum).agg(
        seen=pl.len(), found=(pl.col("verdict") == OUT).sum()
    )
    strata_counts = strata.join(counts, on="stratum", how="left")
    unknown_strata = counts.join(strata, on="stratum", how="anti")
    excess_strata = strata_counts.filter(pl.col("seen") > pl.col("drawn"))
    if unknown_strata.height or excess_strata.height or strata_counts["seen"].null_count():
        raise TableError(
            "the sheet is not of this sample",
            expected="the rows of its sample.csv, by stratum",
            found=f"{verdicts.height:,} reviewed of {int(strata['drawn'].sum()):,} that were drawn",
        )
    n_missing = int((strata_counts["drawn"] - strata_counts["seen"]).sum())
    notes: list[str] = []
    if n_missing:
        notes.append(
            Caution(
                f"{n_missing:,} of {int(strata['drawn'].sum()):,} units that were drawn were not"
                " reviewed: the estimate takes the others for a random part of them."
            )
        )
    n_found, n_reviewed, population = (
        strata_counts[n].to_list() for n in ("found", "seen", "population")
    )
    return estimate_stratified_population_share(n_found, n_reviewed, population), notes


def _count_out_by_evidence_kind(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Count by kind of evidence how many reviewed units are out, with Wilson intervals."""
    schema = {
        "kind": pl.String,
        "reviewed": pl.Int64,
        "out": pl.Int64,
        "share": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
    }
    if "kinds" not in verdicts.columns:
        return pl.DataFrame(schema=schema)
    kind_rows = verdicts.select(
        "verdict", kind=pl.col("kinds").cast(pl.String).str.split(";")
    ).explode("kind")
    counts = (
        kind_rows.drop_nulls("kind")
        .group_by("kind")
        .agg(reviewed=pl.len(), out=(pl.col("verdict") == OUT).sum())
        .sort("kind")
    )
    bounds = wilson_interval(counts["out"].to_numpy(), counts["reviewed"].to_numpy(), LEVEL)
    return counts.with_columns(
        share=pl.col("out") / pl.col("reviewed"),
        low=pl.Series(bounds.low),
        high=pl.Series(bounds.high),
    ).select(pl.col(n).cast(t) for n, t in schema.items())
