"""What this audit could have detected, and whom to add to detect more: for building the data.

From the smallest detectable difference of each pair (``disparities.detectable``: power .8 at the
level of the whole family) to the fewest people who would bring it down to a difference one cares
about. With v_a = n_a · SE_a², the variance of one person's part, and W = (SE_a² + SE_b²) ·
(target / detectable)², the fewest people with v_a / n_a' + v_b / n_b' = W are shared out as Neyman
does:

    n_a' = √v_a (√v_a + √v_b) / W,   n_b' likewise,

and where that is fewer than one group has, the other grows alone. Adding to the smaller group alone
is often no way at all: the error of the other one stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import polars as pl

from isolux.analyses._judged import findings_table
from isolux.groups.unknown import UNKNOWN
from isolux.statements.leading import MEASURE
from isolux.statements.numbers import points
from isolux.statements.words import Words, words_of
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    tests=False,
    samples=True,  # of the audit's tables alone, whose standard errors are the sample's
    title="What could be detected, and whom to add",
    summary="The smallest difference that this audit could have detected, and how many more "
    "people of which group it takes to detect a smaller one.",
    references=(
        Reference(
            "bloom-1995",
            "Bloom, H. S. (1995). Minimum detectable effects: A simple way to report the "
            "statistical power of experimental designs. Evaluation Review 19(5), 547-556.",
            "the detectable effect as a multiple of the standard error",
        ),
        Reference(
            "neyman-1934",
            "Neyman, J. (1934). On the two different aspects of the representative method. Journal "
            "of the Royal Statistical Society 97(4), 558-625.",
            "the best allocation of a sample to strata",
        ),
    ),
    assumptions=(
        (
            "People who are added resemble those already in their group: equally accurate answers, "
            "as similar within a cluster, as many per cluster."
        ),
        "The number of tests stays the same: more groups or metrics need more people.",
        "The two groups share few clusters; if they share many, fewer people are needed.",
    ),
)

_SHOWN = 30


def explain(run: Run, *, targets: Sequence[float] = (0.05, 0.02)) -> Explained:
    """Say for each metric and attribute what could be seen, and whom to add to see a target.

    Parameters
    ----------
    run : Run
        Its ``disparities`` (differences of named groups) and ``group_metrics`` are read.
    targets : sequence of float
        Differences to be detected with power .8, in the metric's unit (0.05: five percentage points
        for a fraction). The defaults are for fractions and leave other metrics out.

    Returns
    -------
    Explained
        A finding for each metric and attribute: ``effect`` is the smallest difference that the
        worst-measured pair of judged groups could have shown, ``n`` the units that it rests on.
        Tables: the fewest people to add by pair and target, and groups below the audit's minimum.

    Raises
    ------
    SpecError
        A target that is not above 0.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if not targets or min(targets) <= 0:
        raise SpecError(
            "a target has to be a difference", expected="numbers above 0", found=str(targets)
        )
    if "model_a" in run.disparities.columns or run.disparities.is_empty():
        return Explained(FINDINGS.empty())
    words = words_of(run)
    pairs = _worst_pairs(run)
    needed = _needed(pairs, words, tuple(targets), list(targets) == [0.05, 0.02])
    told = _one_of_all_classes(needed.filter(first=True))
    rows = [_finding(row, words) for row in told.iter_rows(named=True)]
    tables = {}
    if needed.height:
        tables[f"Whom to add to detect a difference with power 0.8 (first {_SHOWN})"] = _shown(
            needed, words
        )
    small = _small(run, words)
    if small.height:
        tables[f"Groups below the audit's minimum (first {_SHOWN})"] = small
    return Explained(findings_table(rows), tables)


