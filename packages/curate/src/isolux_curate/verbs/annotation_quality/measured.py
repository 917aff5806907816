"""Units' likeness, audited, of all units or of a sample that specialists looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.annotation.stages import STAGES
from isolux_curate.quality.agreement import METRICS
from isolux_curate.quality.answers import Answers
from isolux_curate.quality.sampling import SHEET, read_design

_OF_SHEET = ("type", "unit_id", "stratum")


def drawn_units(sample: str | Path, units: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Give each unit that was drawn its stratum, and how many there are; tell who is missing."""
    design = read_design(sample)
    sheet = read_table(Path(sample) / SHEET).cast(dict.fromkeys(_OF_SHEET, pl.String))
    drawn = sheet.select(sampled="type", unit="unit_id", stratum="stratum").fill_null("")
    types = drawn["sampled"].unique().to_list()
    named = {one: _sampled_as(one, types) for one in units["type"].unique()}
    sampled = pl.col("type").replace_strict(named, return_dtype=pl.String)
    at = units.select("type", "unit").unique().with_columns(sampled=sampled)
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
    stage = next((s.name for s in STAGES.values() if name in s.choices), None)
    stage = "masks" if name.startswith("mask: ") else stage or name
    for one in (stage, "instance", "image"):
        if one in sampled:
            return one
    raise SpecError(
        f"no sample of {name!r} was drawn",
        expected=" or ".join(sampled),
        found=stage,
        where="sample",
        hint=f"isolux curate sample … --of {stage}",
    )


MARK = "quality.json"
MET, MISSED, OPEN = "met", "missed", "open"
DENSE = 0.9  # FHIBE, Methods, "Annotation QA"


