"""The line before any number: how many were read, labelled, scored and judged.

What the record counted under ``accounting`` (``groups.accounting``) becomes one or two short
sentences. What a warning says already is not said again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.core.containers import Run
from isolux.core.formatting import join_words, pluralise, shorten_name
from isolux.core.spec import split_intersection
from isolux.groups.run_membership import add_unit_weights, can_regroup, rebuild_membership
from isolux.groups.unknown_values import KNOWN_SUFFIX, UNKNOWN
from isolux.statements.metric_lines import LINE_COLUMNS, MetricLine
from isolux.statements.numbers import format_bare_value, format_interval
from isolux.statements.run_terms import RunTerms
from isolux.statements.text import DisplayNames
from isolux.stats.confounding import directly_standardised_gap

_MAX_WORDS = 40
_MAX_NAMES = 3
_MIN_SHARE = 0.01
"""Of unknown values: fewer are left to the notes."""
_REASONS = {
    "unknown truth": "have no truth",
    "no prediction": "have no answer",
    "no score": "have no score",
    "not detected": "were not detected",
    "takes part in matching only": "only take part in matching",
    "the comparison failed": "failed",
}
_ONE_UNIT = {"people": "person", "queries": "query"}


def describe_people_accounting(run: Run) -> str:
    """Say how many were read, labelled, scored and judged, and by group where a share differs.

    Examples
    --------
    >>> from isolux.core import tables as t
    >>> people = {"n_scored": 95, "n_undetected": 0, "reasons": {"unknown truth": 5}}
    >>> counts = {"unit": "people", "n_read": 100, "models": {"m": people},
    ...           "attributes": {"race": {"n_units": 95, "n_unknown": 3, "n_unannotated": 3}}}
    >>> frames = (t.SCORES, t.ATTRIBUTES, t.GROUP_METRICS, t.DISPARITIES, t.FINDINGS)
    >>> describe_people_accounting(Run({"accounting": counts}, *(f.empty() for f in frames)))
    'Of 100 people, 95 were scored; 5 have no truth. Race was not annotated for 3 of the 95.'
    """
    counts = run.record.get("accounting") or {}
    if "line" in counts or not counts:
        return str(counts.get("line", ""))
    terms = dict((run.record.get("dataset") or {}).get("terms") or ())
    warnings = list(run.record.get("warnings") or ())
    extra_sentences = (
        *_describe_uneven_missing_groups(counts, warnings),
        *_describe_unknown_attribute_values(counts, terms, warnings),
    )
    text = _describe_scored_counts(counts, warnings)
    for sentence in extra_sentences:
        longer = f"{text} {sentence}"
        if len(longer.split()) <= _MAX_WORDS:
            text = longer
    return text


def _describe_scored_counts(counts: Mapping[str, Any], warnings: Sequence[str]) -> str:
    """Say how many were read, how many of them were scored, and what became of the others."""
    unit, n_read, models = counts["unit"], counts["n_read"], counts["models"]
    if n_read == 1:
        unit = _ONE_UNIT.get(unit, unit.removesuffix("s"))
    states: dict[str, dict[str, Any]] = {repr(state): state for state in models.values()}
    if len(states) > 1:
        return _describe_model_score_counts(f"{n_read:,} {unit}", models)
    empty_state: dict[str, Any] = {"n_scored": 0, "n_undetected": 0, "reasons": {}}
    state = next(iter(states.values()), empty_state)
    n_scored, n_lost = state["n_scored"], state["n_undetected"]
    is_reported = not n_lost or _is_count_in_warnings(n_lost, warnings)
    losses = [] if is_reported else [f"{n_lost:,} were not detected and count as mistakes"]
    losses += _describe_missing_reasons(n_read - n_scored, state["reasons"], warnings)
    if n_scored == n_read:
        quantifier = "All" if n_read > 2 else "The"
        text = f"{quantifier} {n_read:,} {unit} read were scored"
    else:
        text = f"Of {n_read:,} {unit}, {n_scored:,} were scored"
    return "; ".join([text, ", ".join(losses)]) + "." if losses else f"{text}."


def _describe_model_score_counts(
    population_text: str, models: Mapping[str, Mapping[str, Any]]
) -> str:
    """Describe which models scored the fewest and the most people."""
    is_same = len({state["n_scored"] for state in models.values()}) == 1
    key, word = ("n_undetected", "not detected") if is_same else ("n_scored", "scored")
    names = sorted(models, key=lambda name: models[name][key])
    extremes_note = ""
    if len(names) > _MAX_NAMES:
        names = [names[0], names[-1]]
        extremes_note = f", fewest and most of {len(models)} models"
    counts = join_words(
        [f"{models[name][key]:,} by {shorten_name(name, 30)}" for name in names], conjunction="and"
    )
    return f"Of {population_text} read, {word} were {counts}{extremes_note}."


def _is_count_in_warnings(n: int, warnings: Sequence[str]) -> bool:
    """Return whether a warning already states this count."""
    return any(re.search(rf"(?<![\d,]){n:,} of ", text) for text in warnings)


def _describe_missing_reasons(
    n_lost: int, reasons: Mapping[str, int], warnings: Sequence[str]
) -> list[str]:
    """Say why some have no score, the two most frequent reasons by name."""
    ordered = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    texts = [
        f"{n:,} {_REASONS.get(name, f'not ({name})')}"
        for name, n in ordered[:2]
        if not _is_count_in_warnings(n, warnings)
    ]
    n_other = n_lost - sum(n for _, n in ordered[:2])
    return [*texts, *([f"{n_other:,} not for other reasons"] if n_other > 0 else [])]


def _describe_unknown_attribute_values(
    counts: Mapping[str, Any], attribute_titles: Mapping[str, str], warnings: Sequence[str]
) -> Iterator[str]:
    """Say whose value of an attribute is unknown, and who was not annotated for it."""
    for name, account in counts["attributes"].items():
        n_unknown, n_unannotated = account["n_unknown"], account["n_unannotated"]
        is_few = n_unknown < _MIN_SHARE * account["n_units"]
        if is_few or not n_unknown or any(text.startswith(f"{name}: ") for text in warnings):
            continue
        title = attribute_titles.get(name, name.replace("_", " "))
        title = f"{title[:1].upper()}{title[1:]}"
        never = f"was not annotated for {n_unannotated:,}" * bool(n_unannotated)
        unknown = f"is unknown for {n_unknown - n_unannotated:,}" * (n_unknown > n_unannotated)
        denominator = f" of the {account['n_units']:,}" * (account["n_units"] != counts["n_read"])
        yield f"{title} {' and '.join(filter(None, (never, unknown)))}{denominator}."


def _describe_uneven_missing_groups(
    counts: Mapping[str, Any], warnings: Iterable[str]
) -> Iterator[str]:
    """Say in which groups most and fewest were lost, where no warning says it."""
    texts = list(warnings)
    for row in counts.get("uneven") or ():
        if any(f"({row['attribute']}, model {row['model']!r})" in text for text in texts):
            continue
        lack = "were not detected" if row["loss"] == "detection" else "have no score"
        shares = [f"{100 * k / n:.0f} % of {shorten_name(group)}" for group, k, n in row["groups"]]
        model_note = f" ({row['model']})" * (len(counts["models"]) > 1)
        yield f"{shares[0]} and {' and '.join(shares[1:])} {lack}{model_note}."


_SMALL = ("insufficient units", "insufficient clusters")
ZERO_COUNT_PATTERN = r"(: 0$|^0 )"
"""Of a reason that counts nobody: by construction, and not for want of data."""
_MIN_NAMED = 10
"""People that a group needs for its value to be named."""
_MAX_REASON_WORDS = 10


def is_small() -> pl.Expr:
    """Mask the rows of ``group_metrics`` with too few units or clusters."""
    return pl.col("status").is_in(_SMALL)


def find_groups_too_small_to_judge(
    run: Run, line: Mapping[str, Any], direction: str
) -> pl.DataFrame:
    """Find the known groups that are too small to be judged by one measure."""
    rows = run.group_metrics.filter(
        *(pl.col(name).eq_missing(pl.lit(line[name])) for name in LINE_COLUMNS),
        pl.col("attribute").is_not_null(),
        ~pl.col("values").list.contains(UNKNOWN),
    ).with_columns(pl.col("reason").fill_null(""))
    small = rows.filter(
        is_small(),
        pl.col("n_units") > 0,
        ~pl.col("reason").str.contains(ZERO_COUNT_PATTERN),
    )
    columns = ("attribute", "group", "n_units", "n_clusters", "reason", "value")
    if small.height:
        raw_means = _compute_small_group_means(run, line, small)
        small = small.join(raw_means, on=["attribute", "group"], how="left")
        small = small.with_columns(value=pl.coalesce("value", "raw"))
    is_lower_better = direction == "lower"
    sense = -1.0 if is_lower_better else 1.0
    comparable = rows.filter(~is_small()).drop_nulls("value")
    worst = comparable.group_by("attribute").agg(worst=(sense * pl.col("value")).min())
    return (
        small.select(columns)
        .join(worst, on="attribute", how="left", maintain_order="left")
        .with_columns(
            looks_worse=(sense * pl.col("value") < pl.col("worst")).fill_null(value=False)
        )
        .drop("worst")
        .sort(sense * pl.col("value"), "attribute", "group", nulls_last=True)
    )


def _compute_small_group_means(
    run: Run, line: Mapping[str, Any], small: pl.DataFrame
) -> pl.DataFrame:
    """Take the mean of the scores of groups too small to be judged: ``attribute, group, raw``."""
    scores = run.scores.filter(
        *(pl.col(name).eq_missing(pl.lit(line[name])) for name in LINE_COLUMNS),
        pl.col("value").is_not_null(),
    ).select(pl.col("unit_id").cast(pl.String), score="value")
    empty_means = small.select("attribute", "group", raw=pl.lit(None, dtype=pl.Float64)).clear()
    if scores.is_empty() or not can_regroup(run):
        return empty_means
    group_keys = small.select("attribute", "group")
    members = rebuild_membership(run).frame.join(group_keys, on=["attribute", "group"], how="semi")
    rows = add_unit_weights(run, members.join(scores, on="unit_id"))
    mean = (pl.col("score") * pl.col("weight")).sum() / pl.col("weight").sum()
    return rows.group_by("attribute", "group").agg(raw=mean)


def describe_groups_too_small(
    small_groups: pl.DataFrame, line: MetricLine, names: DisplayNames
) -> str:
    """Say how many groups are too small to judge, and the one that looks worst of them."""
    if small_groups.is_empty():
        return ""
    titles = [
        names.words.format_attribute(name)
        for name in small_groups["attribute"].unique(maintain_order=True)
    ]
    attribute_note = (
        f" by {join_words([shorten_name(t) for t in titles], conjunction='and')}"
        if len(titles) < 3
        else ""
    )
    n = small_groups.height
    sentence = (
        f"{pluralise(n, 'group')}{attribute_note} {'has' if n == 1 else 'have'} too little data"
    )
    worse = small_groups.filter("looks_worse")
    large_enough = worse.filter(pl.col("n_units") >= _MIN_NAMED)
    if worse.height:
        direction_word = "worse" if line.direction != "none" else "lower"
        example = _describe_worst_small_group(large_enough, line, names)
        looks = "one looks" if worse.height == 1 else f"{worse.height:,} look"
        connector = ":" if worse.height == 1 else ", such as"
        return (
            f"{sentence}; {looks} {direction_word} than every group "
            f"judged{example and connector + example}."
        )
    reason = str(small_groups.sort("n_units", descending=True)["reason"][0])
    is_short = reason and len(reason.split()) <= _MAX_REASON_WORDS
    return f"{sentence} to judge by {line.phrase}{f' ({reason})' if is_short else ''}."


def _describe_worst_small_group(groups: pl.DataFrame, line: MetricLine, names: DisplayNames) -> str:
    if groups.is_empty():
        return ""
    row = groups.row(0, named=True)
    percent = " %" if line.unit == "fraction" else f" {line.unit}".rstrip()
    printed_value = f"{format_bare_value(row['value'], line.unit)}{percent}"
    return f" {names.group(row['attribute'], row['group'])} ({printed_value} of {row['n_units']:,})"


_MIN_SAME = 0.5
"""Of either group's people: with fewer in strata that both have, nothing is said."""
_MIN_COMPLETE_SHARE = 0.995
_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys((*LINE_COLUMNS, "attribute", "group_a", "group_b"), pl.String()),
    **dict.fromkeys(("threshold", "gap", "low", "high", "share"), pl.Float64()),
    "others": pl.List(pl.String),
    "n_strata": pl.Int64(),
}


