"""Vote rules: which of the annotators' values of a unit are used.

Second step of ``membership``. Sources: FACET (Gustafson et al. 2023, section 5.2 and Table 3) for
``any+unknown``, whose people may carry several skin tones. FACET has no single tone and no rule for
ties, and prefers "a distribution over perceived skin tone" to a single value (appendix C): so
``top`` assigns a tie to all of its groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.errors import SpecError

VOTE_RULES = ("any", "any+unknown", "majority", "top", "top-or-none", "at-least:K")


@dataclass(frozen=True, slots=True)
class VoteRule:
    """A rule, and the minimum number of votes of ``at-least``."""

    name: str
    min_votes: int = 1


def parse_vote_rule(text: str) -> VoteRule:
    """Parse a vote rule."""
    rule = text.strip().lower()
    name, colon, count = rule.partition(":")
    if name == "at-least" and count.strip().isdecimal() and int(count) >= 1:
        return VoteRule(name, int(count))
    if not colon and rule in VOTE_RULES:
        return VoteRule(rule)
    raise SpecError(
        "the vote rule cannot be used",
        expected="one of " + ", ".join(VOTE_RULES) + " (K a whole number from 1)",
        found=repr(text),
    )


def apply_vote_rule(
    rows: pl.DataFrame, rule: VoteRule, n_units: int
) -> tuple[pl.DataFrame, pl.Series]:
    """Reduce the annotators' values to those that the rule accepts; also list tied units."""
    rows = rows.filter(pl.col("votes").fill_null(1.0) > 0).with_columns(
        pl.col("unit", "code").cast(pl.Int64)
    )
    tied_units = pl.Series("unit", [], dtype=pl.Int64)
    if rule.name in {"any", "any+unknown"}:
        winners = rows.select("unit", "code")
    else:
        winners = _select_winners(_count_votes(rows), rows, rule)
    if rule.name in {"top", "top-or-none"}:
        # Several winners of one unit are a tie.
        tied_units = winners.filter(pl.col("unit").is_duplicated())["unit"].unique()
    if rule.name == "top-or-none":
        winners = winners.filter(pl.col("unit").is_unique())
    known_values = drop_duplicate_pairs(winners.filter(pl.col("code").is_not_null()))
    is_unknown = np.ones(n_units, dtype=np.bool_)
    is_unknown[known_values["unit"].to_numpy()] = False
    if rule.name == "any+unknown":
        is_unknown[winners.filter(pl.col("code").is_null())["unit"].to_numpy()] = True
    unknown = pl.DataFrame({"unit": np.flatnonzero(is_unknown)}, schema={"unit": pl.Int64})
    return pl.concat(
        [known_values, unknown.with_columns(code=pl.lit(None, dtype=pl.Int64))]
    ), tied_units


def drop_duplicate_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Remove repeated pairs of ``unit`` and ``code`` (no nulls): one whole number per pair."""
    # One row per unit, the usual case.
    if pairs["unit"].cast(pl.Int64).diff().drop_nulls().gt(0).all():
        return pairs.select(pl.col("unit", "code").cast(pl.Int64))
    width = (pairs["code"].cast(pl.Int64).max() or 0) + 1  # type: ignore[operator]
    key = pairs.select(key=pl.col("unit").cast(pl.Int64) * width + pl.col("code")).unique()
    return key.select(unit=pl.col("key") // width, code=pl.col("key") % width)


def _select_winners(vote_counts: pl.DataFrame, rows: pl.DataFrame, rule: VoteRule) -> pl.DataFrame:
    """Select the winning values, all of a tie; unknown may be among them."""
    if rule.name == "at-least":
        return vote_counts.filter(pl.col("votes") >= rule.min_votes).select("unit", "code")
    if rule.name == "majority":
        total = _count_annotators(rows)
        majority = vote_counts.join(total, on="unit").filter(
            # More than half of those who answered, not just more than any other value.
            2 * pl.col("votes") > pl.col("annotators")
        )
        return majority.select("unit", "code")
    top_values = vote_counts.filter(pl.col("votes") == pl.col("votes").max().over("unit"))
    return top_values.select("unit", "code")


def _split_named_and_anonymous(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fill in votes of 1; split rows of named annotators from anonymous ones."""
    weighted_rows = rows.select("unit", "code", "annotator", votes=pl.col("votes").fill_null(1.0))
    is_named = pl.col("annotator").is_not_null()
    return weighted_rows.filter(is_named), weighted_rows.filter(~is_named)


def _count_votes(rows: pl.DataFrame) -> pl.DataFrame:
    """Count the votes of each unit and value: ``unit, code, votes``."""
    annotator_rows, anonymous_rows = _split_named_and_anonymous(rows)
    # Repeated rows of a named annotator count once, by the largest vote.
    annotator_votes = annotator_rows.group_by("unit", "code", "annotator").agg(
        pl.col("votes").max()
    )
    all_votes = pl.concat(
        [anonymous_rows.drop("annotator"), annotator_votes.select("unit", "code", "votes")]
    )
    return all_votes.group_by("unit", "code").agg(pl.col("votes").sum())


def _count_annotators(rows: pl.DataFrame) -> pl.DataFrame:
    """Count the annotators of each unit: ``unit, annotators`` (see ``majority``)."""
    annotator_rows, anonymous_rows = _split_named_and_anonymous(rows)
    # An annotator who chose two values is still one voter.
    annotator_votes = annotator_rows.group_by("unit", "annotator").agg(pl.col("votes").max())
    all_votes = pl.concat(
        [anonymous_rows.select("unit", "votes"), annotator_votes.select("unit", "votes")]
    )
    return all_votes.group_by("unit").agg(annotators=pl.col("votes").sum())
