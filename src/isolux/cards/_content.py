"""What a kind of card is filled from: a finished run and the user's facts, as blocks of a card.

Each row of a table has a group, n, an interval and its source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import Any, cast

import polars as pl

from isolux.cards._document import (
    Bullets,
    Card,
    CardBlock,
    CardColumn,
    CardFact,
    CardSection,
    CardTable,
    Paragraph,
)
from isolux.cards._facts import CardFacts
from isolux.cards._run_source import (
    RunSource,
    choose_overall_tables,
    format_metric_line_key,
    format_status_and_reason,
    format_value_interval_n,
    list_line_tables,
    strip_absolute_folders,
)
from isolux.core import registry
from isolux.core.errors import SpecError
from isolux.core.info import CardInfo
from isolux.core.spec import split_intersection
from isolux.groups.unknown_values import KNOWN_SUFFIX
from isolux.report.document import AttributeSection, GroupRow, LineTable, Summary
from isolux.report.summary.analyses import IN_THE_ANSWER
from isolux.report.summary.sentences import build_synthetic_caution, sort_sections_by_rank
from isolux.statements.metric_lines import MetricLine
from isolux.statements.numbers import (
    format_bare_value,
    format_count,
    format_interval,
    format_p_value,
    format_p_value_equation,
    format_with_unit,
)
from isolux.statements.run_terms import read_display_terms

GROUPS_SOURCE = "group_metrics.parquet"
DIFFERENCES_SOURCE = "differences: disparities.parquet, kind difference_to_overall"
_MAX_COLUMNS = 4
"""Metrics that stand side by side."""
MAX_ROWS, _MAX_CLAIMS, _MAX_LISTED = 60, 12, 20
_MAX_FIRST_PAGE_ROWS = 30
"""Rows of groups on the first page."""
_MAX_ANSWER_SENTENCES = 2
"""Sentences of the answer after the first one."""
_N_HASH_CHARS, _MAX_INPUTS = 12, 12
_USER_DATA_LOADERS = ("table", "pairs", "counts", "imagefolder", "huggingface", "fiftyone")
"""Loaders of what a user brings: the licence is the user's to say."""
_P_VALUE_PATTERN = re.compile(r"\sp\s[=<]\s")

number_column = partial(CardColumn, number=True)


def _format_remaining_note(n: int, description: str = "more groups are") -> list[str]:
    return [f"{n:,} {description} in {GROUPS_SOURCE}."] if n > 0 else []