def compute_standardised_gaps(run: Run, pairs: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Compare pairs of groups at the same mix of all other attributes of the audit."""
    spec = run.record.get("spec") or {}
    by = [name for entry in spec.get("by") or () for name in split_intersection(entry)]
    rows = []
    if not spec.get("protocol") and can_regroup(run):
        level = float(spec.get("level") or 0.95)
        for pair in pairs:
            pair_attributes = [
                attribute.removesuffix(KNOWN_SUFFIX)
                for attribute in split_intersection(pair["attribute"])
            ]
            other_attributes = [name for name in dict.fromkeys(by) if name not in pair_attributes]
            rows += (
                list(_compute_standardised_gap(run, pair, other_attributes, level))
                if other_attributes
                else []
            )
    return pl.DataFrame(rows, schema=_SCHEMA)


def _compute_standardised_gap(
    run: Run, pair: Mapping[str, Any], other_attributes: list[str], level: float
) -> Iterator[dict[str, Any]]:
    """Compute one pair's row, if there is one."""
    from scipy.special import ndtri

    scores = run.scores.filter(
        *(pl.col(name).eq_missing(pl.lit(pair[name])) for name in LINE_COLUMNS),
        pl.col("value").is_not_null(),
    ).select(pl.col("unit_id").cast(pl.String), "cluster_id", "value")
    if scores.is_empty():
        return
    pair_attribute = "*".join(
        attribute.removesuffix(KNOWN_SUFFIX) for attribute in split_intersection(pair["attribute"])
    )
    members = rebuild_membership(run, [pair_attribute, *other_attributes]).frame
    groups = pl.DataFrame({"group": [pair["group_a"], pair["group_b"]], "side": [0, 1]})
    pair_members = members.filter(pl.col("attribute") == pair["attribute"]).join(groups, on="group")
    known_members = members.join(pair_members, on="unit_id", how="semi").filter(
        pl.col("attribute").is_in(other_attributes), ~pl.col("values").list.contains(UNKNOWN)
    )
    # Whoever has several values of an attribute is in a stratum of those together.
    strata = (
        known_members.sort("attribute", "group")
        .group_by("unit_id")
        .agg(pl.struct("attribute", "group").alias("stratum"), n=pl.col("attribute").n_unique())
        .filter(pl.col("n") == len(other_attributes))
        .drop("n")
    )
    scored_members = add_unit_weights(run, pair_members.join(scores, on="unit_id"))
    rows = scored_members.join(strata, on="unit_id")
    if rows.is_empty():
        return
    cluster = pl.coalesce(pl.col("cluster_id").cast(pl.String), pl.col("unit_id"))
    coded = rows.with_columns(
        pl.col("stratum").hash().rank("dense") - 1, cluster=cluster.rank("dense") - 1
    )
    numbers = [coded[name].cast(pl.Int64).to_numpy() for name in ("side", "stratum", "cluster")]
    values, weights, n = (
        coded[name].cast(pl.Float64).to_numpy() for name in ("value", "weight", "n")
    )
    estimate = directly_standardised_gap(values, weights, numbers[0], numbers[1], numbers[2], n)
    if estimate is None:
        return
    inside = np.array([estimate.weight_a, estimate.weight_b])
    total = np.array(
        [scored_members.filter(side=side_index)["weight"].sum() for side_index in (0, 1)]
    )
    if (inside < _MIN_SAME * total).any():
        return
    half_width = float(ndtri(0.5 + level / 2.0)) * estimate.standard_error
    bounds = (
        (estimate.gap - half_width, estimate.gap + half_width)
        if np.isfinite(half_width)
        else (None, None)
    )
    yield {
        **{name: pair[name] for name in (*LINE_COLUMNS, "attribute", "group_a", "group_b")},
        "others": other_attributes,
        "gap": estimate.gap,
        "low": bounds[0],
        "high": bounds[1],
        "share": float(inside.sum() / total.sum()),
        "n_strata": estimate.n_strata,
    }


def describe_standardised_gap(
    row: Mapping[str, Any], gap: float, unit: str, run_terms: RunTerms
) -> str:
    """Say a pair's gap at the same mix of the others, as a part of a sentence.

    Examples
    --------
    >>> row = {"others": ["age"], "gap": -0.045, "low": -0.069, "high": -0.021, "share": 1.0}
    >>> describe_standardised_gap(row, -0.14, "fraction", RunTerms())
    'at the same mix of age: 4.5 (2.1 to 6.9; exploratory)'
    >>> describe_standardised_gap(row | {"share": 0.8}, 0.14, "fraction", RunTerms())
    'at the same mix of age: −4.5 (−6.9 to −2.1; 80 % of both groups; exploratory)'
    """
    sign = -1.0 if gap < 0 else 1.0
    low, high = row["low"], row["high"]
    signed_gap = sign * row["gap"]
    notes = ["exploratory"]
    if row["share"] < _MIN_COMPLETE_SHARE:
        notes.insert(0, f"{100 * row['share']:.0f} % of both groups")
    sentence = format_bare_value(signed_gap, unit)
    if low is not None and high is not None:
        bounds = sorted((sign * low, sign * high))
        sentence = format_bare_value(signed_gap, unit, bounds)
        notes.insert(0, format_interval(bounds[0], bounds[1], unit, signed_gap))
    attribute_titles = join_words(
        [run_terms.format_attribute(name) for name in row["others"]], conjunction="and"
    )
    return f"at the same mix of {attribute_titles}: {sentence} ({'; '.join(notes)})"
