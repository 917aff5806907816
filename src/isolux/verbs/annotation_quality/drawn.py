"""The sample that specialists looked at: each unit's stratum, and how many units there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution


def drawn_units(sample: str | Path, units: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Give each unit that was drawn its stratum, and how many there are; tell who is missing."""
    from isolux.curation.quality.sampling import SHEET, read_design
    from isolux.io.frames import read_table

    design = read_design(sample)
    sheet = read_table(Path(sample) / SHEET)
    place = {
        name: sheet[name].cast(pl.String).fill_null("") for name in ("type", "unit_id", "stratum")
    }
    drawn = pl.DataFrame(
        {"sampled": place["type"], "unit": place["unit_id"], "stratum": place["stratum"]}
    )
    named = {
        one: _sampled_as(one, drawn["sampled"].unique().to_list()) for one in units["type"].unique()
    }
    at = (
        units.select("type", "unit")
        .unique()
        .with_columns(sampled=pl.col("type").replace_strict(named, return_dtype=pl.String))
    )
    held = at.join(drawn, on=["sampled", "unit"]).join(
        design.strata.select("stratum", "population", "drawn", sampled="type"),
        on=["sampled", "stratum"],
    )
    notes: list[str] = []
    for name in sorted(named):
        wanted = drawn.filter(sampled=named[name]).height
        answered = held.filter(type=name).height
        if answered < wanted:
            notes.append(
                Caution(
                    f"{name}: specialists answered {answered:,} of the {wanted:,} units that were"
                    " drawn. The interval takes those for a random part of them."
                )
            )
        more = at.filter(type=name).height - answered
        if more:
            notes.append(f"{name}: {more:,} units that were not drawn are passed over.")
    counted = pl.len().over("type", "stratum")
    return held.with_columns(weight=pl.col("population") / counted).select(
        "type", "unit", "stratum", "population", "weight"
    ), notes


def _sampled_as(name: str, sampled: Sequence[str]) -> str:
    """Find the type under which units of a question were drawn: its stage, or people at large."""
    from isolux.curation.annotation import STAGES

    stage = next((s.name for s in STAGES.values() if name in s.choices), None)
    stage = "masks" if name.startswith("mask: ") else stage or name
    for one in (stage, "instance", "image"):
        if one in sampled:
            return one
    raise SpecError(
        f"no sample of {name!r} was drawn", expected=" or ".join(sampled), found=stage,
        where="sample", hint=f"isolux curate sample … --of {stage}",
    )  # fmt: skip
