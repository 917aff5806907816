"""The words of statements: the one place where a comparison becomes a sentence.

Wording follows fairlearn's guide for contributors: a disparity is measured, its absence is never
certified, and groups are called what the dataset calls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from isolux.core.formatting import UNTESTED, join_words, pluralise, shorten_name
from isolux.statements.groups import GroupPhrases
from isolux.statements.metric_lines import (
    LINE_COLUMNS,
    MetricLine,
    MetricLineKey,
    describe_error_rate_ratio,
    describe_rates_as_counts,
    format_title_inline,
)
from isolux.statements.numbers import (
    GapText,
    format_gap_size,
    format_values_and_gap,
)
from isolux.statements.run_terms import RunTerms

_MAX_ALSO = 2
_MAX_WORDS = 40  # of the first sentence, but for long names
_MAX_FINDING_WORDS = 30
_MAX_NULLS = 4  # attributes that a null result names
UNTESTED_HERE = "it cannot be tested, because nothing varies within either group"


@dataclass(slots=True)
class Statement:
    """One comparison that is stated.

    Parameters
    ----------
    line : Line
        The measure.
    row : mapping
        A row of ``leading.orient_comparisons_worse_first``: the worse group, the reference (None:
        everyone), gap, intervals, p, n, status.
    other_measures : list of str
        Other measures that show the same fact.
    n_classes : int
        Further classes of the same metric in which groups differ.
    """

    line: MetricLine
    row: Mapping[str, Any]
    other_measures: list[str] = field(default_factory=list)
    n_classes: int = 0

    @property
    def attribute(self) -> str:
        """The attribute or intersection."""
        return str(self.row["attribute"])

    @property
    def is_pair(self) -> bool:
        """Whether two groups are compared, and not one with everyone."""
        return bool(self.row["is_pair"])

    @property
    def error_type(self) -> str:
        """The metric, if it is one of two kinds of error or a failure to answer; else empty."""
        is_apart = bool(self.line.opposite) or self.line.metric.startswith("failure_")
        return self.line.metric if is_apart else ""

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The interval of a chosen pair: simultaneous where there is one."""
        low, high = self.row["simultaneous_low"], self.row["simultaneous_high"]
        return (self.row["low"], self.row["high"]) if low is None or high is None else (low, high)


@dataclass(frozen=True, slots=True)
class DisplayNames:
    """What a run calls things: attributes, measures, groups of people."""

    words: RunTerms
    lines: Mapping[MetricLineKey, MetricLine]
    phrases: GroupPhrases

    def key(self, line: MetricLine) -> dict[str, Any]:
        """Return the columns that name a measure."""
        key = next(key for key, candidate in self.lines.items() if candidate is line)
        return dict(zip(LINE_COLUMNS, key, strict=True))

    def has_classes(self, line: MetricLine) -> bool:
        """Tell whether a measure is one of several classes of its metric."""
        metric_lines = [
            candidate for candidate in self.lines.values() if candidate.metric == line.metric
        ]
        return line.label is not None and len({candidate.label for candidate in metric_lines}) > 1

    def group(self, attribute: str, group: str | None) -> str:
        """Call a group as people or images; everyone where there is none."""
        return "everyone" if group is None else self.phrases.describe_table_group(attribute, group)

    def start(self, line: MetricLine, sentence: str) -> str:
        """Begin with a capital letter; with the model where there are several."""
        return self.words.begin_sentence(line.model, sentence)


def describe_both_errors(
    statement: Statement, opposite_statement: Statement, names: DisplayNames
) -> str:
    """Say who has more of each of two kinds of error: neither alone tells who is served worse."""
    clauses = []
    for error_statement in (statement, opposite_statement):
        group_phrase, reference = _format_group_pair(error_statement, names)
        means = _format_rate_multiple(error_statement) or error_statement.line.meaning
        clauses.append(
            f"{_format_metric_and_class(error_statement.line)} is higher for {group_phrase} than "
            f"for {reference}: "
            f"{_format_both_values(error_statement)}, "
            f"{_format_gap_and_direction(error_statement)} "
            f"{_format_certainty(error_statement, names)}{f', so {means}' if means else ''}"
        )
    return names.start(statement.line, f"{'; '.join(clauses)}.")


