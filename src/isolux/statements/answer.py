"""The headline of an audit and what follows it: who is served worst, and every finding.

Report, terminal, findings, cards and JSON take their sentences from here
(decision 45). Nothing is measured: comparisons are chosen, ordered and worded.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from isolux.core.containers import Run
from isolux.core.formatting import pluralise, shorten_name
from isolux.core.spec import split_intersection
from isolux.statements.accounting import (
    compute_standardised_gaps,
    describe_groups_too_small,
    describe_people_accounting,
    describe_standardised_gap,
    find_groups_too_small_to_judge,
)
from isolux.statements.choice import (
    StatementChoice,
    choose_statements,
    find_leader_of_opposite_error,
)
from isolux.statements.groups import read_group_phrases
from isolux.statements.leading import MEASURE_COLUMNS, orient_comparisons_worse_first
from isolux.statements.numbers import format_bare_value
from isolux.statements.run_terms import HIDDEN_COMPARED, read_display_terms
from isolux.statements.text import (
    DisplayNames,
    Statement,
    describe_both_errors,
    describe_equal_groups,
    describe_further_statement,
    describe_leading_statement,
    describe_margin_equivalence,
    describe_no_established_difference,
)
from isolux.statements.undefined_groups import describe_undefined_groups, find_undefined_groups

MAX_FURTHER = 3
"""Statements that follow the first sentence."""
_RECORD_KEYS = ("accounting", "dataset", "model", "publish_min", "sample", "spec", "warnings")
_ANSWER_CACHE: dict[str, tuple[tuple[weakref.ref[pl.DataFrame], ...], list[Any], Answer]] = {}


@dataclass(frozen=True, slots=True)
class Answer:
    """The sentences that every outlet begins with.

    Parameters
    ----------
    accounting : str
        How many were read, scored and judged: to be printed before any number.
    first : str
        Who is served worst, by how much, how certain; at most 40 words but for long names.
    further : tuple of str
        What follows: at most three further groups and a count of the rest; the gap at the same
        mix, opposite errors, groups too small, a margin and the unknown, where there are any.
    line : mapping or None
        Model, task, metric, label and threshold of the leading measure; None: no groups.
    attributes : tuple of str
        In reading order, the leading one first.
    """

    accounting: str
    first: str
    further: tuple[str, ...] = ()
    line: Mapping[str, Any] | None = None
    attributes: tuple[str, ...] = ()


def answer_from_run(run: Run) -> Answer:
    """Answer for whom the model works worst, from a finished audit's tables.

    Examples
    --------
    >>> from isolux.core.tables import (
    ...     ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES)
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> answer_from_run(Run({"model": "m"}, *(table.empty() for table in tables))).first
    'No attribute was named, so no groups were compared.'
    """
    return answer_from_choice(run, choose_statements(run))


def answer_from_choice(run: Run, statement_choice: StatementChoice) -> Answer:
    """Put a choice of statements into the sentences that every outlet begins with."""
    cached = _ANSWER_CACHE.get("answer")
    frames = (run.scores, run.attributes, run.group_metrics, run.disparities)
    record_values = [run.record.get(name) for name in _RECORD_KEYS]
    is_same = cached is not None and all(
        ref() is frame for ref, frame in zip(cached[0], frames, strict=True)
    )
    if cached is not None and is_same and cached[1] == record_values:
        return cached[2]
    answer = _compose_answer(run, statement_choice)
    _ANSWER_CACHE["answer"] = (tuple(weakref.ref(frame) for frame in frames), record_values, answer)
    return answer


def drop_findings_in_answer(findings: pl.DataFrame, answer: Answer) -> pl.DataFrame:
    """Leave out what the answer says, and gaps of its metric, which its tables show."""
    is_said = pl.col("claim").is_in([answer.first, *answer.further])
    if answer.line is not None:
        names = ("metric", "label")
        of_line = [pl.col(name).eq_missing(pl.lit(answer.line[name])) for name in names]
        is_gap = (pl.col("analysis") == "group_gaps") & pl.col("group_a").is_not_null()
        is_said |= pl.all_horizontal(is_gap, *of_line)
    return findings.filter(~is_said)


def _compose_answer(run: Run, choice: StatementChoice) -> Answer:
    grouping_attributes = (
        run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    )
    known_statements = [s for s in choice.stated if s.row["is_known"]]
    leader = known_statements[0] if known_statements else None
    accounting = describe_people_accounting(run)
    if not grouping_attributes:
        return Answer(accounting, _explain_no_groups(run))
    line = leader.line if leader else choice.main
    order = [s.attribute for s in known_statements if line is not None and s.line is line]
    attributes = tuple(
        dict.fromkeys(
            [*order, *sorted(grouping_attributes, key=lambda a: len(split_intersection(a)))]
        )
    )
    first, *further = _yield_answer_sentences(run, choice, known_statements)
    key = None if line is None else choice.names.key(line)
    return Answer(accounting, first, tuple(further), key, attributes)


def _explain_no_groups(run: Run) -> str:
    minimum = int(run.record.get("publish_min") or 0)
    if minimum and (run.record.get("spec") or {}).get("by"):
        return (
            f"No groups can be shown here: each has fewer than {minimum} people, or would give "
            "away a smaller one."
        )
    return "No attribute was named, so no groups were compared."


def _yield_answer_sentences(
    run: Run, choice: StatementChoice, known_statements: Sequence[Statement]
) -> Iterator[str]:
    """Yield the first sentence, then those that follow."""
    names = choice.names
    first, *further_sentences = _yield_further_sentences(choice, known_statements)
    yield first
    if known_statements:
        yield from _yield_standardised_gap_sentence(run, known_statements[0], names)
    yield from further_sentences
    if known_statements:
        yield from filter(None, [describe_opposite_class_gaps(run)])
    line = known_statements[0].line if known_statements else choice.main
    if line is not None:
        small_groups = find_groups_too_small_to_judge(run, names.key(line), line.direction)
        yield from filter(None, [describe_groups_too_small(small_groups, line, names)])
    lines = [line for line in (line, choice.main) if line is not None]
    for named_line in {id(line): line for line in lines}.values():
        undefined_groups = find_undefined_groups(run, names.key(named_line))
        yield from filter(None, [describe_undefined_groups(undefined_groups, named_line, names)])
    for claim, margin_row in describe_margin_equivalence(run.disparities, names):
        if (
            choice.main
            and margin_row["metric"] == choice.main.metric
            and margin_row["label"] is None
        ):
            yield claim
    unknown = next((s for s in choice.stated if not s.row["is_known"]), None)
    if unknown is not None and choice.main and unknown.line.metric == choice.main.metric:
        yield describe_further_statement(unknown, None, choice.names)
    if names.words.is_redacted:
        yield HIDDEN_COMPARED


def _yield_standardised_gap_sentence(
    run: Run, leader: Statement, names: DisplayNames
) -> Iterator[str]:
    """Yield the leading gap at the same mix of the other attributes, where there are any."""
    if not leader.is_pair:
        return
    pair = {**leader.row, "group_a": leader.row["group"], "group_b": leader.row["reference"]}
    for row in compute_standardised_gaps(run, [pair]).iter_rows(named=True):
        if names.words.is_census:  # nothing is left to chance
            row |= {"low": None, "high": None}
        gap_text = describe_standardised_gap(row, leader.row["gap"], leader.line.unit, names.words)
        yield f"Gap {gap_text}."


def _yield_further_sentences(
    choice: StatementChoice, known_statements: Sequence[Statement]
) -> Iterator[str]:
    """Yield what is stated of known groups, then how many more there are."""
    names, main = choice.names, choice.main
    unestablished = choice.unestablished.get(main.metric) if main else None
    null = (
        describe_no_established_difference(*unestablished, choice.comparisons, names)
        if unestablished
        else ""
    )
    untested = [s for s in choice.untested if main and s.line.metric == main.metric]
    if not known_statements:
        for s in untested[:MAX_FURTHER]:
            yield describe_further_statement(s, s, names)
        if null or not untested:
            yield null or _explain_untested_pairs(choice)
        return
    leader, *further_statements = known_statements
    open_order = [s for s in choice.rivals if s.row["is_order_open"] and s.row["is_established"]]
    opposite = find_leader_of_opposite_error(choice.leaders, leader)
    yield (
        describe_both_errors(leader, opposite, names)
        if opposite is not None
        else describe_leading_statement(leader, names, open_order)
    )
    if main and leader.line.metric != main.metric and null:
        yield null
    same_line = [s for s in further_statements if s.line is leader.line]
    further = _choose_further_statements(
        leader, open_order[:1], [*untested[:1], *same_line, *choice.rivals]
    )
    n_left = _count_unnamed_worse_groups(choice, leader, [leader, *further])
    remainder = f"; {pluralise(n_left, 'more group')} (see the tables)." if n_left else "."
    for previous, s in pairwise([leader, *further]):
        sentence = describe_further_statement(s, previous, names)
        yield f"{sentence[:-1]}{remainder}" if s is further[-1] else sentence
    if n_left and not further:
        yield f"Also{remainder[1:]}"


def _count_unnamed_worse_groups(
    choice: StatementChoice, leader: Statement, named_statements: Sequence[Statement]
) -> int:
    """Count the known groups that are established to be worse on the leading measure, unnamed."""
    measure_filters = [
        pl.col(name).eq_missing(pl.lit(leader.row[name])) for name in MEASURE_COLUMNS
    ]
    groups = choice.comparisons.filter("is_pair", "is_known", "is_established", *measure_filters)
    group_keys = set(groups.select("attribute", "group").iter_rows())
    return len(group_keys - {(s.attribute, s.row["group"]) for s in named_statements})


def _explain_untested_pairs(choice: StatementChoice) -> str:
    """Say why no pair of known groups was tested by the measure asked for first."""
    if choice.names.words.is_redacted:
        return "Too few groups can be shown here to compare them."
    if choice.main is None or choice.comparisons.is_empty():
        return "No two groups could be compared: see the table of groups."
    pairs = choice.comparisons.filter("is_pair", "is_known", metric=choice.main.metric)
    if pairs.is_empty() or pairs["gap"].abs().max() != 0.0:
        return "No two groups could be compared: see the table of groups."
    return describe_equal_groups(choice.main, pairs, choice.names)


def _choose_further_statements(
    leader: Statement, second_statements: Sequence[Statement], pool: Sequence[Statement]
) -> list[Statement]:
    """Take three: who looks worse than the leader, who may be, each other attribute's leader."""
    perhaps = [s for s in pool if not s.row["is_established"]][:1]
    heads = [s for s in pool if s.attribute != leader.attribute and s.row["is_established"]]
    same_attribute = [
        s for s in pool if s.attribute == leader.attribute and s.row["is_established"]
    ]
    further: list[Statement] = []
    for s in [*perhaps, *second_statements, *heads, *same_attribute]:
        if len(further) < MAX_FURTHER and not any(s is statement for statement in further):
            further.append(s)
    return sorted(further, key=lambda s: s.row["worst"])


