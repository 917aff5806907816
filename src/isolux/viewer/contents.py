"""From runs to what a page holds: its words and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.counts import COUNTS
from isolux.core.errors import SpecError
from isolux.core.progress import report_step
from isolux.core.spec import split_intersection
from isolux.io.run_changes import describe_changes
from isolux.report.comparison import summarise_comparison
from isolux.report.count_tables import Cell
from isolux.report.document import PaperTable, Summary
from isolux.report.people_counts import count_people_per_metric_row
from isolux.report.summary import is_model_comparison, summarise_run, summarise_run_record
from isolux.report.summary.sentences import read_protocol_section
from isolux.report.suppression import choose_suppressed_cells, flag_publishable_rows
from isolux.statements.numbers import choose_paper_column_decimals, format_paper_cell
from isolux.viewer import tables
from isolux.viewer.name_codes import (
    LINE,
    OVERALL_INDEX,
    NameCodes,
    build_name_codes,
    choose_bins_by_line,
    count_scores_by_bin,
    encode_scores,
    read_group_members,
)
from isolux.viewer.tables import (
    build_people_table,
    draw_run_figures,
    strip_unprintable_from_json,
    strip_unprintable_from_tables,
)


@dataclass(frozen=True, slots=True)
class DisplayedRun:
    """One run as the page shows it; ``changed``: files not as they were written, None: not known.

    ``is_complete`` False: people were taken out since; counting the rest would tell of them.
    """

    run: Run
    name: str
    changed: Sequence[str] | None = None
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Contents:
    """What a page holds: ``manifest`` (JSON values) and ``tables`` by name."""

    manifest: Mapping[str, Any]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)


def build_page_contents(
    displayed_runs: Sequence[DisplayedRun],
    *,
    people: bool = False,
    figures: bool = False,
    comparisons: Mapping[tuple[int, int], Run] = MappingProxyType({}),
    untested: str = "",
) -> Contents:
    """Gather what a page shows of runs: groups, pairs, findings, and how scores are spread.

    ``comparisons`` are tested changes between two of the runs; ``untested`` says why some lack.
    """
    if not displayed_runs:
        raise SpecError("there is nothing to look at", expected="one run or more", found="none")
    report_step("writing the page's sentences and figures")
    runs = [displayed.run for displayed in displayed_runs]
    for displayed in displayed_runs:
        if displayed.run.group_metrics.is_empty():
            raise SpecError(
                "this run measured nothing, so there is nothing to look at",
                expected="a run with rows in group_metrics.parquet",
                found="no row",
                where=displayed.name,
            )
    words = [
        {
            **build_run_description(displayed.run, displayed.changed),
            "paper": build_protocol_tables(displayed.run) if people else None,
        }
        for displayed in displayed_runs
    ]
    titles = [description["title"] for description in words]
    for displayed, description in zip(displayed_runs, words, strict=True):
        if titles.count(description["title"]) > 1:
            description["title"] = f"{description['title']} ({displayed.name})"
    contexts = [summarise_run_record(run)[1] for run in runs]
    coding = build_name_codes(list(zip(runs, contexts, strict=True)))
    bare = [
        displayed.run
        if displayed.is_complete
        else replace(displayed.run, scores=displayed.run.scores.clear())
        for displayed in displayed_runs
    ]
    bins = choose_bins_by_line(runs if people else bare, coding)
    min_published = max(int(run.record.get("publish_min") or 0) for run in runs)
    people_tables = _build_people_tables(runs, coding, min_published) if people else []
    is_complete = all(displayed.is_complete for displayed in displayed_runs)
    figure_table, undrawn = (
        draw_run_figures(runs, curves=people and is_complete) if figures else (None, "")
    )
    manifest = build_manifest(
        words,
        coding,
        bins,
        model_names=_choose_model_names(displayed_runs, coding),
        holds={
            "people": people,
            "pictures": False,
            "publish_min": min_published,
            "served": False,
            "fewest": 0 if people else MIN_PEOPLE,
            "whole": is_complete,
            "figures": figures,
            "undrawn": undrawn,
            "untested": untested,
        },
    )
    groups = tables.build_group_metric_table(runs, coding)
    return Contents(
        strip_unprintable_from_json(
            {**manifest, "people": [description for _, description in people_tables]}
        ),
        strip_unprintable_from_tables(
            {
                "groups": groups,
                "pairs": tables.build_pair_difference_table(runs, coding),
                "tests": tables.build_omnibus_test_table(runs, coding),
                "changes": tables.build_model_change_table(runs, coding, comparisons),
                "findings": tables.build_findings_table(runs),
                **({} if figure_table is None else {"figures": figure_table}),
                **_build_count_tables(bare, coding, bins, None if people else groups),
                **{
                    f"people-{run_index}": table
                    for run_index, (table, _) in enumerate(people_tables)
                },
            }
        ),
    )


def _build_count_tables(
    runs: Sequence[Run], coding: NameCodes, bins: Mapping[int, Any], groups: pl.DataFrame | None
) -> dict[str, pl.DataFrame]:
    """Count people by score and by change; of a page without single people, none of a handful."""
    change_counts, spread = (
        count_score_changes(runs, coding),
        count_scores_by_bin(runs, coding, bins),
    )
    if groups is not None and not (change_counts.is_empty() and spread.is_empty()):
        small_cells = find_cells_with_few_people(runs)
        spread = drop_disclosive_counts(spread, groups, coding, ["model"], small_cells)
        small_cells |= find_cells_with_few_changes(change_counts, groups, coding)
        change_counts = drop_disclosive_counts(
            change_counts, groups, coding, ["model_a", "model_b"], small_cells
        )
    return {"moves": change_counts.drop("n_people"), "distributions": spread}


def _build_people_tables(
    runs: Sequence[Run], coding: NameCodes, min_published: int
) -> list[tuple[pl.DataFrame, dict[str, Any]]]:
    if min_published:
        raise SpecError(
            "what is made to be published holds no single person",
            expected="--people or --publish-min",
            found="both",
        )
    titles = dict(coding.attributes)
    return [
        build_people_table(run_index, run, coding, titles) for run_index, run in enumerate(runs)
    ]


def _choose_model_names(displayed_runs: Sequence[DisplayedRun], coding: NameCodes) -> list[str]:
    """Call each model by its name; where two have the same, by its run's too."""
    model_names = [model for _, model in coding.models]
    return [
        f"{model} ({displayed_runs[run].name})" if model_names.count(model) > 1 else model
        for run, model in coding.models
    ]


