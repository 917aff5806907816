"""What an audit answers: who is served worst, what follows, and every finding, as data and words.

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

from isolux.statements.accounting import (
    describe_accounting,
    describe_same_mix,
    describe_unjudged,
    find_unjudged,
    same_mix,
)
from isolux.statements.choice import Choice, choose_statements, find_opposite
from isolux.statements.groups import group_phrases_of
from isolux.statements.leading import MEASURE, orient_comparisons
from isolux.statements.numbers import value_text
from isolux.statements.text import (
    Names,
    Statement,
    describe_both_errors,
    describe_equal,
    describe_leader,
    describe_margins,
    describe_more,
    describe_null,
)
from isolux.statements.words import HIDDEN_COMPARED, words_of
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import crossed
from isolux.vocabulary.words import brief, numbered

MAX_FURTHER = 3
"""Statements that follow the first sentence."""
_READ_OF_RECORD = ("accounting", "dataset", "model", "publish_min", "sample", "spec", "warnings")
_LAST: dict[str, tuple[tuple[weakref.ref[pl.DataFrame], ...], list[Any], Answer]] = {}


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


def answer_of(run: Run) -> Answer:
    """Answer for whom the model works worst, from a finished audit's tables.

    Examples
    --------
    >>> from isolux.vocabulary.tables import (
    ...     ATTRIBUTES, DISPARITIES, FINDINGS, GROUP_METRICS, SCORES)
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> answer_of(Run({"model": "m"}, *(table.empty() for table in tables))).first
    'No attribute was named, so no groups were compared.'
    """
    return word_answer(run, choose_statements(run))


def word_answer(run: Run, choice: Choice) -> Answer:
    """Put a choice of statements into the sentences that every outlet begins with."""
    told = _LAST.get("answer")
    frames = (run.scores, run.attributes, run.group_metrics, run.disparities)
    known = [run.record.get(name) for name in _READ_OF_RECORD]
    is_same = told is not None and all(
        ref() is frame for ref, frame in zip(told[0], frames, strict=True)
    )
    if told is not None and is_same and told[1] == known:
        return told[2]
    answer = _word(run, choice)
    _LAST["answer"] = (tuple(weakref.ref(frame) for frame in frames), known, answer)
    return answer


def leave_out_said(findings: pl.DataFrame, answer: Answer) -> pl.DataFrame:
    """Leave out what the answer says, and gaps of its metric, which its tables show."""
    is_said = pl.col("claim").is_in([answer.first, *answer.further])
    if answer.line is not None:
        names = ("metric", "label")
        of_line = [pl.col(name).eq_missing(pl.lit(answer.line[name])) for name in names]
        is_gap = (pl.col("analysis") == "group_gaps") & pl.col("group_a").is_not_null()
        is_said |= pl.all_horizontal(is_gap, *of_line)
    return findings.filter(~is_said)


def _word(run: Run, choice: Choice) -> Answer:
    asked = run.group_metrics["attribute"].drop_nulls().unique(maintain_order=True).to_list()
    known = [s for s in choice.stated if s.row["is_known"]]
    leader = known[0] if known else None
    accounting = describe_accounting(run)
    if not asked:
        return Answer(accounting, _nobody(run))
    line = leader.line if leader else choice.main
    order = [s.attribute for s in known if line is not None and s.line is line]
    attributes = tuple(dict.fromkeys([*order, *sorted(asked, key=lambda a: len(crossed(a)))]))
    first, *further = _sentences(run, choice, known)
    key = None if line is None else choice.names.key(line)
    return Answer(accounting, first, tuple(further), key, attributes)


def _nobody(run: Run) -> str:
    minimum = int(run.record.get("publish_min") or 0)
    if minimum:
        return (
            f"No groups can be shown here: each has fewer than {minimum} people, or would give "
            "away a smaller one."
        )
    return "No attribute was named, so no groups were compared."


def _sentences(run: Run, choice: Choice, known: Sequence[Statement]) -> Iterator[str]:
    """Yield the first sentence, then those that follow."""
    names = choice.names
    first, *more = _of_known(choice, known)
    yield first
    if known:
        yield from _at_same_mix(run, known[0], names)
    yield from more
    if known:
        yield from filter(None, [describe_opposite_errors(run)])
    line = known[0].line if known else choice.main
    if line is not None:
        unjudged = find_unjudged(run, names.key(line), line.direction)
        yield from filter(None, [describe_unjudged(unjudged, line, names)])
    for claim, about in describe_margins(run.disparities, names):
        if choice.main and about["metric"] == choice.main.metric and about["label"] is None:
            yield claim
    unknown = next((s for s in choice.stated if not s.row["is_known"]), None)
    if unknown is not None and choice.main and unknown.line.metric == choice.main.metric:
        yield describe_more(unknown, None, choice.names)
    if names.words.withheld:
        yield HIDDEN_COMPARED


def _at_same_mix(run: Run, leader: Statement, names: Names) -> Iterator[str]:
    """Yield the leading gap at the same mix of the other attributes, where there are any."""
    if not leader.is_pair:
        return
    pair = {**leader.row, "group_a": leader.row["group"], "group_b": leader.row["reference"]}
    for row in same_mix(run, [pair]).iter_rows(named=True):
        if names.words.census:  # nothing is left to chance
            row |= {"low": None, "high": None}
        told = describe_same_mix(row, leader.row["gap"], leader.line.unit, names.words)
        yield f"Gap {told}."


def _of_known(choice: Choice, known: Sequence[Statement]) -> Iterator[str]:
    """Yield what is stated of known groups, then how many more there are."""
    names, main = choice.names, choice.main
    silent = choice.silent.get(main.metric) if main else None
    null = describe_null(*silent, choice.comparisons, names) if silent else ""
    untested = [s for s in choice.untested if main and s.line.metric == main.metric]
    if not known:
        for s in untested[:MAX_FURTHER]:
            yield describe_more(s, s, names)
        if null or not untested:
            yield null or _describe_untested(choice)
        return
    leader, *others = known
    open_order = [s for s in choice.rivals if s.row["is_order_open"] and s.row["is_established"]]
    other = find_opposite(choice.leaders, leader)
    yield (
        describe_both_errors(leader, other, names)
        if other is not None
        else describe_leader(leader, names, open_order)
    )
    if main and leader.line.metric != main.metric and null:
        yield null
    same = [s for s in others if s.line is leader.line]
    chosen = _choose_further(leader, open_order[:1], [*untested[:1], *same, *choice.rivals])
    n_left = _count_unnamed(choice, leader, [leader, *chosen])
    rest = f"; {numbered(n_left, 'more group')} (see the tables)." if n_left else "."
    for previous, s in pairwise([leader, *chosen]):
        told = describe_more(s, previous, names)
        yield f"{told[:-1]}{rest}" if s is chosen[-1] else told
    if n_left and not chosen:
        yield f"Also{rest[1:]}"


def _count_unnamed(choice: Choice, leader: Statement, named: Sequence[Statement]) -> int:
    """Count the known groups that are established to be worse on the leading measure, unnamed."""
    same = [pl.col(name).eq_missing(pl.lit(leader.row[name])) for name in MEASURE]
    groups = choice.comparisons.filter("is_pair", "is_known", "is_established", *same)
    every = set(groups.select("attribute", "group").iter_rows())
    return len(every - {(s.attribute, s.row["group"]) for s in named})


def _describe_untested(choice: Choice) -> str:
    """Say why no pair of known groups was tested by the measure asked for first."""
    if choice.names.words.withheld:
        return "Too few groups can be shown here to compare them."
    if choice.main is None or choice.comparisons.is_empty():
        return "No two groups could be compared: see the table of groups."
    pairs = choice.comparisons.filter("is_pair", "is_known", metric=choice.main.metric)
    if pairs.is_empty() or pairs["gap"].abs().max() != 0.0:
        return "No two groups could be compared: see the table of groups."
    return describe_equal(choice.main, pairs, choice.names)


def _choose_further(
    leader: Statement, second: Sequence[Statement], pool: Sequence[Statement]
) -> list[Statement]:
    """Take three: who looks worse than the leader, who may be, each other attribute's leader."""
    perhaps = [s for s in pool if not s.row["is_established"]][:1]
    heads = [s for s in pool if s.attribute != leader.attribute and s.row["is_established"]]
    rest = [s for s in pool if s.attribute == leader.attribute and s.row["is_established"]]
    chosen: list[Statement] = []
    for s in [*perhaps, *second, *heads, *rest]:
        if len(chosen) < MAX_FURTHER and not any(s is other for other in chosen):
            chosen.append(s)
    return sorted(chosen, key=lambda s: s.row["worst"])


