"""Groups of one run of whom the other run has nobody, or clearly fewer than of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from isolux.core.containers import Run
from isolux.core.notes import Caution
from isolux.core.spec import split_intersection
from isolux.groups.missing_predictions import is_share_uneven
from isolux.groups.run_membership import can_regroup, list_people_with_score, rebuild_membership
from isolux.stats.constants import MIN_GROUP_SIZE_FOR_LOSSES

_MAX_LISTED = 3
_CHANCE = 0.01
"""Where people are lost at random, a group of a few may be lost whole: a group is named where that
would happen in fewer than 1 of 100 samples, at the share (Laplace's) that the other groups lose."""


def caution_on_lost_groups(
    first: Run, second: Run, matches: pl.DataFrame, names: Sequence[str]
) -> list[Caution]:
    """Name the groups that a comparison says nothing of, the largest first.

    ``matches`` is the frame ``unit_id`` (of the second run), ``as_first``.
    """
    scored = list_people_with_score(first).rename({"unit_id": "as_first"})
    other_scored = list_people_with_score(second)
    shared = matches.join(scored, on="as_first", how="semi")
    shared = shared.join(other_scored, on="unit_id", how="semi")
    cautions = []
    for run, other_name, name, column in (
        (first, names[1], names[0], "as_first"),
        (second, names[0], names[1], "unit_id"),
    ):
        if can_regroup(run):
            counts = _count_lost(run, shared[column], matches[column])
            cautions += [*_name_lost_groups(counts, name, other_name)]
            cautions += [*_describe_uneven_losses(counts, name, other_name)]
    return cautions


def _count_lost(run: Run, shared: pl.Series, matched: pl.Series) -> pl.DataFrame:
    """Count by group who has a score: all, not scored by both, and absent from the other run."""
    members = rebuild_membership(run).frame.join(
        list_people_with_score(run), on="unit_id", how="semi"
    )
    is_lost = ~pl.col("unit_id").is_in(shared.implode())
    is_absent = ~pl.col("unit_id").is_in(matched.implode())
    return members.group_by("attribute", "group", "values", maintain_order=True).agg(
        n=pl.len(), n_lost=is_lost.sum(), n_absent=is_absent.sum()
    )


def _name_lost_groups(counts: pl.DataFrame, name: str, other_name: str) -> Iterator[Caution]:
    """Caution on groups that the other run lacks whole; a part of a lost group is not named."""
    lost_values: set[tuple[str, str]] = set()
    n_others, n_lost_others = (
        pl.col(c).sum().over("attribute") - pl.col(c) for c in ("n", "n_lost")
    )
    chance = ((n_lost_others + 1) / (n_others + 2)).pow(pl.col("n"))
    lost_rows = counts.filter(pl.col("n_lost") == pl.col("n"), chance < _CHANCE).sort(
        pl.col("values").list.len(), -pl.col("n").cast(pl.Int64), maintain_order=True
    )
    for attribute, group, values, n in lost_rows.select("attribute", "group", "values", "n").rows():
        group_values = set(zip(split_intersection(attribute), values, strict=False))
        if group_values & lost_values:
            continue
        lost_values |= group_values if len(group_values) == 1 else set()
        yield Caution(
            f"{other_name} scored nobody of {group} ({attribute}), of whom {name} scored {n:,}:"
            " the comparison says nothing of them."
        )


def _describe_uneven_losses(counts: pl.DataFrame, name: str, other_name: str) -> Iterator[Caution]:
    """Caution where people absent from the other run are clearly more in some groups."""
    rows = counts.filter(
        pl.col("n") >= MIN_GROUP_SIZE_FOR_LOSSES, pl.col("n_lost") < pl.col("n")
    ).sort(pl.col("n_absent") / pl.col("n"), descending=True, maintain_order=True)
    alpha = _CHANCE / max(counts["attribute"].n_unique(), 1)
    for (attribute,), groups in rows.group_by("attribute", maintain_order=True):
        if len(split_intersection(str(attribute))) > 1:
            continue
        if is_share_uneven(groups["n_absent"].to_numpy(), groups["n"].to_numpy(), alpha):
            extremes = pl.concat([groups.head(_MAX_LISTED - 1), groups.tail(1)]).unique(
                maintain_order=True
            )
            shares = "; ".join(
                f"{group} {n_absent:,} of {n:,} ({100 * n_absent / n:.0f} %)"
                for group, n_absent, n in extremes.select("group", "n_absent", "n").rows()
            )
            yield Caution(
                f"People of {name} who are absent from {other_name} are uneven ({attribute}):"
                f" {shares}. The comparison is of the others alone."
            )