def _worst_pairs(run: Run) -> pl.DataFrame:
    """Find the pair of named groups whose detectable difference is largest, per attribute."""
    named = run.group_metrics.filter(
        pl.col("attribute").is_not_null() & ~pl.col("values").list.contains(UNKNOWN)
    ).select(*MEASURE, "attribute", "group", standard_error=_error(run))
    keys = [*MEASURE, "attribute"]
    pairs = run.disparities.filter(
        (pl.col("kind") == "difference")
        & pl.col("detectable").is_finite()
        & (pl.col("detectable") > 0)
    ).select(
        *keys,
        "group_a",
        "group_b",
        "detectable",
        "n_units_a",
        "n_units_b",
        "n_clusters_a",
        "n_clusters_b",
    )
    for side in ("a", "b"):
        own = named.rename({"group": f"group_{side}", "standard_error": f"se_{side}"})
        pairs = pairs.join(own, on=[*keys, f"group_{side}"], how="inner", nulls_equal=True)
    known = (pl.col("se_a") + pl.col("se_b")).is_finite()
    return (
        pairs.filter(known)
        .sort("detectable", "group_a", "group_b", descending=[True, False, False])
        .group_by(keys, maintain_order=True)
        .first()
        .pipe(_larger_error_first)
    )


def _error(run: Run) -> pl.Expr:
    """Take a group's standard error; of one without an error, what its interval amounts to."""
    level = float((run.record.get("spec") or {}).get("level", 0.95))
    deviate = NormalDist().inv_cdf((1.0 + level) / 2.0)
    half = (pl.col("high") - pl.col("low")) / 2.0
    own = pl.col("standard_error")
    return pl.when(own > 0).then(own).otherwise(half / deviate)


def _larger_error_first(pairs: pl.DataFrame) -> pl.DataFrame:
    """Let ``a`` be the group with the larger error: whom to add first."""
    turned = pl.col("se_a") < pl.col("se_b")
    both = ("group", "se", "n_units", "n_clusters")
    return pairs.with_columns(
        *(
            pl.when(turned)
            .then(f"{name}_{there}")
            .otherwise(f"{name}_{here}")
            .alias(f"{name}_{here}")
            for name in both
            for here, there in (("a", "b"), ("b", "a"))
        )
    )


def _needed(
    pairs: pl.DataFrame, words: Words, targets: tuple[float, ...], of_fractions: bool
) -> pl.DataFrame:
    """Add, for each target, how many units and clusters of each group it needs."""
    fractions = [name for name, m in words.metrics.items() if m.unit == "fraction"]
    pairs = pairs.with_row_index("pair").join(
        pl.DataFrame({"target": targets}).with_row_index("place"), how="cross"
    )
    if of_fractions:
        pairs = pairs.filter(pl.col("metric").is_in(fractions) | (pl.col("place") == 0))
        of_metric = pl.when(pl.col("metric").is_in(fractions)).then("target")
        pairs = pairs.with_columns(target=of_metric)
    seen = pl.col("target") >= pl.col("detectable")
    wanted = (pl.col("se_a").pow(2) + pl.col("se_b").pow(2)) * (
        pl.col("target") / pl.col("detectable")
    ).pow(2)
    of_one = {s: pl.col(f"se_{s}") * pl.col(f"n_units_{s}").cast(pl.Float64).sqrt() for s in "ab"}
    best = {s: of_one[s] * (of_one["a"] + of_one["b"]) / wanted for s in "ab"}
    now = {s: pl.col(f"n_units_{s}").cast(pl.Float64) for s in "ab"}

    def grown(s: str, other: str) -> pl.Expr:
        alone = of_one[s].pow(2) / (wanted - pl.col(f"se_{other}").pow(2))
        return (
            pl.when(best[s] <= now[s])
            .then(now[s])
            .when(best[other] <= now[other])
            .then(alone)
            .otherwise(best[s])
        )

    return pairs.with_columns(
        first=pl.col("place") == 0,
        seen=seen,
        factor_a=pl.when(seen).then(1.0).otherwise(grown("a", "b") / now["a"]),
        factor_b=pl.when(seen).then(1.0).otherwise(grown("b", "a") / now["b"]),
    ).with_columns(
        (pl.col(f"n_{kind}_{s}") * (pl.col(f"factor_{s}") - 1.0))
        .ceil()
        .cast(pl.Int64)
        .alias(f"more_{kind}_{s}")
        for kind in ("units", "clusters")
        for s in "ab"
    )


