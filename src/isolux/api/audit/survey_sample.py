"""Survey samples in an audit: from the people's columns to the evidence ``sample``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.counts import COUNTS, refuse_count_tables
from isolux.core.errors import SpecError
from isolux.core.spec import AuditSpec, format_setting_as_typed, split_intersection
from isolux.core.survey_sample import SAMPLE
from isolux.groups.measure.pair_rows import PAIRS, recompute_weighted_thresholds
from isolux.io.hashing import sha256_file
from isolux.people.population import calibrate_weights, read_population
from isolux.people.survey_columns import (
    attach_survey_sample,
    has_any_survey_setting,
    parse_cluster_columns,
)
from isolux.people.weight_checks import caution_on_dominant_weights, caution_on_id_like_weights
from isolux.stats.sampling import kish_effective_size


def list_survey_columns(spec: Mapping[str, object]) -> tuple[str, ...]:
    """Name the columns that hold the survey sample of an in-memory table."""
    survey_settings = [spec.get(name) for name in ("weight", "strata", "population_size")]
    population = spec.get("population")
    margin_attributes = (
        [a for key in population for a in split_intersection(key)]
        if isinstance(population, dict)
        else []
    )
    columns = [text for text in survey_settings if isinstance(text, str) and not _is_number(text)]
    cluster = spec.get("cluster")
    second_cluster = parse_cluster_columns(cluster)[1] if isinstance(cluster, str) else None
    return tuple(
        dict.fromkeys([*columns, *margin_attributes, *([second_cluster] if second_cluster else [])])
    )


def _is_number(text: str) -> bool:
    try:
        return bool(float(text.replace(",", "")))
    except ValueError:
        return False


def refuse_weighted_protocol(spec: AuditSpec) -> None:
    """Refuse a paper's protocol with weights: its tables are unweighted."""
    survey_settings = spec.sample.model_dump().items()
    typed_flags = [
        f"{format_setting_as_typed(name)} {setting}" for name, setting in survey_settings if setting
    ]
    if spec.protocol is not None and typed_flags:
        raise SpecError(
            "the paper's tables count people once each, and take no weights and no strata",
            expected=f"--protocol {spec.protocol} without them, or the audit without --protocol",
            found=" ".join(typed_flags),
        )


def add_survey_sample(spec: AuditSpec, dataset: Dataset, scores: Scores) -> tuple[Dataset, Scores]:
    """Add the survey sample to the scores; people of weight 0 are excluded with a note."""
    second_cluster = parse_cluster_columns(spec.people.cluster)[1]
    if not has_any_survey_setting(spec.sample) and second_cluster is None:
        return dataset, scores
    refuse_weighted_protocol(spec)
    refuse_count_tables(
        [COUNTS] if COUNTS in scores.evidence else [],
        "--weight or --strata",
        "counts that are weighted already, without --weight",
    )
    if dataset.survey_sample is None:
        dataset = attach_survey_sample(
            _copy_clusters_from_scores(dataset, scores), spec.sample, second_cluster
        )
    assert dataset.survey_sample is not None  # noqa: S101 - a column was named
    table = _build_sample_table(dataset.survey_sample, scores)
    zero_weight_ids = table.filter(pl.col("weight") == 0)["unit_id"]
    if len(zero_weight_ids) == table.height:
        raise SpecError(
            "every one of the people who are judged weighs 0",
            expected="a weight above 0",
            found=f"{len(zero_weight_ids):,} people",
            where=f"--weight {spec.sample.weight}",
        )
    if len(zero_weight_ids):
        scores = _drop_units(scores, zero_weight_ids)
        table = table.filter(pl.col("weight") > 0)
        note = f"{len(zero_weight_ids):,} units weigh 0: they represent nobody and are left out."
        if len(zero_weight_ids) == 1:
            note = "1 unit weighs 0: it represents nobody and is left out."
        scores = replace(scores, notes=(note, *scores.notes))
    cautions = caution_on_id_like_weights(dataset.survey_sample["weight"], spec.sample.weight)
    if spec.sample.population:
        tables = read_population(spec.sample.population)
        table = calibrate_weights(table, dataset.instance_attributes(), tables)
    cautions += caution_on_dominant_weights(table["weight"])
    evidence = {**scores.evidence, SAMPLE: table}
    if PAIRS in evidence:
        _refuse_strata_counted_in_photos(evidence[PAIRS], scores, table)
        evidence[PAIRS] = recompute_weighted_thresholds(evidence[PAIRS], scores.units, table)
    return dataset, replace(scores, evidence=evidence, notes=(*cautions, *scores.notes))


def _copy_clusters_from_scores(dataset: Dataset, scores: Scores) -> Dataset:
    """Take the clusters of in-memory scores, which strata are checked against."""
    score_clusters = (
        scores.units.select("unit_id", of_scores="cluster_id").drop_nulls().unique("unit_id")
    )
    instances = dataset.instances.join(
        score_clusters, left_on="instance_id", right_on="unit_id", how="left", maintain_order="left"
    )
    cluster = pl.coalesce("of_scores", "cluster_id")
    return replace(dataset, instances=instances.with_columns(cluster_id=cluster).drop("of_scores"))