def describe_leading_statement(
    statement: Statement, names: DisplayNames, possible_rivals: Sequence[Statement] = ()
) -> str:
    """Say who is served worst: values, gap, interval, p and n; and who may be as badly."""
    group_phrase, reference = _format_group_pair(statement, names)
    line = statement.line
    phrase, counts = _format_metric_and_class(line), _format_as_people_counts(statement, names)
    values = counts or f"{phrase} is {_format_both_values(statement)}"
    gap = (
        f"{phrase}: {_format_gap_and_direction(statement)}"
        if counts and line.direction != "none"
        else _format_gap_and_direction(statement)
    )
    if line.direction == "none":
        text = (
            f"{phrase} is lower for {group_phrase} than for {reference}:"
            f" {counts or _format_both_values(statement)}"
        )
    elif statement.row["is_better"]:
        text = (
            f"{line.worse_sentence.format(group_phrase, reference).replace('worse', 'better', 1)}:"
            f" {values}"
        )
    elif statement.row["is_upwards"]:
        better = line.worse_sentence.replace("worse", "better", 1)
        other_groups = f"each other group of {names.words.format_attribute(statement.attribute)}"
        other_groups += " shown here" * names.words.is_redacted
        text = f"{better.format(reference, other_groups)}; lowest for {group_phrase}: {values}"
    else:
        text = f"{line.worse_sentence.format(group_phrase, reference)}: {values}"
    means = _format_rate_multiple(statement) if line.opposite else ""
    after = f", so {means}" if means else ""
    if possible_rivals:
        way = "as low" if line.direction == "none" else "as badly"
        after += f"; perhaps {way}: {_format_group_pair(possible_rivals[0], names)[0]}"
    for shorter in range(3):
        certainty = "; ".join(
            _yield_certainty_terms(
                statement, names, with_n=shorter < 1, is_first=shorter < 2
            )  # drop n, then a word
        )
        sentence = names.start(line, f"{text} ({gap}; {certainty}){after}.")
        if len(sentence.split()) <= _MAX_WORDS:
            break
    return sentence


def _format_as_people_counts(statement: Statement, names: DisplayNames) -> str:
    """Say both values in people, where the metric is a share of people."""
    if statement.line.declaration is None or not 0.0 <= statement.row["group_value"] <= 1.0:
        return ""
    label = (
        ""
        if statement.line.label is None
        else names.words.format_class({"label": statement.line.label})
    )
    return describe_rates_as_counts(
        statement.line.declaration,
        label,
        (statement.row["group_value"], statement.row["reference_value"]),
    )


def _format_rate_multiple(statement: Statement) -> str:
    """Say how many times as often the error is made, where its metric says so."""
    if statement.line.declaration is None:
        return ""
    values = (statement.row["group_value"], statement.row["reference_value"])
    return describe_error_rate_ratio(statement.line.declaration, values, statement.bounds)


def describe_further_statement(
    statement: Statement, previous: Statement | None, names: DisplayNames
) -> str:
    """Say of a further group what is established, or that it looks worse than the leader."""
    group_phrase, reference = _format_group_pair(statement, names)
    if statement.row["reason"] == UNTESTED:
        clause = (
            f"{_format_gap_and_direction(statement)} for {group_phrase} than for "
            f"{reference} ({_format_both_values(statement)})"
        )
        reason = "" if names.words.is_census else f"; {UNTESTED_HERE}"
        return names.start(
            statement.line, f"{_format_metric_and_class(statement.line)}: {clause}{reason}."
        )
    if not statement.row["is_established"]:
        return names.start(
            statement.line,
            f"perhaps more for {group_phrase}: {_format_gap_and_direction(statement)} "
            f"{_format_certainty(statement, names, with_n=True)}, not "
            "established.",
        )
    reference_note = (
        ""
        if previous and reference == _format_group_pair(previous, names)[1]
        else f" for {reference}"
    )
    also = "also " if previous else ""
    clause = (
        f"{also}for {group_phrase}: {_format_both_values(statement)}{reference_note}, "
        f"{_format_gap_and_direction(statement)} {_format_certainty(statement, names)}."
    )
    return names.start(statement.line, clause)


