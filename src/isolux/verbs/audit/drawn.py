"""The sample in an audit: from the people's columns to the table that measuring reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from isolux.groups.measure.pair_rows import PAIRS, with_weighted_thresholds
from isolux.io.hashing import sha256_file
from isolux.people.drawn import drawn_by, is_asked, ways_of
from isolux.people.odd_weights import cautions_on_ids, cautions_on_worth
from isolux.people.population import calibrated, read_population
from isolux.stats.sampling import kish
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.counts import COUNTS, refuse_counts
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.spec import AuditSpec, crossed, name_as_typed


def columns_of_sample(spec: Mapping[str, object]) -> tuple[str, ...]:
    """Name the columns that settings take for the sample, for tables in memory."""
    found = [spec.get(name) for name in ("weight", "strata", "population_size")]
    population = spec.get("population")
    named = [a for key in population for a in crossed(key)] if isinstance(population, dict) else []
    columns = [text for text in found if isinstance(text, str) and not _is_number(text)]
    cluster = spec.get("cluster")
    other_way = ways_of(cluster)[1] if isinstance(cluster, str) else None
    return tuple(dict.fromkeys([*columns, *named, *([other_way] if other_way else [])]))


def _is_number(text: str) -> bool:
    try:
        return bool(float(text.replace(",", "")))
    except ValueError:
        return False


def refuse_protocol(spec: AuditSpec) -> None:
    """Refuse a paper's protocol beside weights: its tables count people once each."""
    said = spec.sample.model_dump().items()
    asked = [f"{name_as_typed(name)} {value}" for name, value in said if value]
    if spec.protocol is not None and asked:
        raise SpecError(
            "the paper's tables count people once each, and take no weights and no strata",
            expected=f"--protocol {spec.protocol} without them, or the audit without --protocol",
            found=" ".join(asked),
        )


def drawn_scores(spec: AuditSpec, dataset: Dataset, scores: Scores) -> tuple[Dataset, Scores]:
    """Put the sample beside the scores; people who weigh 0 are left out, and counted in a note."""
    other_way = ways_of(spec.people.cluster)[1]
    if not is_asked(spec.sample) and other_way is None:
        return dataset, scores
    refuse_protocol(spec)
    refuse_counts(
        [COUNTS] if COUNTS in scores.evidence else [],
        "--weight or --strata",
        "counts that are weighted already, without --weight",
    )
    if dataset.sample is None:
        dataset = drawn_by(_with_clusters(dataset, scores), spec.sample, other_way)
    assert dataset.sample is not None  # noqa: S101 - a column was named
    table = _table(dataset.sample, scores)
    gone = table.filter(pl.col("weight") == 0)["unit_id"]
    if len(gone) == table.height:
        raise SpecError(
            "every one of the people who are judged weighs 0",
            expected="a weight above 0",
            found=f"{len(gone):,} people",
            where=f"--weight {spec.sample.weight}",
        )
    if len(gone):
        scores = _without(scores, gone)
        table = table.filter(pl.col("weight") > 0)
        note = f"{len(gone):,} units weigh 0: they represent nobody and are left out."
        if len(gone) == 1:
            note = "1 unit weighs 0: it represents nobody and is left out."
        scores = replace(scores, notes=(note, *scores.notes))
    told = cautions_on_ids(dataset.sample["weight"], spec.sample.weight)
    if spec.sample.population:
        tables = read_population(spec.sample.population)
        table = calibrated(table, dataset.instance_attributes(), tables)
    told += cautions_on_worth(table["weight"])
    evidence = {**scores.evidence, SAMPLE: table}
    if PAIRS in evidence:
        _refuse_counted_photos(evidence[PAIRS], scores, table)
        evidence[PAIRS] = with_weighted_thresholds(evidence[PAIRS], scores.units, table)
    return dataset, replace(scores, evidence=evidence, notes=(*told, *scores.notes))


def _with_clusters(dataset: Dataset, scores: Scores) -> Dataset:
    """Take clusters of scores in memory: strata are held against them."""
    of = scores.units.select("unit_id", of_scores="cluster_id").drop_nulls().unique("unit_id")
    joined = dataset.instances.join(
        of, left_on="instance_id", right_on="unit_id", how="left", maintain_order="left"
    )
    cluster = pl.coalesce("of_scores", "cluster_id")
    return replace(dataset, instances=joined.with_columns(cluster_id=cluster).drop("of_scores"))