def _build_sample_table(sample: pl.DataFrame, scores: Scores) -> pl.DataFrame:
    """Build the evidence ``sample``: one row per scored unit."""
    units = scores.evaluated_units().select("unit_id")
    sample_rows = units.with_columns(pl.col("unit_id").cast(pl.String)).join(
        sample.rename({"instance_id": "unit_id"}), on="unit_id", how="left", maintain_order="left"
    )
    unmatched_ids = sample_rows.filter(pl.col("weight").is_null())["unit_id"]
    if len(unmatched_ids):
        raise SpecError(
            (
                f"{len(unmatched_ids):,} of {units.height:,} units that were scored are not"
                " people in these "
                "data"
            ),
            expected="a task that judges people: weights and strata are theirs",
            found=repr(unmatched_ids[0]),
            where="--weight or --strata",
        )
    tables = [t for t in (scores.units, *scores.evidence.values()) if t.height]
    model = next((t["model"].drop_nulls()[0] for t in tables if "model" in t.columns), "model")
    return sample_rows.select(
        pl.lit(model, dtype=pl.String).alias("model"),
        "unit_id",
        pl.lit(None, dtype=pl.String).alias("cluster_id"),
        "weight",
        "stratum",
        "stratum_clusters",
        *[name for name in ("stratum_size", "other_cluster") if name in sample_rows.columns],
    )


def _drop_units(scores: Scores, removed_ids: pl.Series) -> Scores:
    is_remaining = ~pl.col("unit_id").is_in(removed_ids.implode())
    evidence = {
        name: table.filter(is_remaining | pl.col("unit_id").is_null())
        if "unit_id" in table.columns
        else table
        for name, table in scores.evidence.items()
    }
    return replace(scores, units=scores.units.filter(is_remaining), evidence=evidence)


def hash_population_files(spec: AuditSpec) -> dict[str, str]:
    """Return the hash of each file of the population."""
    population = spec.sample.population
    return {} if isinstance(population, dict) else {path: sha256_file(path) for path in population}


def build_sample_record(spec: AuditSpec, scores: Scores) -> dict[str, Any]:
    """Build the record of the sampling design, with the sentence about it."""
    if SAMPLE not in scores.evidence:
        return {}
    table = scores.evidence[SAMPLE]
    weight = table["weight"].to_numpy().astype(np.float64)
    n_effective = kish_effective_size(weight)
    sample_record = {
        "weight": spec.sample.weight,
        "strata": spec.sample.strata,
        "population": [list(names) for names in _list_population_attributes(spec)],
        "population_size": spec.sample.population_size,
        "census": _is_census(table),
        "one_way": parse_cluster_columns(spec.people.cluster)[0],
        "other_way": parse_cluster_columns(spec.people.cluster)[1],
        "n_units": table.height,
        "n_effective": n_effective,
        "n_strata": int(table["stratum"].n_unique()) if spec.sample.strata else 0,
    }
    return {"sample": {**sample_record, "said": format_sample_sentence(sample_record)}}


def _refuse_strata_counted_in_photos(
    pairs: pl.DataFrame, scores: Scores, table: pl.DataFrame
) -> None:
    """Refuse strata whose clusters were counted as photos, where people are the clusters."""
    if table["stratum"].null_count() == table.height:
        return
    people = scores.units.select(pl.col("unit_id").cast(pl.String), "cluster_id").drop_nulls()
    unit_clusters = table.drop("cluster_id").join(people.unique("unit_id"), on="unit_id")
    strata = unit_clusters.group_by("stratum").agg(
        pl.col("stratum_clusters").first(), photos=pl.len(), people=pl.col("cluster_id").n_unique()
    )
    miscounted_strata = strata.filter(
        (pl.col("stratum_clusters") >= pl.col("photos")) & (pl.col("people") < pl.col("photos"))
    )
    if pairs.height and miscounted_strata.height:
        raise SpecError(
            "people are the clusters of pairs, and the strata were counted by photos",
            expected="--cluster with the column that names the person",
            found=f"{miscounted_strata['stratum_clusters'][0]:,} clusters in"
            f" {miscounted_strata['stratum'][0]!r}, of "
            f"{miscounted_strata['people'][0]:,} people",
        )


def _is_census(table: pl.DataFrame) -> bool:
    """Return whether every cluster of a finite population was sampled."""
    if "stratum_size" not in table.columns:
        return False
    return bool((table["stratum_size"] <= table["stratum_clusters"]).all())


def format_sample_sentence(sample_record: Mapping[str, Any]) -> str:
    """Format one sentence on the sampling design and the effective sample size."""
    clauses: list[str] = []
    by = [repr(sample_record["weight"])] if sample_record["weight"] else []
    if sample_record["population"]:
        margins_text = ", ".join(" × ".join(names) for names in sample_record["population"])
        by.append(f"the population's {margins_text}")
    if by:
        head = f"every rate is weighted by {' and '.join(by)}"
        if "n_effective" in sample_record:
            n, n_effective = sample_record["n_units"], sample_record["n_effective"]
            head += f": {n:,} units tell as much as {n_effective:,.0f} of one weight would"
        clauses = [head]
    if sample_record["strata"]:
        clauses.append(
            f"intervals are of {sample_record['n_strata']:,} strata ({sample_record['strata']!r})"
        )
    if sample_record["population_size"]:
        size = sample_record["population_size"]
        population_text = (
            f"{float(size.replace(',', '')):,.0f} clusters" if _is_number(size) else repr(size)
        )
        clauses.append(f"the population is finite ({population_text})")
        if sample_record["census"]:
            clauses.append(
                "all of it was drawn, so nothing is left to chance: the groups' values are the "
                "population's, and any difference between them is there"
            )
    if sample_record["other_way"]:
        first_cluster = sample_record.get("one_way")
        cluster_text = f"of {first_cluster!r} and of" if first_cluster else "also of"
        clauses.append(
            f"clusters count both ways: those {cluster_text} {sample_record['other_way']!r}"
        )
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}."


def _list_population_attributes(spec: AuditSpec) -> list[tuple[str, ...]]:
    """Name the attributes of each table of the population."""
    if not spec.sample.population:
        return []
    return [cells.attributes for cells in read_population(spec.sample.population)]