# Counts of people that may stand on a page without single people: none of a handful of them.

MIN_PEOPLE = 10
"""Counts of fewer people tell of single ones."""


def find_cells_with_few_people(runs: Sequence[Run]) -> set[Cell]:
    """Choose the groups of runs that a page must not count by score; those of one are of all."""
    cells: set[Cell] = set()
    for run in runs:
        # Values are shown whichever counts are hidden, so they take no part in the choice.
        cells |= choose_suppressed_cells(count_people_per_metric_row(run).drop("value"), MIN_PEOPLE)
    return cells


def find_cells_with_few_changes(
    change_counts: pl.DataFrame, groups: pl.DataFrame, coding: NameCodes
) -> set[Cell]:
    """Choose the groups of which too few were scored by both of two models."""
    named_rows = _decode_names(change_counts, groups, coding, "model_a")
    named_rows = named_rows.with_columns(n_units=pl.sum_horizontal("up", "down", "same"))
    cells: set[Cell] = set()
    for _, rows in named_rows.group_by("model_a", "model_b"):
        cells |= choose_suppressed_cells(_add_rows_with_zero_count(rows), MIN_PEOPLE)
    return cells


def _add_rows_with_zero_count(rows: pl.DataFrame) -> pl.DataFrame:
    """Count 0 in a group of which no one was scored in a line: a count too, and no hole in sums."""
    line, group, counts = ["model", *LINE], ["attribute", "values"], ["n_units", "n_people"]
    all_cells = rows.select(line).unique().join(rows.select(group).unique(), how="cross")
    complete_rows = all_cells.join(rows, on=[*line, *group], how="left", nulls_equal=True)
    return complete_rows.select(*line, *group, pl.col(counts).fill_null(0))


def drop_disclosive_counts(
    counts: pl.DataFrame,
    groups: pl.DataFrame,
    coding: NameCodes,
    models: Sequence[str],
    hidden: set[Cell],
) -> pl.DataFrame:
    """Keep the counts that tell of no handful of people."""
    rows = counts.with_row_index("_row")
    dropped_rows = []
    for model in models:
        named_rows = _decode_names(rows, groups, coding, model)
        is_publishable = flag_publishable_rows(named_rows, hidden)
        dropped_rows.append(named_rows.filter(~is_publishable | pl.col("value").is_null())["_row"])
    return rows.filter(~pl.col("_row").is_in(pl.concat(dropped_rows).implode())).drop("_row")


