"""Publication of a run: small groups are suppressed (statistical disclosure control).

The report of a run is for its auditors: it counts every group, of one person too. What is published
must not reveal one person's truth. ``report/suppression.py`` chooses what to suppress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from isolux.api.explain import run_analyses
from isolux.api.publish.released_totals import (
    ReleasedTotals,
    flag_nearly_equal_totals,
    replace_nearly_equal_totals,
)
from isolux.api.publish.weighted_rounding import (
    choose_rounding_steps,
    drop_unrounded_totals,
    list_dominated_groups,
    round_comparisons,
    round_group_metrics,
)
from isolux.core.containers import Dataset, Run
from isolux.core.errors import SpecError
from isolux.core.spec import read_recorded_spec
from isolux.core.survey_sample import is_survey_sample, is_weighted
from isolux.core.tables import FINDINGS, INSTANCES
from isolux.groups.small_intersections import COLUMNS as SHRUNKEN
from isolux.report.people_counts import (
    PERSON,
    count_people_by_true_class,
    count_people_per_metric_row,
)
from isolux.report.suppression import choose_suppressed_cells, flag_publishable_rows
from isolux.statements.accounting import describe_people_accounting

_FILE_SETTINGS = {
    "address",
    "answers",
    "attributes",
    "detected",
    "found",
    "images",
    "missed",
    "model",
    "out",
    "injected",
    "predictions",
    "scores",
    "sums",
    "withdrawn",
}
_NOTE_FIELDS = ("warnings", "notes")  # in reading order
_UNPUBLISHED_FIELDS = ("analyses", "explained", "protocol", "injected")


def publish(run: Run, minimum: int, *, other_runs: Sequence[Run] = ()) -> Run:
    """Leave out what tells of groups of fewer than ``minimum`` people.

    Examples
    --------
    >>> from isolux.api.audit import audit
    >>> who = pl.DataFrame({"unit_id": [str(i) for i in range(400)],
    ...                     "light": ["dusk"] * 3 + ["day", "night"] * 198 + ["day"]})
    >>> found = audit(who.select("unit_id", value=pl.lit(1.0)), who, by="light", replicates=100)
    >>> publish(found.run, 10).group_metrics.select("group", "n_units").rows()
    [('overall', 400), ('day', 199)]
    """
    refuse_ineffective_minimum(minimum)
    weighted = is_weighted(run.record)
    _refuse_with_others(run, other_runs)
    person_counts = count_people_per_metric_row(run)
    _refuse_small_population(person_counts, minimum)
    rows = choose_rounding_steps(run) if weighted else run.group_metrics
    is_published, has_near_totals = _select_published_rows(
        run, rows, person_counts, minimum, other_runs
    )
    groups, suppressed_rows = rows.filter(is_published), rows.filter(~is_published)
    pairs = select_publishable_comparisons(run.disparities, rows, suppressed_rows)
    if weighted:
        pairs, groups = round_comparisons(pairs, groups), round_group_metrics(groups)
    # Shrinkage estimates use suppressed groups too, so they are dropped.
    groups = groups.with_columns(pl.lit(None, pl.Float64).alias(name) for name in SHRUNKEN)
    dropped_fields = [
        key for key in _UNPUBLISHED_FIELDS if key != "analyses" and run.record.get(key)
    ]
    other_counts = [
        count_people_per_metric_row(other_run) for other_run in other_runs if other_run is not run
    ]
    accounting_line = {"accounting": {"line": describe_people_accounting(run)}}
    record = _build_published_record(
        {**run.record, **accounting_line},
        pl.concat([person_counts.filter(is_published), *other_counts]),
        minimum,
    )
    has_dropped_notes = any(
        len(record[key]) < len(run.record.get(key) or ()) for key in _NOTE_FIELDS
    )
    published_run = replace(
        run,
        record={**record, "withheld": suppressed_rows.height > 0},
        scores=run.scores.clear(),
        attributes=run.attributes.clear(),
        evidence={},
        group_metrics=groups,
        disparities=pairs,
        findings=FINDINGS.empty(),
    )
    published_run = run_analyses(
        published_run, ["model_changes" if "models" in record else "group_gaps"]
    )
    withheld_note = format_suppression_note(
        minimum,
        groups,
        suppressed_rows,
        has_near_totals=has_near_totals,
        has_dropped_tables=bool(dropped_fields),
        has_dropped_notes=has_dropped_notes,
        weighted=weighted,
    )
    record_with_note = {
        **_drop_file_paths(published_run.record),
        "notes": [withheld_note, *published_run.record.get("notes", [])],
        "publish_min": minimum,
    }
    return replace(published_run, record=record_with_note)


def _refuse_with_others(run: Run, other_runs: Sequence[Run]) -> None:
    """Refuse weighted runs next to others, and weighted comparisons: sums could be solved."""
    all_runs = [run, *[other_run for other_run in other_runs if other_run is not run]]
    has_survey_sample = any(is_survey_sample(other_run.record) for other_run in all_runs)
    if has_survey_sample and (len(all_runs) > 1 or "models" in run.record):
        raise SpecError(
            "weighted numbers of two models are about the same people twice, and are rounded so "
            "that one model's numbers reveal nobody's answer",
            expected="one audit on its own page",
            found="a comparison" if "models" in run.record else f"{len(all_runs)} runs on one page",
            where="--publish-min",
        )


def _select_published_rows(
    run: Run,
    rows: pl.DataFrame,
    person_counts: pl.DataFrame,
    minimum: int,
    other_runs: Sequence[Run],
) -> tuple[pl.Series, bool]:
    """Select the published rows; also whether some were dropped for near-equal totals."""
    count_metrics, classes, weighted = (
        _list_count_metrics(run),
        _count_classes_if_needed(run),
        "_step" in rows.columns,
    )
    hidden = choose_suppressed_cells(
        person_counts, minimum, classes, list_dominated_groups(rows, run) if weighted else ()
    )
    for other_run in [candidate_run for candidate_run in other_runs if candidate_run is not run]:
        hidden |= choose_suppressed_cells(
            count_people_per_metric_row(other_run), minimum, _count_classes_if_needed(other_run)
        )
    is_published = flag_publishable_rows(person_counts, hidden, classes, count_metrics)
    if weighted:
        is_published = is_published & rows["_step"].is_not_null()
    is_near_total = flag_nearly_equal_totals(
        person_counts.filter(is_published), minimum, run.scores["metric"].unique().to_list()
    )
    uneven_positions = is_published.arg_true().filter(is_near_total)
    return is_published & ~pl.arange(is_published.len(), eager=True).is_in(
        uneven_positions.implode()
    ), uneven_positions.len() > 0


def _build_published_record(
    record: Mapping[str, Any], published_counts: pl.DataFrame, minimum: int
) -> dict[str, Any]:
    """Build the published record: totals, warnings and notes that reveal nobody."""
    released_totals = ReleasedTotals(
        published_counts, minimum, read_recorded_spec(record).statistics.level
    )
    published = {key: entry for key, entry in record.items() if key not in _UNPUBLISHED_FIELDS}
    if is_weighted(record):
        published = drop_unrounded_totals(published)
    clusters = replace_nearly_equal_totals(
        dict(record.get("clusters") or {}), published_counts, minimum
    )
    published_notes = {
        key: released_totals.select_unrevealing_notes(published.get(key) or ())
        for key in _NOTE_FIELDS
    }
    lines = released_totals.select_unrevealing_notes(
        filter(None, [published.pop("accounting", {}).get("line")])
    )
    accounting = {"line": lines[0]} if lines else {}
    return {**published, "clusters": clusters, **published_notes, "accounting": accounting}


def _drop_file_paths(record: Mapping[str, Any]) -> dict[str, Any]:
    """Drop paths and hashes of files: a hash would confirm a copy of the data."""
    spec = dict(record.get("spec") or {})
    for name in _FILE_SETTINGS & spec.keys():
        spec[name] = None
    if spec.get("data"):
        spec["data"] = str(spec["data"]).partition(":")[0]
    return {**record, "spec": spec, "inputs": {}}


def _refuse_small_population(person_counts: pl.DataFrame, minimum: int) -> None:
    overall = person_counts.filter(pl.col("attribute").is_null() & pl.col("label").is_null())
    n = overall["n_people"].min() if overall.height else None
    if isinstance(n, int) and n < minimum:
        raise SpecError(
            "there are too few people to publish anything about them",
            expected=f"{minimum} or more, as --publish-min asks",
            found=str(n),
        )


def _count_classes_if_needed(run: Run) -> pl.DataFrame | None:
    """Count the classes of each group, if any published number depends on them."""
    needs_classes = _list_count_metrics(run) or run.group_metrics["label"].is_not_null().any()
    return count_people_by_true_class(run) if needs_classes else None


def _list_count_metrics(run: Run) -> list[str]:
    """List the metrics that are not means of people's scores, but depend on counts."""
    names = run.group_metrics["metric"].unique().to_list()
    means = set(run.scores["metric"].unique().to_list())
    return sorted(name for name in names if name not in means)


