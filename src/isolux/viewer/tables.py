"""The tables that the page shows: a run's own, less what it does not need, with numbers for names.

Nothing is measured here. Values, intervals and p-values are those of ``group_metrics``,
``disparities`` and ``build_findings_table``, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import SpecError
from isolux.core.printable import clean_line
from isolux.core.spec import split_intersection
from isolux.core.tables import DISPARITIES
from isolux.report import figures as drawings
from isolux.report.comparison import summarise_comparison
from isolux.report.document import AttributeSection
from isolux.report.figures import Figure
from isolux.report.figures.svg import find_drawing_obstacle
from isolux.report.summary import is_model_comparison, summarise_run
from isolux.viewer.name_codes import NameCodes, encode_scores, read_group_members

_GROUP = (
    "group",
    "values",
    "n_units",
    "n_clusters",
    "value",
    "low",
    "high",
    "standard_error",
    "method",
    "status",
    "reason",
    "shrunken",
    "shrunken_low",
    "shrunken_high",
    "shrunken_from",
)
_COMPARED = ("value", "low", "high", "p_adjusted", "detectable", "status", "reason")


def build_group_metric_table(runs: Sequence[Run], coding: NameCodes) -> pl.DataFrame:
    """Lay out every metric of every group, with its difference to everyone."""
    return pl.concat(
        [_build_run_group_rows(run_index, run, coding) for run_index, run in enumerate(runs)]
    )


def _build_run_group_rows(run_index: int, run: Run, coding: NameCodes) -> pl.DataFrame:
    table = run.group_metrics
    missing_columns = [pl.lit(None, pl.Float64).alias(c) for c in _GROUP if c not in table.columns]
    group_rows = coding.encode(run_index, table.with_columns(missing_columns))
    group_rows = group_rows.select("model", "line", "attribute", *_GROUP)
    compared = _read_audit_disparities(run).filter(pl.col("kind") == "difference_to_overall")
    against = coding.encode(run_index, compared).select(
        "model",
        "line",
        "attribute",
        group="group_a",
        difference="value",
        difference_low="low",
        difference_high="high",
        difference_p="p_adjusted",
    )
    key = ["model", "line", "attribute", "group"]
    # Two groups that print alike would double one another's rows: neither has a difference then.
    against = against.filter(~pl.struct(key).is_duplicated())
    return _narrow_integers(group_rows.join(against, on=key, how="left", maintain_order="left"))


def build_pair_difference_table(runs: Sequence[Run], coding: NameCodes) -> pl.DataFrame:
    """Lay out every difference of two groups: ``group_a`` less ``group_b``."""
    run_tables = [
        coding.encode(
            run_index, _read_audit_disparities(run).filter(pl.col("kind") == "difference")
        ).select("model", "line", "attribute", "group_a", "group_b", *_COMPARED)
        for run_index, run in enumerate(runs)
    ]
    return _narrow_integers(pl.concat(run_tables))


def build_omnibus_test_table(runs: Sequence[Run], coding: NameCodes) -> pl.DataFrame:
    """Lay out the tests of whole attributes, which ask whether groups differ at all."""
    run_tables = [
        coding.encode(
            run_index, _read_audit_disparities(run).filter(pl.col("kind") == "omnibus_test")
        ).select("model", "line", "attribute", "p_adjusted", "test", "status", "reason")
        for run_index, run in enumerate(runs)
    ]
    return _narrow_integers(pl.concat(run_tables))


def build_model_change_table(
    runs: Sequence[Run],
    coding: NameCodes,
    comparisons: Mapping[tuple[int, int], Run] = MappingProxyType({}),
) -> pl.DataFrame:
    """Lay out each group's tested change (second less first) between models of ``run, run_b``.

    Both are one run where it compares two models itself; ``comparisons`` are those of two runs.
    """
    within_runs = {
        (i, i): run for i, run in enumerate(runs) if "model_a" in run.disparities.columns
    }
    run_tables = [
        coding.encode(
            first, run.disparities.filter(pl.col("kind") == "model_difference"), model=None
        ).select(
            "line",
            "attribute",
            *_COMPARED,
            "n_units_a",
            group="group_a",
            run=pl.lit(first),
            run_b=pl.lit(second),
        )
        for (first, second), run in {**within_runs, **comparisons}.items()
    ]
    if run_tables:
        return _narrow_integers(pl.concat(run_tables))
    types = dict.fromkeys(("line", "attribute", "run", "run_b"), pl.Int32) | {"group": pl.String}
    return pl.DataFrame(schema=types)


def build_findings_table(runs: Sequence[Run]) -> pl.DataFrame:
    """Lay out the findings of every run, in the order in which to read them."""
    run_tables = [
        run.findings.sort("rank", maintain_order=True).with_columns(run=pl.lit(run_index, pl.Int32))
        for run_index, run in enumerate(runs)
    ]
    return _narrow_integers(pl.concat(run_tables))


def _read_audit_disparities(run: Run) -> pl.DataFrame:
    """Return the disparities of an audit; a comparison of two models has none of one model."""
    return DISPARITIES.empty() if "model_a" in run.disparities.columns else run.disparities


def _narrow_integers(frame: pl.DataFrame) -> pl.DataFrame:
    # A page reads numbers of 64 bits as big integers, which are slow and cannot be mixed.
    return frame.with_columns(pl.col(pl.Int64).cast(pl.Int32))


ATTRIBUTES_DRAWN = 24
"""Attributes of one run that are drawn; the table of groups has every one."""
GROUPS_DRAWN = 60
"""An attribute of more groups is not drawn: nobody reads so many rows in a picture."""

_SCHEMA = dict.fromkeys(("attribute", "title", "svg", "alt", "caption"), pl.String)


def draw_run_figures(runs: Sequence[Run], *, curves: bool) -> tuple[pl.DataFrame, str]:
    """Draw runs as their reports do."""
    empty = pl.DataFrame(schema={"run": pl.Int32, **_SCHEMA})
    if (obstacle := find_drawing_obstacle()) is not None:
        return empty, ": ".join(obstacle)
    figure_rows: list[tuple[object, ...]] = []
    omitted: list[str] = []
    for run_index, run in enumerate(runs):
        for title, attribute, figure in _draw_figures_of_run(run, omitted, curves=curves):
            figure_texts = (figure.svg, figure.alt, figure.caption)
            figure_rows.append((run_index, attribute, title, *figure_texts))
    note = f"too many to draw: {', '.join(dict.fromkeys(omitted))}" if omitted else ""
    return pl.DataFrame(figure_rows, schema=empty.schema, orient="row"), note


def _draw_figures_of_run(
    run: Run, omitted: list[str], *, curves: bool
) -> Iterator[tuple[str, str, Figure]]:
    if is_model_comparison(run):
        compared = summarise_comparison(run)
        for change in compared.sections:
            if not change.tables:
                continue
            if len(change.tables[0].rows) > GROUPS_DRAWN:
                omitted.append(change.title)
            elif figure := drawings.draw_model_change_figure(
                change.title, change.tables[0], compared.models
            ):
                yield change.title, change.attribute, figure
        return
    sections = summarise_run(run).sections
    for index, section in enumerate(sections):
        if index >= ATTRIBUTES_DRAWN or len(section.main.rows) > GROUPS_DRAWN:
            omitted.append(section.title)
            continue
        for figure in _draw_section_figures(section, curves=curves):
            yield section.title, section.attribute, figure


def _draw_section_figures(section: AttributeSection, *, curves: bool) -> list[Figure]:
    main = drawings.draw_intersection_heat_map(section)
    other_figures = drawings.draw_secondary_metric_figures(section)
    along = drawings.draw_share_curve_figures(section) if curves else ()
    return [*([main] if main else []), *other_figures, *along]


_IDS = "unit_id"


def strip_unprintable_from_tables(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    r"""Replace what must not be printed, in every column of text and of lists of text.

    Examples
    --------
    >>> told = strip_unprintable_from_tables({"groups": pl.DataFrame({"group": ["a", "\u202eb"]})})
    >>> told["groups"]["group"].to_list()
    ['a', '�b']
    """
    return {name: _strip_unprintable_from_table(table) for name, table in tables.items()}


def _strip_unprintable_from_table(table: pl.DataFrame) -> pl.DataFrame:
    changed = []
    for column in table.get_columns():
        inner = column.dtype == pl.List(pl.String)
        if column.name == _IDS or not (inner or column.dtype == pl.String):
            continue
        texts = column.explode() if inner else column
        clean_by_text = {text: clean_line(text) for text in texts.drop_nulls().unique()}
        clean_by_text = {
            text: clean_text for text, clean_text in clean_by_text.items() if text != clean_text
        }
        if clean_by_text:
            expression = pl.element() if inner else pl.col(column.name)
            expression = expression.replace(list(clean_by_text), list(clean_by_text.values()))
            changed.append(pl.col(column.name).list.eval(expression) if inner else expression)
    return table.with_columns(changed)


def strip_unprintable_from_json(words: Any) -> Any:
    r"""Replace it in every text of JSON values.

    Examples
    --------
    >>> strip_unprintable_from_json({"title": "a\u202eb", "n": [1, "c"]})
    {'title': 'a�b', 'n': [1, 'c']}
    """
    if isinstance(words, str):
        return clean_line(words)
    if isinstance(words, Mapping):
        return {name: strip_unprintable_from_json(element) for name, element in words.items()}
    if isinstance(words, list | tuple):
        return [strip_unprintable_from_json(element) for element in words]
    return words


_ANSWERS = ("truth", "prediction", "confidence")
_NO_GROUP = -1


def build_people_table(
    run_index: int, run: Run, coding: NameCodes, titles: dict[str, str]
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Lay out a run's people: one row each."""
    refuse_count_tables(run.evidence, "a page with single people", "a page without --people")
    if run.scores.is_empty():
        raise SpecError(
            "this run keeps no scores of single people",
            expected="a page without --people",
            found="an empty scores.parquet",
        )
    scores = encode_scores(run_index, run, coding)
    table = scores.select("unit_id").unique(maintain_order=True)
    for (model, line), line_scores in scores.group_by("model", "line", maintain_order=True):
        name = f"{model}_{line}"
        score_columns = [pl.col("value").alias(f"s{name}")]
        if line_scores["value"].null_count():
            reason = pl.coalesce("reason", pl.lit("none was given"))
            score_columns.append(pl.when(pl.col("value").is_null()).then(reason).alias(f"r{name}"))
        person_scores = line_scores.select("unit_id", *score_columns).unique(
            "unit_id", keep="first", maintain_order=True
        )
        table = table.join(person_scores, on="unit_id", how="left", maintain_order="left")
    table, attributes = _add_group_columns(table, run, titles)
    return _add_score_columns(table, run_index, run, coding), {"attributes": attributes}