def _decode_names(
    rows: pl.DataFrame, groups: pl.DataFrame, coding: NameCodes, model: str
) -> pl.DataFrame:
    """Replace numeric codes by names: attributes, values and lines as in ``group_metrics``."""
    key = ["line", "attribute", "group"]
    group_columns = groups.select(*key, "values", "value", model_=pl.col("model"))
    named_rows = rows.join(
        group_columns, left_on=[model, *key], right_on=["model_", *key], how="left"
    )
    lines = {name: [entry[name] for entry in coding.lines] for name in LINE}
    attributes = pl.Series([name for name, _ in coding.attributes], dtype=pl.String)
    attribute_code = pl.col("attribute")
    types = pl.Float64, pl.String
    line_expressions = [
        pl.lit(pl.Series(line_values, dtype=types[name != "threshold"])).gather("line").alias(name)
        for name, line_values in lines.items()
    ]
    return named_rows.with_columns(
        *line_expressions,
        model=pl.col(model),
        values=pl.col("values").fill_null([]),
        attribute=pl.when(attribute_code >= 0).then(
            pl.lit(attributes).gather(attribute_code.clip(0))
        ),
    )


# What the page says besides its tables: titles, warnings first, units, and what it holds.

FORMAT = 1
"""Raised when a page could no longer read what an older isolux wrote."""


def build_manifest(
    runs: Sequence[Mapping[str, Any]],
    coding: NameCodes,
    bins: Mapping[int, Any],
    *,
    model_names: Sequence[str],
    holds: Mapping[str, Any],
) -> dict[str, Any]:
    """Gather the words of a page as JSON values."""
    return {
        "format": FORMAT,
        "runs": list(runs),
        "models": [
            {"run": run, "model": model, "name": name}
            for (run, model), name in zip(coding.models, model_names, strict=True)
        ],
        "lines": [_build_line_entry(line, bins.get(i)) for i, line in enumerate(coding.lines)],
        "attributes": [
            {"name": name, "title": title, "parts": list(split_intersection(name))}
            for name, title in coding.attributes
        ],
        "holds": dict(holds),
    }


def _build_line_entry(entry: Mapping[str, Any], bins: Mapping[str, Any] | None) -> dict[str, Any]:
    line = entry["line"]
    return {
        **{name: entry[name] for name in ("task", "metric", "label", "threshold", "title")},
        "definition": line.definition,
        "unit": line.unit,
        "direction": line.direction,
        "bins": None if bins is None else dict(bins),
    }


def build_run_description(run: Run, changed: Sequence[str] | None) -> dict[str, Any]:
    """Say of one run what a reader must know before its numbers."""
    compared = summarise_comparison(run) if is_model_comparison(run) else None
    summary: Summary = summarise_run(run) if compared is None else compared.base
    audited = summary.audited
    answer = None if compared is None else compared.answer
    further = summary.further if answer is None else (*answer.further, *answer.gaps)
    return {
        "title": summary.title if compared is None else compared.title,
        "answer": summary.answer if answer is None else answer.first,
        "accounting": summary.accounting,
        "further": list(further),
        "comparison": compared is not None,
        "models": list(run.record.get("models") or ()),
        "warnings": [*([describe_changes(changed)] if changed else []), *summary.warnings],
        "cautions": [[c.headline, c.text] for c in summary.cautions],
        "notes": list(summary.notes),
        "limits": list(summary.limits),
        "dataset": audited.dataset,
        "licence": audited.licence,
        "citation": audited.citation,
        "label_source": audited.label_source,
        "cluster": audited.cluster,
        "n_units": audited.n_units,
        "n_clusters": audited.n_clusters,
        "level": audited.level,
        "alpha": audited.alpha,
        "adjusted": audited.adjusted,
        "version": audited.version,
        "created": audited.created,
        "drawn": audited.sampling_sentence,
        "verdicts": [
            {
                "attribute": section.attribute,
                "outcome": section.verdict.outcome,
                "text": section.verdict.text,
                "unknown": section.unknown,
            }
            for section in summary.sections
        ],
    }