# Opposite errors by class: one group's people of class A are missed, another's of class B.

_METRIC = "recall"
_MAX_CLASSES = 4
_KEY = ("model", "task", "threshold", "attribute")


def find_opposite_class_gaps(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Find two groups and two classes of which each group is served worse in one."""
    rows = comparisons.filter(
        pl.col("metric") == _METRIC, pl.col("label").is_not_null(), "is_pair", "is_known"
    )
    if rows["label"].n_unique() > _MAX_CLASSES:
        return rows.clear()
    rows = rows.filter("is_established", pl.col("gap") < 0)
    swapped = rows.rename({"group": "reference", "reference": "group"})
    matches = rows.join(swapped, on=[*_KEY, "group", "reference"], suffix="_b", nulls_equal=True)
    order = (pl.col("gap") + pl.col("gap_b"), "attribute", "group", "label")
    return matches.filter(pl.col("label") != pl.col("label_b")).sort(*order).head(1)


def describe_opposite_class_gaps(run: Run) -> str:
    """Say which two groups are served worse in opposite classes, where both are established."""
    words = read_display_terms(run)
    comparisons = orient_comparisons_worse_first(
        run.disparities, run.group_metrics, 1.0 - words.level, ()
    )
    matches = find_opposite_class_gaps(comparisons)
    if matches.is_empty():
        return ""
    row = matches.row(0, named=True)
    phrases = read_group_phrases(run)
    classes = run.group_metrics.filter(metric=_METRIC)["label"].drop_nulls().n_unique()
    models = (run.record.get("accounting") or {}).get("models") or {}
    undetected = models.get(row["model"], {}).get("n_undetected", 1)
    groups = [row["group"], row["reference"]]
    clauses = []
    for suffix, other_suffix, group, other_group in (
        ("", "_b", *groups),
        ("_b", "", *groups[::-1]),
    ):
        # Who was not detected was not taken for the other class.
        is_taken = classes == 2 and not undetected
        label, answer = (
            words.format_class({"label": row[f"label{label_suffix}"]})
            for label_suffix in (suffix, other_suffix)
        )
        error_verb = f"are called {answer}" if is_taken else "are missed"
        rates = [1.0 - row[f"{name}_value{suffix}"] for name in ("group", "reference")]
        share, other_share = (f"{format_bare_value(rate, 'fraction', rates)} %" for rate in rates)
        group_phrase = phrases.describe_table_group(row["attribute"], group)
        clauses.append(
            f"for {group_phrase}, {share} of those labelled {label} {error_verb} "
            f"({shorten_name(other_group)}: {other_share})"
        )
    p = words.format_p(max(row["p_adjusted"], row["p_adjusted_b"]))
    title = words.format_attribute(row["attribute"])
    sentence = f"errors by {title} go opposite ways: {'; '.join(clauses)}; both {p}."
    return words.begin_sentence(row["model"], sentence)
