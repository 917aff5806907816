"""One row per metric and attribute: what the test found there, and what it could have detected.

From the tables ``disparities`` and ``group_metrics`` to the material of which sentences are made.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from isolux.groups.large import size_rank
from isolux.groups.unknown import UNKNOWN
from isolux.stats.shrinkage import shrunken
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import crossed
from isolux.vocabulary.words import OUTSIDE, UNTESTED

__all__ = ["KEY", "blocks_of", "unjudged_of"]

MEASURE = ("model", "task", "metric", "label", "threshold")
KEY = (*MEASURE, "attribute")
_PAIR = (
    "group_a", "group_b", "value", "low", "high", "p_adjusted", "status", "reason",
    "n_units_a", "n_units_b", "n_clusters_a", "n_clusters_b", "shrunken", "n_gaps",
)  # fmt: skip
_READ = (
    *KEY, "kind", "p_value", "detectable", *(c for c in _PAIR if c not in ("shrunken", "n_gaps")),
)  # fmt: skip
_TIE = 1e-9
_SMALL = ("insufficient units", "insufficient clusters")


def blocks_of(run: Run, alpha: float) -> pl.DataFrame:
    """Lay out what was found about each metric and attribute.

    Parameters
    ----------
    run : Run
    alpha : float
        A pair differs if its family-adjusted p is at most this.

    Returns
    -------
    polars.DataFrame
        Keyed by ``KEY``. The leading pair (``group_a``, ``group_b``, ``value``, …): of the pairs
        that differ, those of large groups first (``groups.large``; ``large``: their rank), then
        the one whose interval keeps farthest from 0; if no pair does but a group
        differs from everyone else, that group and everyone; else the pair farthest apart. Known
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
    found = _leading(compared)
    for extra in (_counts(pairs), _known(pairs), _seen(pairs), *_whole(run.disparities)):
        found = found.join(extra, on=list(KEY), how="left", nulls_equal=True)
    everyone = run.group_metrics.filter(pl.col("attribute").is_null()).select(*MEASURE, "n_units")
    found = found.join(everyone, on=list(MEASURE), how="left", nulls_equal=True)
    # The range may lie between other groups: those whose value is unknown, or that no pair joins.
    widest = (pl.col("range_value") - pl.col("value").abs()).abs() < _TIE
    found = found.with_columns(
        pl.col("n_pairs", "n_differ", "n_untested").fill_null(0),
        pl.col("with_unknown", "outside").fill_null(value=False),
        *(pl.when(widest).then(name).alias(name) for name in ("range_low", "range_high")),
        found="differs",
        aside=pl.col("differs") & pl.col("named").not_(),
        any_found=(pl.col("any_p") <= alpha).fill_null(value=False),
    )
    return _with_covered(found)


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


def _strength() -> pl.Expr:
    """How far the interval keeps from 0; 0 where it holds 0, or where there is none."""
    below, above = -pl.col("high"), pl.col("low")
    return pl.max_horizontal(below, above, 0.0).fill_null(0.0)


def _compared(run: Run, alpha: float) -> pl.DataFrame:
    """Take all comparisons of two groups, or of a group with everyone, that have a value."""
    unknown = run.group_metrics.filter(pl.col("values").list.contains(UNKNOWN))
    unnamed = unknown.select("attribute", "group").unique()
    # There is a row for each pair of groups: what is not read of them is not copied either.
    rows = (
        run.disparities.select(_READ)
        .filter(
            pl.col("kind").is_in(["difference", "difference_to_overall"]),
            pl.col("value").is_not_null(),
        )
        .with_columns(
            strength=_strength(),
            differs=(pl.col("p_adjusted") <= alpha).fill_null(value=False),
            pair=pl.col("kind") == "difference",
            named=pl.lit(value=True),
        )
    )
    rows = _with_shrunken(rows, alpha)
    for side in ("group_a", "group_b"):
        marked = unnamed.select("attribute", pl.col("group").alias(side), _mark=pl.lit(value=False))
        rows = rows.join(marked, on=["attribute", side], how="left").with_columns(
            named=pl.col("named") & pl.col("_mark").fill_null(value=True)
        )
        rows = rows.drop("_mark")
    everyone = run.group_metrics.filter(pl.col("attribute").is_null())
    sizes = everyone.select(*MEASURE, _everyone="n_units").unique(MEASURE, keep="first")
    rows = rows.join(sizes, on=list(MEASURE), how="left", nulls_equal=True, maintain_order="left")
    # Classes are ranked against one another by how sure their gap is; size would mislead there.
    whole = pl.col("label").is_null()
    large = size_rank("n_units_a", "n_units_b", "_everyone")
    return rows.with_columns(large=pl.when(whole).then(large).otherwise(0))


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


def _leading(compared: pl.DataFrame) -> pl.DataFrame:
    # Strength ranks only what differs: among the others all whose interval holds 0 tie. A known
    # group against everyone does not go before a pair with the unknown: they are in everyone, and
    # may be all that it differs from.
    read = compared.with_row_index("_at").select(
        *KEY,
        "_at",
        "differs",
        "pair",
        "named",
        "group_a",
        "group_b",
        _large=pl.when("differs").then("large").otherwise(0),
        _strength=pl.when("differs").then("strength").otherwise(0.0),
        _size=pl.col("value").abs(),
    )
    order = ("differs", "pair", "named", "_large", "_strength", "_size", "group_a", "group_b")
    ranked = read.sort(order, descending=[True] * 6 + [False] * 2)
    first = ranked.group_by(KEY, maintain_order=True).agg(pl.col("_at").first())
    return compared[first["_at"]].select(
        *KEY, *_PAIR, "strength", "differs", "pair", "named", "large"
    )


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


def _with_covered(blocks: pl.DataFrame) -> pl.DataFrame:
    """Mark intersections whose gap is not shown to exceed that of an attribute within them."""
    names = blocks["attribute"].unique().to_list()
    within = [
        {"attribute": whole, "part": part}
        for whole in names
        for part in names
        if set(crossed(part)) < set(crossed(whole))
    ]
    schema = {"attribute": pl.String, "part": pl.String}
    gaps = blocks.filter("found").select(*MEASURE, part="attribute", part_gap=pl.col("value").abs())
    largest = (
        pl.DataFrame(within, schema=schema)
        .join(gaps, on="part")
        .group_by(KEY)
        .agg(pl.col("part_gap").max())
    )
    joined = blocks.join(largest, on=list(KEY), how="left", nulls_equal=True)
    return joined.with_columns(
        covered=(pl.col("strength") <= pl.col("part_gap") + _TIE).fill_null(value=False)
    ).drop("part_gap")