def build_protocol_tables(run: Run) -> dict[str, Any] | None:
    """Lay out the tables that a published protocol prints of a run; None: it followed none."""
    protocol = read_protocol_section(run.record)
    if protocol is None:
        return None
    return {
        "name": protocol.name,
        "title": protocol.title,
        "absent": [list(absent_table) for absent_table in protocol.absent],
        "disagreements": list(protocol.disagreements),
        "tables": [_paper_table_to_json(table) for table in protocol.tables],
    }


def _paper_table_to_json(table: PaperTable) -> dict[str, Any]:
    column_decimals = [
        choose_paper_column_decimals(list(column)) for column in zip(*table.rows, strict=True)
    ]
    rows = [
        [format_paper_cell(cell, n) for cell, n in zip(row, column_decimals, strict=True)]
        for row in table.rows
    ]
    return {"caption": table.caption, "columns": list(table.columns), "rows": rows}


# Who gained and who lost between two models: counts of people by group, on the same people.

_EMPTY = {
    **dict.fromkeys(("model_a", "model_b", "line", "attribute"), pl.Int32),
    "group": pl.String,
    **dict.fromkeys(("up", "down", "same", "n_people"), pl.Int32),
}


def count_score_changes(runs: Sequence[Run], coding: NameCodes) -> pl.DataFrame:
    """Count, for each two models, the people whose score is higher, lower and the same."""
    scored = {
        run_index: encode_scores(run_index, run, coding).drop_nulls("value")
        for run_index, run in enumerate(runs)
        if run.scores.height and COUNTS not in run.evidence
    }
    numbers = {name: i for i, (name, _) in enumerate(coding.attributes)}
    change_tables = [pl.DataFrame(schema=_EMPTY)]
    for a, (first, _) in enumerate(coding.models):
        for b, (second, _) in enumerate(coding.models[a + 1 :], start=a + 1):
            if first in scored and second in scored:
                shared_scores = _join_scores_of_models(scored[first], a, scored[second], b)
                if shared_scores.height:
                    change_tables += _count_changes_by_group(
                        shared_scores, runs[first], numbers, (a, b)
                    )
    return pl.concat(change_tables)


def _join_scores_of_models(
    scores_a: pl.DataFrame, model_a: int, scores_b: pl.DataFrame, model_b: int
) -> pl.DataFrame:
    person = pl.col("cluster_id").fill_null(pl.col("unit_id"))
    first_scores = scores_a.filter(model=model_a).select(
        "line", "unit_id", before="value", cluster=person
    )
    second_scores = scores_b.filter(model=model_b).select("line", "unit_id", after="value")
    shared_scores = first_scores.join(
        second_scores, on=["line", "unit_id"], how="inner", maintain_order="left"
    )
    sense = (pl.col("after") - pl.col("before")).sign()
    return shared_scores.select("line", "unit_id", "cluster", sense=sense)


def _count_changes_by_group(
    shared_scores: pl.DataFrame, run: Run, numbers: dict[str, int], models: tuple[int, int]
) -> list[pl.DataFrame]:
    overall_rows = shared_scores.with_columns(
        attribute=pl.lit(OVERALL_INDEX, pl.Int32), group=pl.lit("overall", pl.String)
    )
    members = read_group_members(run).filter(pl.col("attribute").is_in(list(numbers)))
    members = members.select(
        "unit_id",
        "group",
        attribute=pl.col("attribute").replace_strict(numbers, return_dtype=pl.Int32),
    )
    grouped = members.join(shared_scores, on="unit_id", how="inner", maintain_order="left")
    columns = ["line", "attribute", "group", "sense", "cluster"]
    rows = pl.concat([overall_rows.select(columns), grouped.select(columns)])
    sense = pl.col("sense")
    counts = rows.group_by("line", "attribute", "group", maintain_order=True).agg(
        up=(sense > 0).sum(),
        down=(sense < 0).sum(),
        same=(sense == 0).sum(),
        n_people=pl.col("cluster").n_unique(),
    )
    coded_counts = counts.select(
        pl.lit(models[0], pl.Int32).alias("model_a"),
        pl.lit(models[1], pl.Int32).alias("model_b"),
        "line",
        "attribute",
        "group",
        pl.col("up", "down", "same", "n_people").cast(pl.Int32),
    )
    return [coded_counts]