# Opposite errors by class: one group's people of class A are missed, another's of class B.

_METRIC = "recall"
_MAX_CLASSES = 4
_KEY = ("model", "task", "threshold", "attribute")


def find_opposite_errors(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Find two groups and two classes of which each group is served worse in one."""
    rows = comparisons.filter(
        pl.col("metric") == _METRIC, pl.col("label").is_not_null(), "is_pair", "is_known"
    )
    if rows["label"].n_unique() > _MAX_CLASSES:
        return rows.clear()
    rows = rows.filter("is_established", pl.col("gap") < 0)
    other = rows.rename({"group": "reference", "reference": "group"})
    both = rows.join(other, on=[*_KEY, "group", "reference"], suffix="_b", nulls_equal=True)
    order = (pl.col("gap") + pl.col("gap_b"), "attribute", "group", "label")
    return both.filter(pl.col("label") != pl.col("label_b")).sort(*order).head(1)


def describe_opposite_errors(run: Run) -> str:
    """Say which two groups are served worse in opposite classes, where both are established."""
    words = words_of(run)
    comparisons = orient_comparisons(run.disparities, run.group_metrics, 1.0 - words.level, ())
    found = find_opposite_errors(comparisons)
    if found.is_empty():
        return ""
    row = found.row(0, named=True)
    phrases = group_phrases_of(run)
    classes = run.group_metrics.filter(metric=_METRIC)["label"].drop_nulls().n_unique()
    models = (run.record.get("accounting") or {}).get("models") or {}
    undetected = models.get(row["model"], {}).get("n_undetected", 1)
    groups = [row["group"], row["reference"]]
    told = []
    for end, other, group, beside in (("", "_b", *groups), ("_b", "", *groups[::-1])):
        # Who was not detected was not taken for the other class.
        is_taken = classes == 2 and not undetected
        label, answer = (words.label({"label": row[f"label{side}"]}) for side in (end, other))
        wrong = f"are called {answer}" if is_taken else "are missed"
        rates = [1.0 - row[f"{name}_value{end}"] for name in ("group", "reference")]
        share, other_share = (f"{value_text(rate, 'fraction', rates)} %" for rate in rates)
        who = phrases.describe(row["attribute"], group)
        told.append(
            f"for {who}, {share} of those labelled {label} {wrong} ({brief(beside)}: {other_share})"
        )
    p = words.p(max(row["p_adjusted"], row["p_adjusted_b"]))
    title = words.title(row["attribute"])
    sentence = f"errors by {title} go opposite ways: {'; '.join(told)}; both {p}."
    return words.start(row["model"], sentence)