def describe_statement_briefly(statement: Statement, names: DisplayNames) -> str:
    """Say one fact in at most 30 words: gap, interval, p, and what else shows it."""
    group_phrase, reference = _format_group_pair(statement, names)
    sentence = (
        f"{_format_metric_and_class(statement.line)}: "
        f"{_format_gap_and_direction(statement)} for {group_phrase} than for {reference} "
    )
    sentence += _format_certainty(statement, names)
    if statement.n_classes:
        sentence += (
            f", and differs in {pluralise(statement.n_classes, 'more class', 'more classes')}"
        )
    also = list(dict.fromkeys(statement.other_measures))
    shorter = [_describe_other_measures(also, n) for n in range(min(_MAX_ALSO, len(also)), -1, -1)]
    fits = (text for text in shorter if len(f"{sentence}{text}".split()) <= _MAX_FINDING_WORDS)
    return names.start(statement.line, f"{sentence}{next(fits, shorter[-1])}.")


def _describe_other_measures(other_measures: Sequence[str], n_named: int) -> str:
    """Name the first measures that show the same, and count the rest."""
    if not other_measures:
        return ""
    n_other = len(other_measures) - n_named
    remainder = (
        [f"{n_other} more" if n_named else pluralise(n_other, "other measure")] if n_other else []
    )
    return f"; also in {join_words([*other_measures[:n_named], *remainder], conjunction='and')}"


def describe_no_established_difference(
    line: MetricLine, attributes: Sequence[str], comparisons: pl.DataFrame, names: DisplayNames
) -> str:
    """Say that nothing is established of a metric, and how large a difference may be."""
    by = [shorten_name(names.words.format_attribute(a), 100) for a in attributes]
    if len(by) > _MAX_NULLS:
        by[_MAX_NULLS - 1 :] = [f"{len(by) - _MAX_NULLS + 1} more"]
    titles = join_words(by, conjunction="and")
    rows = comparisons.filter(
        pl.col("metric") == line.metric, pl.col("attribute").is_in(list(attributes))
    )
    # What is established of people of unknown value is said beside this.
    is_unknown_apart = rows.filter("is_established", pl.col("is_known").not_()).height > 0
    rows = rows.filter("is_pair", "is_known")
    scope = " between known groups" if is_unknown_apart else ""
    scope = " between groups shown here" if names.words.is_redacted else scope
    references = [names.words.references.get(a) for a in attributes]
    measure = line.phrase
    if all(references):
        measure += (
            f" from {join_words([shorten_name(str(r)) for r in references], conjunction='and')}"
        )
    elif any(references):  # two other groups may be further apart
        scope = " between groups compared"
    if names.words.is_census:
        widest = format_gap_size(max(map(abs, rows["gap"].to_list()), default=0.0), line.unit)
        sentence = f"in this population no difference in {measure} by {titles}{scope}"
        return names.start(line, f"{sentence} is larger than {widest}.")
    reliable = rows.filter(pl.col("status") == "ok")
    doubtful = _collect_attribute_groups(rows) - _collect_attribute_groups(reliable)
    rows = reliable if reliable.height else rows
    bound = _describe_max_difference(rows, line)
    sentence = f"no difference in {measure} was established by {titles}{scope}{bound}"
    if bound and doubtful and reliable.height:
        n = pluralise(len(doubtful), "group")
        sentence += f"; {n} with doubtful intervals may differ by more"
    return names.start(line, f"{sentence}.")


def _describe_max_difference(rows: pl.DataFrame, line: MetricLine) -> str:
    """Say how large a difference may be; nothing where there are no intervals."""
    largest_bounds = [rows["simultaneous_low"].abs().max(), rows["simultaneous_high"].abs().max()]
    largest = max((float(x) for x in largest_bounds if isinstance(x, float)), default=None)
    if largest is None:
        return ""
    return f": differences up to {format_gap_size(largest, line.unit)} cannot be ruled out"


def describe_equal_groups(line: MetricLine, pairs: pl.DataFrame, names: DisplayNames) -> str:
    """Say that all groups have one value; in a sample, that nothing varies or is tested."""
    sentence = f"all groups that were judged have the same {line.phrase}"
    if not names.words.is_census:
        sentence += "; nothing varies within them, so no test was made" + _describe_max_difference(
            pairs, line
        )
    return names.start(line, f"{sentence}.")