def _table(sample: pl.DataFrame, scores: Scores) -> pl.DataFrame:
    """Return a row for each unit that was scored: the evidence ``sample``."""
    units = scores.judged_units().select("unit_id")
    held = units.with_columns(pl.col("unit_id").cast(pl.String)).join(
        sample.rename({"instance_id": "unit_id"}), on="unit_id", how="left", maintain_order="left"
    )
    lost = held.filter(pl.col("weight").is_null())["unit_id"]
    if len(lost):
        raise SpecError(
            (
                f"{len(lost):,} of {units.height:,} units that were scored are not people in these "
                "data"
            ),
            expected="a task that judges people: weights and strata are theirs",
            found=repr(lost[0]),
            where="--weight or --strata",
        )
    tables = [t for t in (scores.units, *scores.evidence.values()) if t.height]
    model = next((t["model"].drop_nulls()[0] for t in tables if "model" in t.columns), "model")
    return held.select(
        pl.lit(model, dtype=pl.String).alias("model"),
        "unit_id",
        pl.lit(None, dtype=pl.String).alias("cluster_id"),
        "weight",
        "stratum",
        "stratum_clusters",
        *[name for name in ("stratum_size", "other_cluster") if name in held.columns],
    )


def _without(scores: Scores, gone: pl.Series) -> Scores:
    left = ~pl.col("unit_id").is_in(gone.implode())
    kept = {
        name: table.filter(left | pl.col("unit_id").is_null())
        if "unit_id" in table.columns
        else table
        for name, table in scores.evidence.items()
    }
    return replace(scores, units=scores.units.filter(left), evidence=kept)


def population_inputs(spec: AuditSpec) -> dict[str, str]:
    """Return the hash of each file of the population."""
    said = spec.sample.population
    return {} if isinstance(said, dict) else {path: sha256_file(path) for path in said}


def record_of_sample(spec: AuditSpec, scores: Scores) -> dict[str, Any]:
    """Write down how the sample was drawn, in numbers and in the sentence that is read first."""
    if SAMPLE not in scores.evidence:
        return {}
    table = scores.evidence[SAMPLE]
    weight = table["weight"].to_numpy().astype(np.float64)
    worth = kish(weight)
    told = {
        "weight": spec.sample.weight,
        "strata": spec.sample.strata,
        "population": [list(names) for names in _names(spec)],
        "population_size": spec.sample.population_size,
        "census": _is_census(table),
        "one_way": ways_of(spec.people.cluster)[0],
        "other_way": ways_of(spec.people.cluster)[1],
        "n_units": table.height,
        "n_effective": worth,
        "n_strata": int(table["stratum"].n_unique()) if spec.sample.strata else 0,
    }
    return {"sample": {**told, "said": said_of_sample(told)}}


def _refuse_counted_photos(pairs: pl.DataFrame, scores: Scores, table: pl.DataFrame) -> None:
    """Refuse strata whose clusters were counted as photos, where people are the clusters."""
    if table["stratum"].null_count() == table.height:
        return
    people = scores.units.select(pl.col("unit_id").cast(pl.String), "cluster_id").drop_nulls()
    held = table.drop("cluster_id").join(people.unique("unit_id"), on="unit_id")
    by = held.group_by("stratum").agg(
        pl.col("stratum_clusters").first(), photos=pl.len(), people=pl.col("cluster_id").n_unique()
    )
    odd = by.filter(
        (pl.col("stratum_clusters") >= pl.col("photos")) & (pl.col("people") < pl.col("photos"))
    )
    if pairs.height and odd.height:
        raise SpecError(
            "people are the clusters of pairs, and the strata were counted by photos",
            expected="--cluster with the column that names the person",
            found=f"{odd['stratum_clusters'][0]:,} clusters in {odd['stratum'][0]!r}, of "
            f"{odd['people'][0]:,} people",
        )


def _is_census(table: pl.DataFrame) -> bool:
    """Whether every cluster of a finite population was drawn."""
    if "stratum_size" not in table.columns:
        return False
    return bool((table["stratum_size"] <= table["stratum_clusters"]).all())


def said_of_sample(told: Mapping[str, Any]) -> str:
    """Say in one sentence how people were drawn, and what they are worth where that is told."""
    parts: list[str] = []
    by = [repr(told["weight"])] if told["weight"] else []
    if told["population"]:
        of = ", ".join(" × ".join(names) for names in told["population"])
        by.append(f"the population's {of}")
    if by:
        head = f"every rate is weighted by {' and '.join(by)}"
        if "n_effective" in told:
            n, worth = told["n_units"], told["n_effective"]
            head += f": {n:,} units tell as much as {worth:,.0f} of one weight would"
        parts = [head]
    if told["strata"]:
        parts.append(f"intervals are of {told['n_strata']:,} strata ({told['strata']!r})")
    if told["population_size"]:
        size = told["population_size"]
        of = f"{float(size.replace(',', '')):,.0f} clusters" if _is_number(size) else repr(size)
        parts.append(f"the population is finite ({of})")
        if told["census"]:
            parts.append(
                "all of it was drawn, so nothing is left to chance: the groups' values are the "
                "population's, and any difference between them is there"
            )
    if told["other_way"]:
        first = told.get("one_way")
        ways = f"of {first!r} and of" if first else "also of"
        parts.append(f"clusters count both ways: those {ways} {told['other_way']!r}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _names(spec: AuditSpec) -> list[tuple[str, ...]]:
    """Name the attributes of each table of the population."""
    if not spec.sample.population:
        return []
    return [cells.attributes for cells in read_population(spec.sample.population)]