@dataclass(frozen=True, slots=True)
class CardContent:
    """All that a card of one kind may show."""

    kind: str
    source: RunSource
    facts: CardFacts

    def __post_init__(self) -> None:
        """Refuse a run of another task."""
        task = str(self.record.get("task") or "")
        if self.info.tasks and task not in self.info.tasks:
            raise SpecError(
                f"a card of kind {self.kind.replace('_', '-')} cannot be filled from this run",
                expected=f"a run of the task {' or '.join(self.info.tasks)}",
                found=task or "a run without a task",
            )

    @property
    def info(self) -> CardInfo:
        """What the kind says of itself."""
        return cast("CardInfo", registry.load_info("cards", self.kind))

    @property
    def summary(self) -> Summary:
        """The report's document."""
        return self.source.summary

    @property
    def record(self) -> Mapping[str, Any]:
        """The run's record."""
        return self.source.run.record

    def stated_facts(self, *keys: str) -> tuple[CardFact, ...]:
        """Return the stated facts of these keys; those not stated have no texts."""
        fields_by_key = {ask.key: ask for ask in self.info.facts}
        return tuple(self.facts.stated_fact(fields_by_key[key]) for key in keys)

    @property
    def licence(self) -> str:
        """The licence that a data set's loader declares; empty: a user's own table."""
        name = str((self.record.get("dataset") or {}).get("name") or "")
        is_user_data = name in _USER_DATA_LOADERS or name not in registry.names("datasets")
        return "" if is_user_data else self.summary.audited.licence

    @property
    def stated_licence(self) -> str:
        """The licence of the data that the user states, or that the loader declares."""
        return self.facts.joined_text("data_licence") or self.licence

    @property
    def data_name(self) -> str:
        """What the user calls the data, or the run does."""
        return self.facts.joined_text("dataset_name") or strip_absolute_folders(
            self.summary.audited.dataset
        )

    def build_data_paragraph(self, start: str = "") -> Paragraph:
        """Describe the data: units, clusters, and the source of the group labels."""
        audited = self.summary.audited
        data_name = strip_absolute_folders(audited.dataset) or "Data without a name"
        clusters = (
            f" in {audited.n_clusters:,} clusters ({audited.cluster})" if audited.cluster else ""
        )
        licence = f" Licence of the data: {self.licence}." if self.licence else ""
        return Paragraph(
            f"{start}{data_name}: {audited.n_units:,} people or images{clusters}. Group labels: "
            f"{audited.label_source or 'source not recorded'}.{licence}"
        )

    def build_overall_table(self) -> CardTable:
        """Build the table of overall values."""
        overall, percent = self.summary.overall, self.summary.audited.percent
        rows = tuple(
            (
                line.title,
                format_with_unit(estimate.value, line.unit),
                format_interval(estimate.low, estimate.high, line.unit),
                format_count(estimate.n_units),
                format_count(estimate.n_clusters),
                format_status_and_reason(estimate),
            )
            for line, estimate in overall[:MAX_ROWS]
        )
        return CardTable(
            "Overall values, one row for each metric",
            (
                CardColumn("Metric"),
                *map(number_column, ("Value", f"{percent} interval", "n", "Clusters")),
                CardColumn("Status"),
            ),
            rows,
            f"{GROUPS_SOURCE}: rows without an attribute, one for each metric, class and threshold",
            tuple(_format_remaining_note(len(overall) - len(rows), "more rows are")),
        )

    def build_first_page_sections(
        self, groups_citation: str = "", limits_citation: str = ""
    ) -> tuple[CardSection, CardSection]:
        """Make the first page: groups of single attributes on a few metrics, and the limits."""
        sections, lines, max_rows = self.choose_first_page_content()
        overall = dict(self.summary.overall)
        rows = [
            ("overall", *(format_value_interval_n(overall.get(line), line.unit) for line in lines))
        ]
        n_remaining = 0
        for section in sections:
            cells = {
                (table.line, row.group): row.estimate
                for table in list_line_tables(section)
                for row in table.rows
            }
            shown_rows = section.main.rows[:max_rows]
            n_remaining += len(section.main.rows) - len(shown_rows)
            name = f"{section.title}: " if len(sections) > 1 else ""
            rows += [
                (
                    name + row.group,
                    *(
                        format_value_interval_n(cells.get((line, row.group)), line.unit)
                        for line in lines
                    ),
                )
                for row in shown_rows
            ]
        notes = _format_remaining_note(n_remaining)
        notes += [
            f"{other_section.title}: {format_count(len(other_section.main.rows))} groups, in"
            f" {GROUPS_SOURCE}."
            for other_section in self.summary.sections
            if other_section not in sections
        ]
        notes += _format_remaining_note(
            len(overall) - len(lines), "more metrics, classes or thresholds are"
        )
        table = CardTable(
            f"Value ({self.summary.audited.percent} interval; n)",
            (CardColumn("Group"), *(number_column(line.title) for line in lines)),
            tuple(rows),
            f"{GROUPS_SOURCE}: {'; '.join(map(format_metric_line_key, lines))}; attribute "
            f"{', '.join(section.attribute for section in sections) or '(none)'}",
            tuple(notes),
        )
        return (
            CardSection("Results by group", (table,), groups_citation),
            CardSection(
                "What this audit cannot say", (self.build_limits_block(),), limits_citation
            ),
        )

    def choose_first_page_content(self) -> tuple[list[AttributeSection], list[MetricLine], int]:
        """Choose attributes in reading order, metrics of everyone, and how many groups of each."""
        sections = sort_sections_by_rank(self.summary.sections)
        single_attributes = [
            section for section in sections if not section.is_intersection
        ] or sections[:1]
        all_lines = [line for line, _ in self.summary.overall]
        n_classes_by_metric = Counter(line.metric for line in all_lines if line.label is not None)
        lines = [
            line
            for line in all_lines
            if line.label is None or n_classes_by_metric[line.metric] == 1
        ]
        return (
            single_attributes,
            (lines or all_lines)[:_MAX_COLUMNS],
            max(2, _MAX_FIRST_PAGE_ROWS // max(len(single_attributes), 1)),
        )

    def build_metric_definition_table(self) -> CardTable:
        """Make the table of metrics and their definitions."""
        lines = {line.metric: line for line, _ in reversed(self.summary.overall)}
        direction_words = {
            "higher": "more is better",
            "lower": "less is better",
            "none": "alike is better",
        }
        recorded_measures = self.record.get("measures") or {}
        rows = tuple(
            (
                recorded_measures.get(line.metric, {}).get("title")
                or line.title.removesuffix(line.class_suffix),
                line.definition or "–",
                "share" if line.unit == "fraction" else line.unit or "–",
                direction_words[line.direction],
            )
            for line in reversed(lines.values())
        )
        columns = tuple(map(CardColumn, ("Metric", "Definition", "Unit", "Direction")))
        return CardTable("Metrics", columns, rows, "audit.json: metrics and measures")

    def build_group_tables(self) -> Iterator[CardBlock]:
        """Each attribute's groups, on the metrics of everyone; classes are counted."""
        for section in self.summary.sections:
            shown_tables = choose_overall_tables(section)
            for table in shown_tables:
                yield self._build_group_table(section, table)
            if section.unknown:
                yield Paragraph(strip_absolute_folders(section.unknown))
            n_remaining = len(list_line_tables(section)) - len(shown_tables)
            if n_remaining:
                yield Paragraph(
                    f"{n_remaining:,} more table{'' if n_remaining == 1 else 's'} of "
                    f"{section.title}, of single classes: in {GROUPS_SOURCE}, rows with a label."
                )

    def _build_group_table(self, section: AttributeSection, table: LineTable) -> CardTable:
        audited, line, rows = self.summary.audited, table.line, list(table.rows)
        # Of a long table those furthest from everyone, in their own order.
        furthest_rows = sorted(range(len(rows)), key=lambda i: -abs(rows[i].difference or 0.0))[
            :MAX_ROWS
        ]
        is_share = line.unit == "fraction"
        notes = _format_remaining_note(
            len(rows) - len(furthest_rows), "more groups, nearer to overall, are"
        )
        if table.overall is not None:
            notes.insert(
                0,
                f"Everyone: {format_with_unit(table.overall.value, line.unit)} of "
                f"{format_count(table.overall.n_units)}.",
            )
        return CardTable(
            f"{line.title}, by {section.title}",
            (
                CardColumn("Group"),
                *map(
                    number_column,
                    (
                        f"Value{' (%)' if is_share else ''}",
                        f"{audited.percent} interval",
                        "n",
                        "Clusters",
                        f"Minus overall ({'points' if is_share else line.unit or 'units'})",
                        f"{audited.adjusted.capitalize()} p",
                    ),
                ),
                CardColumn("Status"),
            ),
            tuple(_format_group_cells(rows[i], line.unit) for i in sorted(furthest_rows)),
            f"{GROUPS_SOURCE}: {format_metric_line_key(line)}, attribute {section.attribute};"
            f" {DIFFERENCES_SOURCE}",
            tuple(notes),
        )

    def build_people_count_tables(self) -> Iterator[CardBlock]:
        """How many people of each group were judged, and which share of all judged they are."""
        for section in self.summary.sections:
            main = max(
                list_line_tables(section), key=lambda t: t.overall.n_units if t.overall else 0
            )
            total = main.overall.n_units if main.overall else 0
            rows = tuple(
                (
                    row.group,
                    format_count(row.estimate.n_units),
                    format_count(row.estimate.n_clusters),
                    f"{100 * row.estimate.n_units / total:.1f} %" if total else "–",
                )
                for row in main.rows[:MAX_ROWS]
            )
            n_in_groups = sum(row.estimate.n_units for row in main.rows)
            notes = _format_remaining_note(len(main.rows) - len(rows))
            if n_in_groups > total:
                notes.append(
                    "Some people are in several groups, so the shares add up to more than 100 %."
                )
            if n_in_groups < total and not self.summary.audited.publish_min:
                notes.append(
                    f"{total - n_in_groups:,} of {total:,} judged are in none of these groups: "
                    "their value is not known, or their group is not shown."
                )
            yield CardTable(
                f"People judged, by {section.title}",
                (
                    CardColumn("Group"),
                    *map(number_column, ("n", "Clusters", "Share of all judged")),
                ),
                rows,
                f"{GROUPS_SOURCE}: {format_metric_line_key(main.line)}, attribute"
                f" {section.attribute}, n_units and n_clusters",
                tuple(notes),
            )

    def build_findings_block(self) -> CardBlock:
        """List the run's claims, each with its rank in findings.parquet."""
        is_of_audit = pl.col("analysis").is_in(IN_THE_ANSWER)
        rows = self.source.run.findings.filter(is_of_audit).sort("rank").to_dicts()
        if not rows:
            return Paragraph(
                "The run holds no finding: findings.parquet is empty. That is not "
                "evidence that groups do not differ."
            )
        claims = []
        for row in rows[:_MAX_CLAIMS]:
            claim, p = strip_absolute_folders(row["claim"]), row["p_adjusted"]
            says_p = p is None or _P_VALUE_PATTERN.search(claim)
            tested = (
                "" if says_p else f"{self.summary.audited.adjusted} {format_p_value_equation(p)}; "
            )
            claims.append(f"{claim} ({tested}findings.parquet, rank {row['rank']})")
        if len(rows) > len(claims):
            claims.append(f"{len(rows) - len(claims):,} more findings are in findings.parquet.")
        return Bullets(tuple(claims))

    def build_limits_block(self) -> Bullets:
        """Say what this audit cannot say, as its report does."""
        return Bullets(tuple(map(strip_absolute_folders, self.summary.limits)))

    def describe_representation(self) -> Iterator[str]:
        """Say how many people of each group were judged: a sentence for each single attribute."""
        for section in self.summary.sections:
            main = section.main
            if section.is_intersection or main.overall is None or not main.overall.n_units:
                continue
            total = main.overall.n_units
            groups_text = ", ".join(
                f"{row.group} {format_count(row.estimate.n_units)} "
                f"({100 * row.estimate.n_units / total:.1f} %)"
                for row in main.rows[:_MAX_LISTED]
            )
            n_remaining = len(main.rows) - _MAX_LISTED
            remaining_text = f", and {n_remaining:,} more groups" if n_remaining > 0 else ""
            yield (
                f"Representation by {section.title}, of {format_count(total)} judged: "
                f"{groups_text}{remaining_text}."
            )

    def describe_unknown_values(self) -> Iterator[str]:
        """Say of how many people a value is not known."""
        for section in self.summary.sections:
            for row in section.main.rows:
                if row.is_unknown and not section.is_intersection and row.estimate.n_units:
                    yield f"{section.title}: not known of {format_count(row.estimate.n_units)}."

    def describe_sensitive_attributes(self) -> Iterator[str]:
        """Name each attribute that was audited, also in an intersection alone, and who judged."""
        label_source = self.summary.audited.label_source or "source not recorded"
        by = (self.record.get("spec") or {}).get("by") or ()
        audited = [*by, *(section.attribute for section in self.summary.sections)]
        words = read_display_terms(self.source.run)
        names = (
            name.removesuffix(KNOWN_SUFFIX)
            for entry in audited
            for name in split_intersection(entry)
        )
        for name in dict.fromkeys(names):
            yield f"{words.format_attribute(name)} ({label_source})"

    def build_card(
        self,
        *parts: CardSection,
        metadata: str = "",
        data: Mapping[str, Any] | None = None,
        of_data: bool = False,
    ) -> Card:
        """Put a card together: what every kind says before and after its own parts."""
        summary, info = self.summary, self.info
        data_set = (self.data_name or "unnamed") if of_data else ""
        cautions = [
            f"{caution.headline} {caution.text}"
            for caution in summary.cautions
            if not of_data or caution == build_synthetic_caution(self.record)
        ]
        answer = (summary.accounting, summary.answer, *summary.further[:_MAX_ANSWER_SENTENCES])
        return Card(
            self.kind,
            f"{info.title}: "
            f"{data_set or strip_absolute_folders(summary.title.removeprefix('Audit of '))}",
            info.statement,
            "" if of_data else strip_absolute_folders(" ".join(filter(None, answer))),
            tuple(map(strip_absolute_folders, (*summary.warnings, *cautions))),
            parts,
            tuple(
                (" ".join(filter(None, (reference.citation, reference.location))), reference.url)
                for reference in info.references
            ),
            tuple(self._describe_provenance()),
            metadata,
            data,
            summary,
        )

    def _describe_provenance(self) -> Iterator[str]:
        audited, inputs, source = self.summary.audited, self.summary.inputs, self.source
        # A hash tells who has a copy that it is one.
        is_named = source.sha256 and not audited.publish_min
        run = f"Run {source.name}" if is_named else "A run"
        yield (
            f"{run}, made by isolux {audited.version or '(version not recorded)'}"
            + (f" at {audited.created}" if audited.created else "")
            + (f", seed {audited.seed}" if audited.seed is not None else "")
            + (
                f"; SHA-256 of audit.json begins {source.sha256[:_N_HASH_CHARS]}"
                if is_named
                else ""
            )
            + (
                "; no table was changed since it was written."
                if source.sha256
                else "; it is in memory, so no hash shows that it is as it was made."
            )
        )
        for input_file in inputs[:_MAX_INPUTS]:
            name, digest = PurePath(input_file.path).name, input_file.sha256[:_N_HASH_CHARS]
            yield f"Input {name}: SHA-256 begins {digest}."
        if len(inputs) > _MAX_INPUTS:
            yield f"{len(inputs) - _MAX_INPUTS:,} more input files are named in audit.json."
        if self.facts.origin:
            yield f"Facts {self.facts.origin}: SHA-256 begins {self.facts.sha256[:_N_HASH_CHARS]}."
        if audited.publish_min:
            yield (
                "Made to be published: anything that reveals fewer than "
                f"{audited.publish_min} people is left out."
            )


def _format_group_cells(group_row: GroupRow, unit: str) -> tuple[str, ...]:
    estimate = group_row.estimate
    difference = format_bare_value(group_row.difference, unit, with_sign=True)
    if group_row.difference_low is not None:
        difference += (
            f" ({format_interval(group_row.difference_low, group_row.difference_high, unit)})"
        )
    return (
        group_row.group,
        format_bare_value(estimate.value, unit),
        format_interval(estimate.low, estimate.high, unit),
        format_count(estimate.n_units),
        format_count(estimate.n_clusters),
        difference,
        format_p_value(group_row.p_adjusted),
        format_status_and_reason(estimate),
    )
