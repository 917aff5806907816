"""Audit units' similarity, of all units or of a sample that specialists answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.io.frames import read_table
from isolux_curate.annotation.stages import STAGES
from isolux_curate.quality.agreement import METRICS
from isolux_curate.quality.sampling import SHEET_FILE, read_sampling_design
from isolux_curate.quality.typed_answers import TypedAnswers

_SHEET_COLUMNS = ("type", "unit_id", "stratum")


def read_weights_of_sampled_units(
    sample_folder: str | Path, answered_units: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
    """Read stratum, population and weight of each sampled unit; notes on missing and other ones."""
    design = read_sampling_design(sample_folder)
    sheet = read_table(Path(sample_folder) / SHEET_FILE).cast(
        dict.fromkeys(_SHEET_COLUMNS, pl.String)
    )
    sheet_units = sheet.select(sampled="type", unit="unit_id", stratum="stratum").fill_null("")
    types = sheet_units["sampled"].unique().to_list()
    sampled_type_by_type = {
        type_name: _find_sampled_type(type_name, types)
        for type_name in answered_units["type"].unique()
    }
    sampled_type = pl.col("type").replace_strict(sampled_type_by_type, return_dtype=pl.String)
    unit_types = answered_units.select("type", "unit").unique().with_columns(sampled=sampled_type)
    matched_units = unit_types.join(sheet_units, on=["sampled", "unit"]).join(
        design.strata.select("stratum", "population", "drawn", sampled="type"),
        on=["sampled", "stratum"],
    )
    notes: list[str] = []
    for name in sorted(sampled_type_by_type):
        n_sampled = sheet_units.filter(sampled=sampled_type_by_type[name]).height
        answered = matched_units.filter(type=name).height
        if answered < n_sampled:
            notes.append(
                Caution(
                    f"{name}: specialists answered {answered:,} of the {n_sampled:,} units that"
                    " were"
                    " drawn. The interval takes those for a random part of them."
                )
            )
        n_ignored = unit_types.filter(type=name).height - answered
        if n_ignored:
            notes.append(f"{name}: {n_ignored:,} units that were not drawn are passed over.")
    n_answered = pl.len().over("type", "stratum")
    return matched_units.with_columns(weight=pl.col("population") / n_answered).select(
        "type", "unit", "stratum", "population", "weight"
    ), notes


def _find_sampled_type(answer_type: str, sampled_types: Sequence[str]) -> str:
    """Find the type under which a question's units were sampled: its stage, instance or image."""
    stage = next((s.name for s in STAGES.values() if answer_type in s.choices), None)
    stage = "masks" if answer_type.startswith("mask: ") else stage or answer_type
    for candidate in (stage, "instance", "image"):
        if candidate in sampled_types:
            return candidate
    raise SpecError(
        f"no sample of {answer_type!r} was drawn",
        expected=" or ".join(sampled_types),
        found=stage,
        where="sample",
        hint=f"isolux curate sample … --type {stage}",
    )


QUALITY_FILE = "quality.json"
THRESHOLD_MET, THRESHOLD_MISSED, UNDECIDED = "met", "missed", "open"
DENSE_THRESHOLD = 0.9  # FHIBE, Methods, "Annotation QA"


@dataclass(frozen=True, slots=True)
class AnnotationQuality:
    """The quality of annotations.

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

    def write(self, out_dir: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``types.csv``, ``groups.csv``, ``units.csv`` and ``quality.json``."""
        from isolux_curate.table_folder import write_csv_tables_and_record

        tables = {name: getattr(self, name) for name in ("types", "groups", "units")}
        record = {"settings": dict(self.settings), "notes": list(self.notes)}
        return write_csv_tables_and_record(
            out_dir,
            tables,
            record,
            record_file=QUALITY_FILE,
            folder_kind="quality folder",
            overwrite=overwrite,
        )