# Exports for publication: suppress attributes of people with rare combinations.


def suppress_small_groups(dataset: Dataset, minimum: int) -> Dataset:
    """Withhold the attributes of people who are alike with fewer than ``minimum`` in all of them.

    Parameters
    ----------
    dataset : Dataset
    minimum : int
        2 or more.

    Returns
    -------
    Dataset
        Everyone stays. Values that fewer than ``minimum`` people have are withheld; then all
        attributes of people whose combination of the others fewer have (k-anonymity).
    """
    refuse_ineffective_minimum(minimum)
    rows = dataset.instance_attributes()
    persons = _build_identifying_keys(dataset)
    rare_values = _count_people(rows, persons, ["attribute", "value"])
    rare_values = rare_values.filter(pl.col("n") < minimum).select("attribute", "value")
    rows = rows.join(rare_values, on=["attribute", "value"], how="anti", nulls_equal=True)
    combinations = (
        rows.sort("attribute", "value")
        .group_by("unit_id", maintain_order=True)
        .agg(kind=pl.concat_str("attribute", pl.lit("\0"), pl.col("value").fill_null("")))
    )
    common_combinations = _count_people(combinations, persons, ["kind"]).filter(
        pl.col("n") >= minimum
    )
    common_ids = combinations.join(common_combinations, on="kind", how="semi")["unit_id"]
    rows = rows.filter(pl.col("unit_id").is_in(common_ids.implode()))
    people = INSTANCES.conform(dataset.instances)
    # The class of such a person is suppressed with the attributes.
    is_suppressed = ~pl.col("instance_id").is_in(common_ids.implode())
    people = people.with_columns(classes=pl.when(~is_suppressed).then("classes"))
    n = people.height - common_ids.n_unique()
    note = f"Attributes of {n:,} people are withheld: fewer than {minimum} people share them."
    return replace(dataset, instances=people, attributes=rows, notes=(*dataset.notes, note))