@dataclass(frozen=True, slots=True)
class Quality:
    """How good annotations are.

    Parameters
    ----------
    types : polars.DataFrame
        One row a type and part: ``type, part`` (specialists, intra-vendor, inter-vendor),
        ``vendor`` (null: all), ``metric`` (IoU, OKS, Dice, Jaccard), ``units, pairs, value, low,
        high`` (0 to 1), ``method``, ``threshold`` (null: none), ``verdict`` (met: the whole
        interval lies above the threshold; missed: below; open: it holds it; null), ``reason``.
    groups : polars.DataFrame
        One row a type, part and group of people: ``attribute, group, units, value, low, high,
        difference, difference_low, difference_high, p_adjusted`` (the group minus everyone),
        ``status, reason``.
    units : polars.DataFrame
        ``type, part, vendor, unit, value, pairs``: what each unit says.
    settings : mapping
    notes : tuple of str
    """

    types: pl.DataFrame
    groups: pl.DataFrame
    units: pl.DataFrame
    settings: Mapping[str, Any]
    notes: tuple[str, ...]

    def write(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``types.csv``, ``groups.csv``, ``units.csv`` and ``quality.json``."""
        from isolux_curate.table_folder import write_tables

        tables = {name: getattr(self, name) for name in ("types", "groups", "units")}
        told = {"settings": dict(self.settings), "notes": list(self.notes)}
        return write_tables(
            out, tables, told, mark=MARK, what="quality folder", overwrite=overwrite
        )


_TYPES = {
    "type": pl.String,
    "part": pl.String,
    "vendor": pl.String,
    "metric": pl.String,
    "units": pl.Int64,
    "pairs": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "method": pl.String,
    "threshold": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
}
_GROUPS = {
    "type": pl.String,
    "part": pl.String,
    "vendor": pl.String,
    "attribute": pl.String,
    "group": pl.String,
    "units": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "difference": pl.Float64,
    "difference_low": pl.Float64,
    "difference_high": pl.Float64,
    "p_adjusted": pl.Float64,
    "status": pl.String,
    "reason": pl.String,
}


def measured(
    units: pl.DataFrame,
    read: Mapping[str, Answers],
    threshold: Any,
    facts: pl.DataFrame,
    drawn: pl.DataFrame | None,
    by: Sequence[str],
    settings: Mapping[str, Any],
    notes: list[str],
) -> Quality:
    """Audit each type and part, and hold it against its threshold."""
    types: list[dict[str, Any]] = []
    groups: list[pl.DataFrame] = []
    keys = ["type", "part", "vendor"]
    for (name, part, vendor), one in units.group_by(keys, maintain_order=True):
        kind = read[str(name)].kind
        held = one.join(facts, on="unit", how="left", maintain_order="left")
        if drawn is not None:
            held = held.join(drawn.filter(type=name), on="unit", maintain_order="left")
        if held.is_empty():
            continue
        by_metric, compared, said = _audited(held, by, drawn is not None)
        notes += [f"{name}: {note}" for note in said]
        row = by_metric.filter(pl.col("attribute").is_null()).row(0, named=True)
        wanted = threshold(kind, str(part))
        types.append(
            {
                "type": name,
                "part": part,
                "vendor": vendor,
                "metric": METRICS[kind],
                "units": row["n_units"],
                "pairs": int(held["pairs"].sum()),
                "threshold": wanted,
                "verdict": _verdict(row, wanted),
            }
            | {k: row[k] for k in ("value", "low", "high", "method", "reason")}
        )
        groups.append(
            _of_groups(by_metric, compared, {"type": name, "part": part, "vendor": vendor})
        )
    table = pl.DataFrame(types, schema=_TYPES).sort("type", "part", "vendor", maintain_order=True)
    by_group = pl.concat(groups) if groups and by else pl.DataFrame(schema=_GROUPS)
    listed = units.select("type", "part", "vendor", "unit", "value", "pairs")
    return Quality(
        table, by_group, listed, {"by": list(by), **settings}, tuple(dict.fromkeys(notes))
    )


def _audited(
    held: pl.DataFrame, by: Sequence[str], with_design: bool
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Measure one type: everyone, and groups; the design of a sample in place of clusters."""
    from isolux.verbs.audit import audit  # here, as every `isolux curate` reads this file

    asked = [name for name in by if held[name].drop_nulls().n_unique() > 1]
    scores = held.select(unit_id="unit", metric=pl.lit("likeness"), value="value")
    people = held.select(unit_id="unit", **{n: pl.col(n) for n in asked})
    settings: dict[str, Any] = {}
    if with_design:
        people = people.hstack(held.select("weight", "stratum", "population"))
        settings = {"weight": "weight", "population_size": "population"}
        if held["stratum"].n_unique() > 1:
            settings["strata"] = "stratum"
    else:
        scores = scores.with_columns(cluster_id=pl.coalesce(held["cluster"], held["unit"]))
    if not asked:
        people = people.with_columns(_all=pl.lit("all"))
    run = audit(scores, people, by=asked or ["_all"], **settings).run
    kept = run.group_metrics.filter(pl.col("attribute").is_null() | (pl.col("attribute") != "_all"))
    missing = [n for n in by if held[n].null_count()]
    told: list[str] = [
        Caution(
            f"{held[n].null_count():,} of {held.height:,} units have no {n!r}: they are in no"
            " group."
        )
        for n in missing
    ]
    return kept, run.disparities, told


def _verdict(row: Mapping[str, Any], threshold: float | None) -> str | None:
    if threshold is None:
        return None
    if row["low"] is None or row["high"] is None:
        return OPEN
    return MET if row["low"] > threshold else MISSED if row["high"] < threshold else OPEN


def _of_groups(
    measured: pl.DataFrame, compared: pl.DataFrame, named: Mapping[str, Any]
) -> pl.DataFrame:
    difference = compared.filter(kind="difference_to_overall").select(
        "attribute",
        "p_adjusted",
        group="group_a",
        difference="value",
        difference_low="low",
        difference_high="high",
    )
    rows = measured.filter(pl.col("attribute").is_not_null()).rename({"n_units": "units"})
    joined = rows.join(difference, on=["attribute", "group"], how="left", maintain_order="left")
    held = joined.with_columns(pl.lit(v, dtype=pl.String).alias(k) for k, v in named.items())
    return held.select(pl.col(n).cast(t) for n, t in _GROUPS.items())
