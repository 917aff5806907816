"""One row per metric and attribute: what the test found there, and what it could have detected.

From the tables ``disparities`` and ``group_metrics`` to the material of which sentences are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import polars as pl

from isolux.groups.unknown import UNKNOWN
from isolux.statements.leading import KEY, MEASURE, find_leading_comparisons, flag_known_groups
from isolux.stats.shrinkage import shrunken
from isolux.vocabulary.containers import Run
from isolux.vocabulary.words import OUTSIDE, UNTESTED

__all__ = ["KEY", "blocks_of", "unjudged_of"]

_PAIR = (
    "group_a", "group_b", "value", "low", "high", "p_adjusted", "status", "reason",
    "n_units_a", "n_units_b", "n_clusters_a", "n_clusters_b", "shrunken", "n_gaps",
)  # fmt: skip
_READ = (
    *KEY, "kind", "p_value", "detectable", *(c for c in _PAIR if c not in ("shrunken", "n_gaps")),
)  # fmt: skip
_TIE = 1e-9
_SMALL = ("insufficient units", "insufficient clusters")


def blocks_of(run: Run, alpha: float, lower_is_better: Collection[str]) -> pl.DataFrame:
    """Lay out what was found about each metric and attribute.

    Parameters
    ----------
    run : Run
    alpha : float
        A pair differs if its family-adjusted p is at most this.
    lower_is_better : collection of str
        Metrics of which a higher value is worse.

    Returns
    -------
    polars.DataFrame
        Keyed by ``KEY``. The leading pair (``group_a``, ``group_b``, ``value``, …): of the pairs
        that differ, the one of the group that is served worst (``disparity.leading``, which also
        gives ``worst``, ``second_group``, …); if no pair does but a group differs from everyone
        else, that group and everyone; else the pair farthest apart. Known
        groups go before people whose value is unknown; ``aside``: nothing but the unknown
        differs, and ``known_a``, ``known_b``, ``known_gap`` are the known groups farthest apart
        (null: there are no two). ``strength`` (0 or
        more, the metric's unit): how far the interval keeps from 0. ``n_pairs``, ``n_differ``,
        ``n_untested`` (apart, and nothing varies within either group: no test can be made; the
        first is ``untested_a``, ``untested_b``, ``untested_gap``, ``untested_low``,
        ``untested_high``), ``found``;
        ``shrunken`` (the pair's gap, shrunken by what the ``n_gaps`` gaps of the metric look like
        over all attributes and classes: empirical Bayes);
        ``any_p`` (do the groups differ at all), ``any_found``;
        ``detectable_best``, ``detectable_worst`` (smallest detectable difference of the pair
        where it is smallest and largest, with ``group_a_best``, …); ``with_unknown`` (people of
        unknown value are one of the groups compared, and so part of the spread);
        ``at_most`` (how far apart two groups judged are at most, one-sided), ``within_p`` (adjusted
        p of the claim that it is within the margin asked about), ``within_status``,
        ``within_reason``; ``range_low``, ``range_high``
        (if the leading pair is the widest: an interval of it, all pairs at once); ``spread``,
        ``spread_low``, ``spread_high`` (the noise-corrected standard deviation); ``n_units`` (of
        everyone); ``covered`` (an intersection not shown to differ by more than an attribute in
        it).
    """
    compared = _compared(run, alpha)
    pairs = compared.filter("pair")
    found = _leading(compared, run.group_metrics, lower_is_better)
    for extra in (_counts(pairs), _known(pairs), _seen(pairs), *_whole(run.disparities)):
        found = found.join(extra, on=list(KEY), how="left", nulls_equal=True)
    everyone = run.group_metrics.filter(pl.col("attribute").is_null()).select(*MEASURE, "n_units")
    found = found.join(everyone, on=list(MEASURE), how="left", nulls_equal=True)
    # The range may lie between other groups: those whose value is unknown, or that no pair joins.
    widest = (pl.col("range_value") - pl.col("value").abs()).abs() < _TIE
    return found.with_columns(
        pl.col("n_pairs", "n_differ", "n_untested").fill_null(0),
        pl.col("with_unknown", "outside").fill_null(value=False),
        *(pl.when(widest).then(name).alias(name) for name in ("range_low", "range_high")),
        found="differs",
        aside=pl.col("differs") & pl.col("named").not_(),
        any_found=(pl.col("any_p") <= alpha).fill_null(value=False),
    )


def unjudged_of(group_metrics: pl.DataFrame) -> pl.DataFrame:
    """List the groups that are not judged, with in how many of their measures that is so.

    A measure of which a group has nobody is left out, as long as it has somebody in another: groups
    by the truth have no people of another class.

    Returns
    -------
    polars.DataFrame
        ``model, attribute, group, small`` (true: too few units or clusters; false: the formula is
        undefined or nothing was scored), ``named`` (false: a value is unknown), ``n_without``,
        ``n_measures``, ``n_units`` and ``n_clusters`` (the most in any measure), ``status``,
        ``reason``.
    """
    of_group = ["model", "attribute", "group"]
    somebody = (pl.col("n_units") > 0).fill_null(value=True)
    scored = (pl.col("status") != "not scored").fill_null(value=True)
    nobody = (somebody | scored).any().over(of_group).not_()
    rows = group_metrics.filter(pl.col("attribute").is_not_null(), somebody | nobody)
    totals = rows.group_by(of_group).agg(n_measures=pl.len())
    small = pl.col("status").is_in(_SMALL)  # with few clusters there is a value, and no more
    without = rows.filter(pl.col("value").is_null() | small).with_columns(small=small)
    counted = (
        without.sort("n_units", "status", "reason", descending=[True, False, False])
        .group_by(*of_group, "small", maintain_order=True)
        .agg(
            pl.len().alias("n_without"),
            pl.col("values").list.contains(UNKNOWN).first().not_().alias("named"),
            pl.col("n_units").max(),
            pl.col("n_clusters").max(),
            pl.col("status").first(),
            pl.col("reason").first(),
        )
    )
    return counted.join(totals, on=of_group).sort(
        "model", "attribute", "small", "named", "n_without", "n_units", "group",
        descending=[False, False, True, True, True, True, False],
    )  # fmt: skip


def _compared(run: Run, alpha: float) -> pl.DataFrame:
    """Take all comparisons of two groups, or of a group with everyone, that have a value."""
    # There is a row for each pair of groups: what is not read of them is not copied either.
    rows = (
        run.disparities.select(_READ)
        .filter(
            pl.col("kind").is_in(["difference", "difference_to_overall"]),
            pl.col("value").is_not_null(),
        )
        .with_columns(
            differs=(pl.col("p_adjusted") <= alpha).fill_null(value=False),
            pair=pl.col("kind") == "difference",
        )
    )
    return flag_known_groups(_with_shrunken(rows, alpha), run.group_metrics)


def _with_shrunken(rows: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """Add each pair's gap as empirical Bayes has it; a family is all pairs of one metric."""
    from scipy.special import ndtri

    width = 2.0 * float(ndtri(1.0 - alpha / 2.0))
    error = ((pl.col("high") - pl.col("low")) / width).fill_null(0.0)
    less, family = np.full(rows.height, np.nan), np.zeros(rows.height, dtype=np.int64)
    family_of = ("model", "task", "metric", "threshold")
    places = rows.select(*family_of, "pair", "value", "low", "high").with_row_index("_at")
    for own in places.filter("pair").partition_by(family_of):
        at = own["_at"].to_numpy()
        errors = own.select(error).to_series().to_numpy()
        less[at], family[at] = shrunken(own["value"].to_numpy(), errors), own.height
    return rows.with_columns(
        shrunken=pl.Series(less).fill_nan(None), n_gaps=pl.Series(family, dtype=pl.Int64)
    )


def _leading(
    compared: pl.DataFrame, group_metrics: pl.DataFrame, lower_is_better: Collection[str]
) -> pl.DataFrame:
    """Take each block's leading comparison; where nothing differs, the widest gap."""
    # A known group against everyone does not go before a pair with the unknown: they are in
    # everyone, and may be all that it differs from.
    first = find_leading_comparisons(compared, group_metrics, lower_is_better)
    read = compared.with_row_index("_at").select(
        *KEY, "_at", "differs", "pair", "named", "group_a", "group_b", _size=pl.col("value").abs()
    )
    order = ("pair", "named", "_size", "group_a", "group_b")
    rest = (
        read.join(first, on=list(KEY), how="anti", nulls_equal=True)
        .sort(order, descending=[True] * 3 + [False] * 2)
        .group_by(KEY, maintain_order=True)
        .agg(pl.col("_at").first())
    )
    same = compared[rest["_at"]].with_columns(strength=0.0, covered=False)
    return pl.concat([first, same], how="diagonal").select(
        *KEY, *_PAIR, "differs", "pair", "named", "strength", "worst", "covered",
        "second_group", "second_reference", "second_value", "second_low", "second_high",
        "second_differs", "n_others",
    )  # fmt: skip


def _known(pairs: pl.DataFrame) -> pl.DataFrame:
    """Find the two known groups that are farthest apart."""
    read = pairs.select(*KEY, "group_a", "group_b", "value", "named")
    widest = read.filter("named").sort(
        pl.col("value").abs(), "group_a", "group_b", descending=[True, False, False]
    )
    return widest.group_by(KEY, maintain_order=True).agg(
        known_a=pl.col("group_a").first(),
        known_b=pl.col("group_b").first(),
        known_gap=pl.col("value").first(),
    )


# A pair without a p, and why: nothing varies within either group (``disparity.family``).
_UNTESTED = pl.col("p_value").is_null() & (pl.col("reason") == UNTESTED)


def _counts(pairs: pl.DataFrame) -> pl.DataFrame:
    """Count the pairs of known groups, and those that differ; of all pairs where none is known."""
    counted = pl.col("named") | pl.col("named").any().not_()
    return pairs.group_by(KEY).agg(
        n_pairs=counted.sum(),
        n_differ=(pl.col("differs") & counted).sum(),
        n_untested=(_UNTESTED & counted).sum(),
        untested_a=pl.col("group_a").filter(_UNTESTED & counted).first(),
        untested_b=pl.col("group_b").filter(_UNTESTED & counted).first(),
        untested_gap=pl.col("value").filter(_UNTESTED & counted).first(),
        untested_low=pl.col("low").filter(_UNTESTED & counted).first(),
        untested_high=pl.col("high").filter(_UNTESTED & counted).first(),
        with_unknown=pl.col("named").all().not_(),
    )


def _seen(pairs: pl.DataFrame) -> pl.DataFrame:
    read = pairs.select(*KEY, "group_a", "group_b", "detectable", "named")
    ranked = read.drop_nulls("detectable").filter(
        pl.col("named") | pl.col("named").any().over(KEY).not_()
    )
    ranked = ranked.sort("detectable", "group_a", "group_b")
    names = ("detectable", "group_a", "group_b")
    return ranked.group_by(KEY, maintain_order=True).agg(
        pl.col(names).first().name.suffix("_best"), pl.col(names).last().name.suffix("_worst")
    )


def _whole(disparities: pl.DataFrame) -> Iterable[pl.DataFrame]:
    test = disparities.filter(kind="any_difference").unique(KEY, keep="first", maintain_order=True)
    yield test.select(*KEY, any_p=pl.coalesce("p_adjusted", "p_value"))
    widest = disparities.filter(kind="range").unique(KEY, keep="first")
    yield widest.select(*KEY, range_value="value", range_low="low", range_high="high")
    spread = disparities.filter(kind="noise_corrected_sd").unique(KEY, keep="first")
    yield spread.select(*KEY, spread="value", spread_low="low", spread_high="high")
    beside = disparities.filter(kind="difference_to_overall")
    yield beside.group_by(KEY).agg(outside=(pl.col("reason") == OUTSIDE).any())
    within = disparities.filter(kind="within").unique(KEY, keep="first")
    yield within.select(
        *KEY, at_most="high", within_p="p_adjusted", within_status="status", within_reason="reason"
    )