def suppress_revealing_scores(
    scores: pl.DataFrame, full_dataset: Dataset, published_dataset: Dataset, target: str | None
) -> pl.DataFrame:
    """Withhold scores that name a class, of people whose truth is withheld."""
    full_truth, published_truth = (
        rows.filter(pl.col("attribute") == target) if target is not None else rows
        for rows in (full_dataset.instance_attributes(), published_dataset.instance_attributes())
    )
    known_ids = full_truth["unit_id"].unique()
    suppressed_ids = known_ids.filter(
        ~known_ids.is_in(published_truth["unit_id"].unique().implode())
    )
    is_revealing = pl.col("label").is_not_null() & pl.col("unit_id").is_in(suppressed_ids.implode())
    return scores.filter(~is_revealing)


def refuse_ineffective_minimum(minimum: int) -> None:
    """Refuse a minimum that hides nothing."""
    if minimum < 2:
        raise SpecError(
            "--publish-min is too small", expected="2 or more people", found=str(minimum)
        )


def _build_identifying_keys(dataset: Dataset) -> pl.DataFrame:
    """Build the keys that may identify a person: ``unit_id`` and one column per key."""
    people = INSTANCES.conform(dataset.instances)
    units = people.select(
        pl.col("instance_id").alias("unit_id"),
        unit=pl.col("instance_id"),
        subject=pl.col("subject_id").cast(pl.String),
        cluster=pl.col("cluster_id").cast(pl.String).fill_null(pl.col("instance_id")),
    )
    if units["subject"].null_count() == units.height:
        units = units.drop("subject")
    rows = dataset.instance_attributes().drop_nulls("value")
    names = rows["attribute"].unique(maintain_order=True).to_list()
    for index, name in enumerate(n for n in names if PERSON.fullmatch(n)):
        person_values = rows.filter(pl.col("attribute") == name).unique("unit_id")
        person_values = person_values.select("unit_id", pl.col("value").alias(f"person_{index}"))
        units = units.join(person_values, on="unit_id", how="left")
    return units