_TYPE_SCHEMA = {
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
_GROUP_SCHEMA = {
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


def audit_quality_by_type(
    units: pl.DataFrame,
    answers_by_type: Mapping[str, TypedAnswers],
    choose_threshold: Any,
    facts: pl.DataFrame,
    sampled_units: pl.DataFrame | None,
    group_columns: Sequence[str],
    settings: Mapping[str, Any],
    notes: list[str],
) -> AnnotationQuality:
    """Audit each type and comparison, and compare it with its threshold."""
    types: list[dict[str, Any]] = []
    groups: list[pl.DataFrame] = []
    keys = ["type", "part", "vendor"]
    for (name, comparison, vendor), unit_rows in units.group_by(keys, maintain_order=True):
        answer_type = answers_by_type[str(name)].answer_type
        scored_units = unit_rows.join(facts, on="unit", how="left", maintain_order="left")
        if sampled_units is not None:
            scored_units = scored_units.join(
                sampled_units.filter(type=name), on="unit", maintain_order="left"
            )
        if scored_units.is_empty():
            continue
        by_metric, compared, audit_notes = _audit_units_of_one_type(
            scored_units, group_columns, sampled_units is not None
        )
        notes += [f"{name}: {note}" for note in audit_notes]
        row = by_metric.filter(pl.col("attribute").is_null()).row(0, named=True)
        min_agreement = choose_threshold(answer_type, str(comparison))
        types.append(
            {
                "type": name,
                "part": comparison,
                "vendor": vendor,
                "metric": METRICS[answer_type],
                "units": row["n_units"],
                "pairs": int(scored_units["pairs"].sum()),
                "threshold": min_agreement,
                "verdict": _compare_interval_with_threshold(row, min_agreement),
            }
            | {k: row[k] for k in ("value", "low", "high", "method", "reason")}
        )
        groups.append(
            _build_table_of_groups(
                by_metric, compared, {"type": name, "part": comparison, "vendor": vendor}
            )
        )
    table = pl.DataFrame(types, schema=_TYPE_SCHEMA).sort(
        "type", "part", "vendor", maintain_order=True
    )
    by_group = pl.concat(groups) if groups and group_columns else pl.DataFrame(schema=_GROUP_SCHEMA)
    unit_table = units.select("type", "part", "vendor", "unit", "value", "pairs")
    return AnnotationQuality(
        table,
        by_group,
        unit_table,
        {"by": list(group_columns), **settings},
        tuple(dict.fromkeys(notes)),
    )


def _audit_units_of_one_type(
    scored_units: pl.DataFrame, group_columns: Sequence[str], has_design: bool
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Audit one type, overall and by group; a sample's design replaces clusters."""
    from isolux.api.audit import audit  # here, as every `isolux curate` reads this file

    tested_attributes = [
        name for name in group_columns if scored_units[name].drop_nulls().n_unique() > 1
    ]
    scores = scored_units.select(unit_id="unit", metric=pl.lit("likeness"), value="value")
    people = scored_units.select(unit_id="unit", **{n: pl.col(n) for n in tested_attributes})
    settings: dict[str, Any] = {}
    if has_design:
        people = people.hstack(scored_units.select("weight", "stratum", "population"))
        settings = {"weight": "weight", "population_size": "population"}
        if scored_units["stratum"].n_unique() > 1:
            settings["strata"] = "stratum"
    else:
        scores = scores.with_columns(
            cluster_id=pl.coalesce(scored_units["cluster"], scored_units["unit"])
        )
    if not tested_attributes:
        people = people.with_columns(_all=pl.lit("all"))
    run = audit(scores, people, by=tested_attributes or ["_all"], **settings).run
    metrics = run.group_metrics.filter(
        pl.col("attribute").is_null() | (pl.col("attribute") != "_all")
    )
    missing = [n for n in group_columns if scored_units[n].null_count()]
    notes: list[str] = [
        Caution(
            f"{scored_units[n].null_count():,} of {scored_units.height:,} units have no {n!r}:"
            " they are in no"
            " group."
        )
        for n in missing
    ]
    return metrics, run.disparities, notes


def _compare_interval_with_threshold(
    metric_row: Mapping[str, Any], threshold: float | None
) -> str | None:
    if threshold is None:
        return None
    if metric_row["low"] is None or metric_row["high"] is None:
        return UNDECIDED
    return (
        THRESHOLD_MET
        if metric_row["low"] > threshold
        else THRESHOLD_MISSED
        if metric_row["high"] < threshold
        else UNDECIDED
    )


def _build_table_of_groups(
    metrics: pl.DataFrame, disparities: pl.DataFrame, key_values: Mapping[str, Any]
) -> pl.DataFrame:
    difference = disparities.filter(kind="difference_to_overall").select(
        "attribute",
        "p_adjusted",
        group="group_a",
        difference="value",
        difference_low="low",
        difference_high="high",
    )
    rows = metrics.filter(pl.col("attribute").is_not_null()).rename({"n_units": "units"})
    group_rows = rows.join(difference, on=["attribute", "group"], how="left", maintain_order="left")
    labelled_rows = group_rows.with_columns(
        pl.lit(v, dtype=pl.String).alias(k) for k, v in key_values.items()
    )
    return labelled_rows.select(pl.col(n).cast(t) for n, t in _GROUP_SCHEMA.items())
