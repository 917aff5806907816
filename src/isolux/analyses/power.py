"""Minimum detectable differences of this audit, and the people to add for a smaller one.

From the minimum detectable difference of each pair (``disparities.detectable``: power .8 at the
level of its family) to the fewest people who would reduce it to a target difference. With
v_a = n_a · SE_a², the variance per person, and W = (SE_a² + SE_b²) · (target / detectable)², the
fewest people with v_a / n_a' + v_b / n_b' = W have Neyman's allocation:

    n_a' = √v_a (√v_a + √v_b) / W,   n_b' likewise,

and where that is fewer than one group has, only the other grows. Adding to the smaller group alone
often cannot reach the target: the error of the other one stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import polars as pl

from isolux.analyses._unit_scores import build_ranked_findings_table
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.tables import FINDINGS
from isolux.groups.unknown_values import UNKNOWN
from isolux.statements.leading import MEASURE_COLUMNS
from isolux.statements.numbers import format_gap_size
from isolux.statements.run_terms import RunTerms, read_display_terms

INFO = AnalysisInfo(
    makes_claims=False,
    # It reads the audit's tables alone, whose standard errors are the sample's.
    supports_survey_weights=True,
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

_MAX_LISTED = 30


def explain(run: Run, *, targets: Sequence[float] = (0.05, 0.02)) -> AnalysisResult:
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
    AnalysisResult
        A finding for each metric and attribute: ``effect`` is the smallest difference that the
        least precise pair of judged groups could have shown, ``n`` the units that it rests on.
        Tables: the fewest people to add by pair and target, and groups below the audit's minimum.

    Raises
    ------
    SpecError
        A target that is not above 0.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if not targets or min(targets) <= 0:
        raise SpecError(
            "a target has to be a difference", expected="numbers above 0", found=str(targets)
        )
    if "model_a" in run.disparities.columns or run.disparities.is_empty():
        return AnalysisResult(FINDINGS.empty())
    terms = read_display_terms(run)
    pairs = _find_least_detectable_pairs(run)
    required_sizes = _add_required_sizes_by_target(
        pairs, terms, tuple(targets), list(targets) == [0.05, 0.02]
    )
    first_rows = _select_least_detectable_class(required_sizes.filter(first=True))
    rows = [_build_power_finding(row, terms) for row in first_rows.iter_rows(named=True)]
    tables = {}
    if required_sizes.height:
        tables[f"Whom to add to detect a difference with power 0.8 (first {_MAX_LISTED})"] = (
            _format_required_sizes(required_sizes, terms)
        )
    small_groups = _list_groups_below_minimum_size(run, terms)
    if small_groups.height:
        tables[f"Groups below the audit's minimum (first {_MAX_LISTED})"] = small_groups
    return AnalysisResult(build_ranked_findings_table(rows), tables)


def _find_least_detectable_pairs(run: Run) -> pl.DataFrame:
    """Find the pair of named groups whose detectable difference is largest, per attribute."""
    groups = run.group_metrics.filter(
        pl.col("attribute").is_not_null(), ~pl.col("values").list.contains(UNKNOWN)
    ).select(
        *MEASURE_COLUMNS,
        "attribute",
        "group",
        standard_error=_standard_error_or_interval_se_expr(run),
    )
    keys = [*MEASURE_COLUMNS, "attribute"]
    pairs = run.disparities.filter(
        pl.col("detectable").is_finite(), pl.col("detectable") > 0, kind="difference"
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
    for suffix in ("a", "b"):
        errors = groups.rename({"group": f"group_{suffix}", "standard_error": f"se_{suffix}"})
        pairs = pairs.join(errors, on=[*keys, f"group_{suffix}"], how="inner", nulls_equal=True)
    has_errors = (pl.col("se_a") + pl.col("se_b")).is_finite()
    return (
        pairs.filter(has_errors)
        .sort("detectable", "group_a", "group_b", descending=[True, False, False])
        .group_by(keys, maintain_order=True)
        .first()
        .pipe(_swap_so_a_has_larger_se)
    )


def _standard_error_or_interval_se_expr(run: Run) -> pl.Expr:
    """Return a group's standard error; if it is 0, the half-width of its interval over z."""
    level = float((run.record.get("spec") or {}).get("level", 0.95))
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    half_width = (pl.col("high") - pl.col("low")) / 2.0
    standard_error = pl.col("standard_error")
    return pl.when(standard_error > 0).then(standard_error).otherwise(half_width / z)


def _swap_so_a_has_larger_se(pairs: pl.DataFrame) -> pl.DataFrame:
    """Swap groups so that ``a`` has the larger standard error."""
    is_swapped = pl.col("se_a") < pl.col("se_b")
    columns = ("group", "se", "n_units", "n_clusters")
    return pairs.with_columns(
        *(
            pl.when(is_swapped)
            .then(f"{name}_{other_suffix}")
            .otherwise(f"{name}_{suffix}")
            .alias(f"{name}_{suffix}")
            for name in columns
            for suffix, other_suffix in (("a", "b"), ("b", "a"))
        )
    )