def _one_of_all_classes(needed: pl.DataFrame) -> pl.DataFrame:
    """Let the worst-measured class speak for a metric's classes; ``classes``: how many there are.

    What holds for everyone comes first. The table has every class.
    """
    of = ("model", "task", "metric", "threshold", "attribute")
    single = pl.col("label").is_null()
    return (
        needed.with_columns(classes=pl.col("label").n_unique().over(*of, single))
        .filter(single | pl.int_range(pl.len()).over(*of, single).eq(0))
        .sort(single.not_(), maintain_order=True)
    )


def _finding(row: dict[str, object], words: Words) -> dict[str, object]:
    unit = words.unit(row)
    detectable = float(str(row["detectable"]))
    several = int(str(row["classes"])) > 1
    of = f", the worst-measured of {row['classes']:,} classes" if several else ""
    told = (
        f"{words.measure(row)} by {words.title(str(row['attribute']))}{of}: this audit could have "
        f"detected (power 0.8) a difference of {points(detectable, unit)} between {row['group_a']} "
        f"and {row['group_b']}, its worst-measured pair."
    )
    if row["target"] is not None:
        told += " " + _advice(row, points(float(str(row["target"])), unit), words)
    return {
        "analysis": "power",
        "claim": words.start(str(row["model"]), told),
        "effect": detectable,
        "n": int(str(row["n_units_a"])) + int(str(row["n_units_b"])),
        "reference": "bloom-1995",
        "status": "ok",
        "metric": row["metric"],
        "label": row["label"],
        "attribute": row["attribute"],
        "group_a": row["group_a"],
        "group_b": row["group_b"],
    }


def _advice(row: dict[str, object], target: str, words: Words) -> str:
    if row["seen"]:
        return f"That is enough for one of {target}."

    needs = [
        f"{row[f'more_units_{s}']:,} more of {row[f'group_{s}']}"
        + (f" ({row[f'more_clusters_{s}']:,} clusters)" if words.cluster is not None else "")
        for s in "ab"
        if row[f"more_units_{s}"]
    ]
    return f"To detect one of {target}, {' and '.join(needs)} are enough."


def _shown(needed: pl.DataFrame, words: Words) -> pl.DataFrame:
    said = [
        {
            "metric": words.measure(row),
            "attribute": words.title(row["attribute"]),
            "group": row["group_a"],
            "other group": row["group_b"],
            "units": row["n_units_a"],
            "other units": row["n_units_b"],
            "detectable now": row["detectable"],
            "target": row["target"],
            "units to add": row["more_units_a"],
            "other units to add": row["more_units_b"],
            "clusters to add": row["more_clusters_a"],
            "other clusters to add": row["more_clusters_b"],
        }
        for row in needed.head(_SHOWN).iter_rows(named=True)
    ]
    several = words.models > 1
    frame = pl.DataFrame(said, infer_schema_length=None)
    if words.cluster is None:  # rows are the clusters
        frame = frame.drop("clusters to add", "other clusters to add")
    models = pl.Series("model", needed["model"].head(_SHOWN))
    return frame.insert_column(0, models) if several else frame


def _small(run: Run, words: Words) -> pl.DataFrame:
    """List the groups without a value for their size, and how many they lack."""
    spec = run.record.get("spec") or {}
    units, clusters = int(spec.get("min_units", 1)), int(spec.get("min_clusters", 1))
    few = run.group_metrics.filter(
        pl.col("attribute").is_not_null()
        & pl.col("status").is_in(["insufficient units", "insufficient clusters"])
    )
    largest = few.group_by("attribute", "group", maintain_order=True).agg(
        pl.col("n_units").max(), pl.col("n_clusters").max()
    )
    found = largest.head(_SHOWN).with_columns(
        attribute=pl.col("attribute").map_elements(words.title, return_dtype=pl.String),
        units=(units - pl.col("n_units")).clip(0),
        clusters=(clusters - pl.col("n_clusters")).clip(0),
    )
    return found.rename(
        {
            "n_units": "units now",
            "n_clusters": "clusters now",
            "units": "units to add",
            "clusters": "clusters to add",
        }
    )