def _add_group_columns(
    table: pl.DataFrame, run: Run, titles: dict[str, str]
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    members = read_group_members(run)
    entries = members["attribute"].unique(maintain_order=True).to_list()
    attribute_names = dict.fromkeys(
        attribute_name for entry in entries for attribute_name in split_intersection(entry)
    )
    attributes: list[dict[str, Any]] = []
    for attribute_name in attribute_names:
        # An attribute that was asked for only in an intersection is read off that.
        entry = (
            attribute_name
            if attribute_name in entries
            else next(e for e in entries if attribute_name in split_intersection(e))
        )
        position = split_intersection(entry).index(attribute_name)
        rows = members.filter(pl.col("attribute") == entry)
        rows = rows.select("unit_id", value=pl.col("values").list.get(position)).unique(
            maintain_order=True
        )
        values = rows["value"].unique(maintain_order=True).to_list()
        number = pl.col("value").replace_strict(values, range(len(values)), return_dtype=pl.Int32)
        column = f"a{len(attributes)}"
        codes = rows.with_columns(number.alias(column)).group_by("unit_id").agg(column)
        if codes.height == rows.height:  # everyone is in one group
            codes = codes.with_columns(pl.col(column).list.first())
        table = table.join(codes, on="unit_id", how="left", maintain_order="left")
        if codes[column].dtype == pl.Int32:
            table = table.with_columns(pl.col(column).fill_null(_NO_GROUP))
        attributes.append(
            {
                "name": attribute_name,
                "title": titles.get(attribute_name, attribute_name),
                "values": values,
            }
        )
    return table, attributes


def _add_score_columns(
    table: pl.DataFrame, run_index: int, run: Run, coding: NameCodes
) -> pl.DataFrame:
    answer_tables = [
        t for t in run.evidence.values() if {"unit_id", "model", *_ANSWERS} <= set(t.columns)
    ]
    if not answer_tables:
        return table
    answers = answer_tables[0].unique(["model", "unit_id"], maintain_order=True)
    truth = pl.col("truth")
    if answers["truth"].dtype == pl.List(pl.String):
        truth = truth.list.join(", ")
    truths = answers.select("unit_id", truth.cast(pl.String)).unique("unit_id", maintain_order=True)
    table = table.join(truths, on="unit_id", how="left", maintain_order="left")
    for number, (model_run, model) in enumerate(coding.models):
        model_rows = (
            answers.filter(pl.col("model") == model) if model_run == run_index else answers.clear()
        )
        if model_rows.is_empty():
            continue
        answer_columns = model_rows.select(
            "unit_id",
            pl.col("prediction").cast(pl.String).alias(f"answer{number}"),
            pl.col("confidence").cast(pl.Float64).alias(f"confidence{number}"),
        )
        table = table.join(answer_columns, on="unit_id", how="left", maintain_order="left")
    return table