def _add_required_sizes_by_target(
    pairs: pl.DataFrame, terms: RunTerms, targets: tuple[float, ...], are_fractions: bool
) -> pl.DataFrame:
    """Add, for each target, the number of units and clusters of each group to add."""
    fractions = [name for name, m in terms.metrics.items() if m.unit == "fraction"]
    pairs = pairs.with_row_index("pair").join(
        pl.DataFrame({"target": targets}).with_row_index("place"), how="cross"
    )
    if are_fractions:
        pairs = pairs.filter(pl.col("metric").is_in(fractions) | (pl.col("place") == 0))
        metric_target = pl.when(pl.col("metric").is_in(fractions)).then("target")
        pairs = pairs.with_columns(target=metric_target)
    is_detectable = pl.col("target") >= pl.col("detectable")
    target_variance = (pl.col("se_a").pow(2) + pl.col("se_b").pow(2)) * (
        pl.col("target") / pl.col("detectable")
    ).pow(2)
    unit_sd = {s: pl.col(f"se_{s}") * pl.col(f"n_units_{s}").cast(pl.Float64).sqrt() for s in "ab"}
    optimal_size = {s: unit_sd[s] * (unit_sd["a"] + unit_sd["b"]) / target_variance for s in "ab"}
    current_size = {s: pl.col(f"n_units_{s}").cast(pl.Float64) for s in "ab"}

    def required_group_size_expr(s: str, other_group: str) -> pl.Expr:
        single_group_size = unit_sd[s].pow(2) / (
            target_variance - pl.col(f"se_{other_group}").pow(2)
        )
        return (
            pl.when(optimal_size[s] <= current_size[s])
            .then(current_size[s])
            .when(optimal_size[other_group] <= current_size[other_group])
            .then(single_group_size)
            .otherwise(optimal_size[s])
        )

    return pairs.with_columns(
        first=pl.col("place") == 0,
        seen=is_detectable,
        factor_a=pl.when(is_detectable)
        .then(1.0)
        .otherwise(required_group_size_expr("a", "b") / current_size["a"]),
        factor_b=pl.when(is_detectable)
        .then(1.0)
        .otherwise(required_group_size_expr("b", "a") / current_size["b"]),
    ).with_columns(
        (pl.col(f"n_{counted_unit}_{s}") * (pl.col(f"factor_{s}") - 1.0))
        .ceil()
        .cast(pl.Int64)
        .alias(f"more_{counted_unit}_{s}")
        for counted_unit in ("units", "clusters")
        for s in "ab"
    )


def _select_least_detectable_class(required_sizes: pl.DataFrame) -> pl.DataFrame:
    """Select the class with the largest detectable difference; ``classes``: how many there are.

    Metrics without classes come first. The table has every class.
    """
    keys = ("model", "task", "metric", "threshold", "attribute")
    is_unlabelled = pl.col("label").is_null()
    return (
        required_sizes.with_columns(classes=pl.col("label").n_unique().over(*keys, is_unlabelled))
        .filter(is_unlabelled | pl.int_range(pl.len()).over(*keys, is_unlabelled).eq(0))
        .sort(is_unlabelled.not_(), maintain_order=True)
    )


def _build_power_finding(row: dict[str, object], terms: RunTerms) -> dict[str, object]:
    unit = terms.find_unit(row)
    detectable = float(str(row["detectable"]))
    has_classes = int(str(row["classes"])) > 1
    class_phrase = f", the least precise of {row['classes']:,} classes" if has_classes else ""
    claim = (
        f"{terms.format_metric(row)} by"
        f" {terms.format_attribute(str(row['attribute']))}{class_phrase}: this audit could have"
        f" detected (power 0.8) a difference of {format_gap_size(detectable, unit)} between"
        f" {row['group_a']} and {row['group_b']}, its least precise pair."
    )
    if row["target"] is not None:
        claim += " " + _format_recruitment_advice(
            row, format_gap_size(float(str(row["target"])), unit), terms
        )
    return {
        "analysis": "power",
        "claim": terms.begin_sentence(str(row["model"]), claim),
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


def _format_recruitment_advice(row: dict[str, object], target: str, terms: RunTerms) -> str:
    if row["seen"]:
        return f"That is enough for one of {target}."

    needs = [
        f"{row[f'more_units_{s}']:,} more of {row[f'group_{s}']}"
        + (f" ({row[f'more_clusters_{s}']:,} clusters)" if terms.cluster is not None else "")
        for s in "ab"
        if row[f"more_units_{s}"]
    ]
    return f"To detect one of {target}, {' and '.join(needs)} are enough."


def _format_required_sizes(required_sizes: pl.DataFrame, terms: RunTerms) -> pl.DataFrame:
    rows = [
        {
            "metric": terms.format_metric(row),
            "attribute": terms.format_attribute(row["attribute"]),
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
        for row in required_sizes.head(_MAX_LISTED).iter_rows(named=True)
    ]
    has_models = terms.n_models > 1
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if terms.cluster is None:  # rows are the clusters
        frame = frame.drop("clusters to add", "other clusters to add")
    models = pl.Series("model", required_sizes["model"].head(_MAX_LISTED))
    return frame.insert_column(0, models) if has_models else frame


def _list_groups_below_minimum_size(run: Run, terms: RunTerms) -> pl.DataFrame:
    """List the groups below the minimum sizes, and how many units and clusters are missing."""
    spec = run.record.get("spec") or {}
    min_units, min_clusters = int(spec.get("min_units", 1)), int(spec.get("min_clusters", 1))
    too_small = run.group_metrics.filter(
        pl.col("attribute").is_not_null(),
        pl.col("status").is_in(["insufficient units", "insufficient clusters"]),
    )
    largest = too_small.group_by("attribute", "group", maintain_order=True).agg(
        pl.col("n_units").max(), pl.col("n_clusters").max()
    )
    missing_counts = largest.head(_MAX_LISTED).with_columns(
        attribute=pl.col("attribute").map_elements(terms.format_attribute, return_dtype=pl.String),
        units=(min_units - pl.col("n_units")).clip(0),
        clusters=(min_clusters - pl.col("n_clusters")).clip(0),
    )
    return missing_counts.rename(
        {
            "n_units": "units now",
            "n_clusters": "clusters now",
            "units": "units to add",
            "clusters": "clusters to add",
        }
    )