def _count_people(rows: pl.DataFrame, persons: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Count the people of each group of rows, ``n``: the minimum over all person keys."""
    rows_with_persons = rows.join(persons, on="unit_id", how="left")
    person_counts = [
        pl.col(name).drop_nulls().n_unique() for name in persons.columns if name != "unit_id"
    ]
    return (
        rows_with_persons.group_by(by)
        .agg(person_counts)
        .select(*by, n=pl.min_horizontal(pl.exclude(by)))
    )


# Comparisons that may be published: none that depends on a suppressed number.

_PAIR_KINDS = (
    "difference",
    "ratio",
    "log_ratio",
    "difference_to_overall",
    "model_difference",
    "relative_change",
    "gap_change",
)
"""Kinds of the two named groups alone; all others are of the whole attribute."""
_GROUP_KEY = ("metric", "threshold", "attribute", "label")


def select_publishable_comparisons(
    table: pl.DataFrame, all_groups: pl.DataFrame, suppressed_rows: pl.DataFrame
) -> pl.DataFrame:
    """Select comparisons of published groups, and measures of attributes published in full."""
    key = [k for k in _GROUP_KEY if k in table.columns]
    suppressed_groups = suppressed_rows.select(*key, "group").unique()
    rows = table.with_row_index("_row")
    touching_rows = rows.join(
        suppressed_groups.select(key).unique(), on=key, how="semi", nulls_equal=True
    )
    valued_keys = suppressed_rows.filter(pl.col("value").is_not_null()).select(key).unique()
    attribute_measures = rows.filter(~pl.col("kind").is_in(_PAIR_KINDS))
    of_several = ~pl.col("metric").is_in(all_groups["metric"].unique().implode())
    removed_tables = [
        touching_rows.filter(pl.col("group_a").is_null() | pl.col("group_b").is_null()),
        attribute_measures.join(valued_keys, on=key, how="semi", nulls_equal=True),
        attribute_measures.filter(
            of_several, pl.col("attribute").is_in(suppressed_rows["attribute"].unique().implode())
        ),
    ]
    overall = suppressed_groups.filter(pl.col("attribute").is_null()).drop("attribute")
    overall_key = [k for k in key if k != "attribute"]
    for group_column in ("group_a", "group_b"):
        suppressed_pairs = suppressed_groups.rename({"group": group_column})
        removed_tables.append(
            rows.join(suppressed_pairs, on=[*key, group_column], how="semi", nulls_equal=True)
        )
        suppressed_overall = overall.rename({"group": group_column})
        removed_tables.append(
            rows.join(
                suppressed_overall, on=[*overall_key, group_column], how="semi", nulls_equal=True
            )
        )
    hidden_rows = pl.concat([removed_rows.select("_row") for removed_rows in removed_tables])[
        "_row"
    ].unique()
    return rows.filter(~pl.col("_row").is_in(hidden_rows.implode())).drop("_row")


# The note of a published page about what is suppressed.


def format_suppression_note(
    minimum: int,
    published_groups: pl.DataFrame,
    suppressed_rows: pl.DataFrame,
    *,
    has_dropped_tables: bool,
    has_near_totals: bool = False,
    has_dropped_notes: bool = False,
    weighted: bool = False,
) -> str:
    """Say how many groups are not shown, and of how many others some numbers are not.

    Examples
    --------
    >>> rows = pl.DataFrame({"attribute": ["race"] * 2, "group": ["A", "B"]})
    >>> format_suppression_note(10, rows.head(1), rows.tail(1), has_dropped_tables=False)[:67]
    'Made to be published with a minimum of 10 people: 1 group is not sh'
    """
    groups = [
        table.filter(pl.col("attribute").is_not_null()).select("attribute", "group").unique()
        for table in (published_groups, suppressed_rows)
    ]
    n_suppressed = groups[1].join(groups[0], on=["attribute", "group"], how="anti").height
    n_partly_suppressed = groups[1].height - n_suppressed
    is_overall_suppressed = suppressed_rows["attribute"].is_null().any()
    text = f"Made to be published with a minimum of {minimum} people: "
    if n_suppressed:
        text += (
            f"{_format_group_count(n_suppressed)} not shown, because fewer people are in the"
            " group, or because a "
            "smaller group or class could be worked out from it."
        )
    else:
        text += "every group is shown."
    if n_partly_suppressed or is_overall_suppressed:
        partly_text = (
            [_format_group_count(n_partly_suppressed)[:-3].removesuffix(" ")]
            if n_partly_suppressed
            else []
        )
        subject = " and ".join([*partly_text, *(["everyone"] if is_overall_suppressed else [])])
        text += (
            f" Some numbers of {subject} are not shown, because they rest on the size of a class "
            "that must not be told"
        )
        text += (
            ", or count a few people more or fewer than another number." if has_near_totals else "."
        )
    if weighted:
        text += (
            " Weighted numbers are rounded so that nobody's answer can be worked out from them: "
            "values to steps of a tenth of a point to ten points, by how much the heaviest person "
            "of the group weighs, intervals outwards, p-values upwards to hundredths."
        )
    if has_dropped_notes:
        text += (
            " Notes or warnings from which the number of a few people would follow are left out."
        )
    return text + (" Tables of analyses and protocols are left out." if has_dropped_tables else "")


def _format_group_count(n: int) -> str:
    return "1 group is" if n == 1 else f"{n:,} groups are"