def _collect_attribute_groups(rows: pl.DataFrame) -> set[tuple[str, str]]:
    """Collect the attributes and groups that are compared."""
    group_rows = (rows.select("attribute", column).iter_rows() for column in ("group", "reference"))
    return {pair for pair_rows in group_rows for pair in pair_rows}


def describe_margin_equivalence(
    disparities: pl.DataFrame, names: DisplayNames
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Say of each metric and attribute whether groups are within the margin asked about."""
    words = names.words
    if words.margin is None:
        return
    adjusted = replace(words, is_adjusted=True)  # by Holm, whatever else is not
    margin_text = f"{words.margin:g} {'point' if words.margin == 1 else 'points'}"
    for row in disparities.filter(kind="max_difference_bound").iter_rows(named=True):
        line = names.lines.get(tuple(row[name] for name in LINE_COLUMNS))
        if line is None or line.unit != "fraction":
            continue
        title = words.format_attribute(row["attribute"])
        subject = f"no two groups of {title} differ"
        if row["attribute"] in words.references:
            subject = f"no group of {title} differs from {words.references[row['attribute']]}"
        claim = f"that {subject} by more than {margin_text} in {line.phrase}"
        if row["status"] != "ok" or row["p_adjusted"] is None:
            reason = row["reason"] or "a group has too few clusters for an interval"
            sentence = f"{claim} cannot be judged: {reason}."
        else:
            is_shown = row["p_adjusted"] <= 1.0 - words.level
            sentence = (
                f"{claim} is {'' if is_shown else 'not '}shown "
                f"({adjusted.format_p(row['p_adjusted'])}; at most"
                f" {format_gap_size(row['high'], line.unit)})."
            )
        margin_row = {k: row[k] for k in ("metric", "label", "attribute", "status", "p_adjusted")}
        yield names.start(line, sentence), margin_row


def _format_group_pair(statement: Statement, names: DisplayNames) -> tuple[str, str]:
    return (
        names.group(statement.attribute, statement.row["group"]),
        names.group(statement.attribute, statement.row["reference"] if statement.is_pair else None),
    )


def _format_metric_and_class(line: MetricLine) -> str:
    return format_title_inline(line.title)


def _format_statement_gap(statement: Statement) -> GapText:
    """Print both values, the gap and its interval so that they add up."""
    row = statement.row
    return format_values_and_gap(
        row["group_value"],
        row["reference_value"],
        row["gap"],
        statement.bounds,
        statement.line.unit,
    )


def _format_both_values(statement: Statement) -> str:
    """Print both values: ``60.0 % against 95.0 %``."""
    texts = _format_statement_gap(statement)
    return f"{texts.value_a} against {texts.value_b}"


def _format_gap_and_direction(statement: Statement) -> str:
    """Print the size of a gap and its way: ``35.0 points lower``."""
    return (
        f"{_format_statement_gap(statement).gap} "
        f"{'lower' if statement.row['gap'] < 0 else 'higher'}"
    )


def _format_certainty(statement: Statement, names: DisplayNames, *, with_n: bool = False) -> str:
    """Print interval, p and n in brackets, and a caution where the status asks for one."""
    return f"({'; '.join(_yield_certainty_terms(statement, names, with_n=with_n))})"


def _yield_certainty_terms(
    statement: Statement, names: DisplayNames, *, with_n: bool = False, is_first: bool = False
) -> Iterator[str]:
    """Yield interval, p, n and caution; the first sentence names the interval."""
    low, high = statement.bounds
    if low is not None and high is not None:
        is_joint = statement.row["simultaneous_low"] is not None
        interval_name = f"{'simultaneous ' * is_joint}interval "
        yield f"{interval_name if is_first else ''}{_format_statement_gap(statement).interval}"
    if statement.row["is_established"]:
        yield names.words.format_p(statement.row["p_adjusted"])
    if with_n:
        n, m = statement.row["n_units"], statement.row["n_units_of_reference"]
        yield f"n = {n:,} and {m:,}" if statement.is_pair else f"n = {n:,}"
    if statement.row["status"] not in (None, "ok"):
        yield f"with caution: {statement.row['reason'] or statement.row['status']}"
