"""Failures, errors and false positives across groups, in the tables of biometric tests.

They are in the report of every audit of ``face_verification`` and ``identification``: failures to
enrol and to acquire and both errors by group, summaries of how much errors differ next to the
overall errors, false positives across groups, and the gallery's composition. No claim is made and
nothing is tested: the audit tests the gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from isolux.analyses._regrouping import build_minimum_check, check_analysis_settings
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.tables import FINDINGS
from isolux.disparity.biometrics import (
    RATES,
    count_gallery_by_group,
    cross_group_false_match_rates,
    cross_group_false_positive_rates,
    is_biometric,
    performance,
    summarise_error_differentials,
)
from isolux.statements.numbers import format_fixed

INFO = AnalysisInfo(
    makes_claims=False,
    title="Biometric performance by group",
    summary="Failures to enrol and acquire, both errors, and who is mistaken for whom, by group.",
    references=(
        Reference(
            "biometric-differentials",
            "ISO/IEC 19795-10:2024. Information technology: Biometric performance testing and "
            "reporting. Part 10: Quantifying biometric system performance variation across "
            "demographic groups.",
            "its scope: failure to enrol, failure to acquire, recognition errors",
            "https://standards.iteh.ai/catalog/standards/iso/c393f7c4-f721-4602-a96f-f84b35e020f9/iso-iec-19795-10-2024",
        ),
        Reference(
            "frvt-summaries",
            "Grother, P. (2022). Face recognition vendor test (FRVT) part 8: Summarizing "
            "demographic differentials. NIST Interagency Report 8429.",
            "the largest rate over the geometric mean, and over the smallest; Gini",
            "https://doi.org/10.6028/NIST.IR.8429.ipd",
        ),
    ),
    assumptions=(
        "ISO/IEC 19795-10 is followed as far as it is public; this does not state conformity.",
        "A summary of differences means nothing without the errors beside it.",
        "Rates between two groups are of the pairs or the gallery that there were.",
    ),
)
PERFORMANCE = "Failures and errors by group, at the operational threshold"
DIFFERENTIALS = "How far apart the groups' errors are, beside the errors of everyone"
_CROSS_GROUP_MATCHES = "False match rate between people of two groups"
_FALSE_POSITIVES = (
    "Searches for people who are not enrolled, and the enrolled people whom they return"
)
_GALLERY = "Who is enrolled, by group"
_MAX_GROUPS = 8
"""Attributes with more groups have no table between two groups."""
_NO_PAIRS_NOTE = "Between groups: not measured, as this run does not keep its pairs (keep_pairs)."
_ALL_PAIRS_NOTE = (
    "Between groups all pairs count; the rates by group are of those that max_per_group drew."
)


def explain(run: Run, *, replicates: int = 500) -> AnalysisResult:
    """Lay out the tables of a biometric test.

    Parameters
    ----------
    run : Run
        Of ``face_verification`` or ``identification``.
    replicates : int
        Replicates for the intervals between two groups.

    Returns
    -------
    AnalysisResult
        No findings; tables with cells such as "1.2 % (0.8 to 1.9)", the interval in brackets.

    Raises
    ------
    SpecError
        A run of another task, or a setting that is too small.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    check_analysis_settings("biometrics", replicates=build_minimum_check(100, replicates))
    if not is_biometric(run):
        if run.scores.height:
            performance(run)  # raises an error that names the tasks expected
        return AnalysisResult(FINDINGS.empty())
    tables_by_caption = dict(_iterate_captioned_tables(run, replicates))
    is_verification = run.record.get("task") == "face_verification"
    notes = (_NO_PAIRS_NOTE,) if is_verification and "pairs" not in run.evidence else ()
    if is_verification and "most" in run.evidence.get("pairs", pl.DataFrame()).columns:
        notes = (_ALL_PAIRS_NOTE,)
    tables = {k: _drop_remarks_column_if_empty(t) for k, t in tables_by_caption.items() if t.height}
    return AnalysisResult(FINDINGS.empty(), tables, notes)


def _iterate_captioned_tables(run: Run, replicates: int) -> Iterator[tuple[str, pl.DataFrame]]:
    yield PERFORMANCE, _format_performance_table(performance(run))
    yield (
        DIFFERENTIALS,
        _build_table_or_empty_if_unmeasured(
            lambda: _format_differentials_table(summarise_error_differentials(run))
        ),
    )
    if {"candidates", "gallery"} <= run.evidence.keys():
        yield _GALLERY, _format_gallery_table(count_gallery_by_group(run))
        yield (
            _FALSE_POSITIVES,
            _format_false_positives_table(
                cross_group_false_positive_rates(run, max_groups=_MAX_GROUPS)
            ),
        )
    elif "pairs" in run.evidence:
        cross_group = cross_group_false_match_rates(
            run, replicates=replicates, max_groups=_MAX_GROUPS
        )
        yield _CROSS_GROUP_MATCHES, _format_cross_group_table(cross_group)


def _drop_remarks_column_if_empty(table: pl.DataFrame) -> pl.DataFrame:
    """Drop remarks where there are none."""
    remarks = ("read with care", "read_with_care", "reason", "without_template")
    return table.drop([c for c in remarks if c in table.columns and table[c].is_null().all()])


def _build_table_or_empty_if_unmeasured(build_table: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Return an empty table where the run did not measure what the table needs."""
    try:
        return build_table()
    except SpecError:
        return pl.DataFrame()


_RATE_NAMES = {
    "fte": "failure to enrol",
    "fta": "failure to acquire",
    "failure": "failed comparisons",
    "fmr": "false match rate",
    "fnmr": "false non-match rate",
    "gfar": "generalised false accept rate",
    "gfrr": "generalised false reject rate",
    "fpir": "false positive identification rate",
    "fnir": "false negative identification rate",
}
_NAMES = frozenset(_RATE_NAMES.values())


def _format_performance_table(table: pl.DataFrame) -> pl.DataFrame:
    cells = [
        _format_rate_with_interval_expr(
            short_name, f"{short_name}_low", f"{short_name}_high", f"{short_name}_n"
        ).alias(rate_name)
        for short_name, rate_name in _RATE_NAMES.items()
        if short_name in table.columns
    ]
    short = list(_RATE_NAMES)
    remark = (
        pl.col("said")
        .str.replace_all(r"[^;]* not measured(; |$)", "")
        .str.replace_many([f"{s} " for s in short], [f"{_RATE_NAMES[s]} " for s in short])
    )
    remark = pl.when(remark != "").then(remark)
    columns = table.select(
        "model",
        "attribute",
        "group",
        pl.col("threshold").round_sig_figs(6),
        *cells,
        remark.alias("read with care"),
    )
    empty = [
        c
        for c in _RATE_NAMES.values()
        if c in columns.columns and columns[c].null_count() == len(columns)
    ]
    return columns.drop(empty)


def _format_differentials_table(table: pl.DataFrame) -> pl.DataFrame:
    names_by_metric = {
        RATES[task][short]: _RATE_NAMES[short] for task in RATES for short in RATES[task]
    }
    rate, other_rate = (pl.col(name).replace(names_by_metric) for name in ("rate", "other_rate"))
    return table.select(
        "model",
        "attribute",
        rate=rate,
        overall=_format_rate_with_interval_expr("overall", "overall_low", "overall_high"),
        beside=pl.format("{}: {}", other_rate, _format_percent_expr("other_overall")),
        groups="groups",
        lowest=pl.format("{} ({})", _format_percent_expr("lowest"), "lowest_group"),
        highest=pl.format("{} ({})", _format_percent_expr("highest"), "highest_group"),
        max_over_geometric_mean=pl.col("max_over_geometric_mean").round(3),
        max_over_min=pl.col("max_over_min").round(3),
        gini=pl.col("gini").round(4),
        read_with_care="said",
    )


def _format_cross_group_table(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        "model",
        "attribute",
        "group_a",
        "group_b",
        "pairs",
        _format_rate_with_interval_expr("false_match_rate", "low", "high").alias(
            "false match rate"
        ),
        "reason",
    )


def _format_false_positives_table(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        "model",
        "attribute",
        "group",
        taken_for="gallery_group",
        searches="searches",
        enrolled_images="enrolled",
        returned=_format_rate_with_interval_expr("value", "low", "high"),
        reason="reason",
    )


def _format_gallery_table(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(of_all_images=_format_percent_expr("share")).drop("share")


def _format_rate_with_interval_expr(
    column: str, low: str, high: str, n: str | None = None
) -> pl.Expr:
    """Write a rate with its interval, and its n: ``1.2 % (0.8 to 1.9; n = 900)``."""
    bounds = pl.when(pl.col(low).is_not_null()).then(
        pl.format(
            "{} to {}",
            _format_percent_without_sign_expr(low),
            _format_percent_without_sign_expr(high),
        )
    )
    count = pl.format("n = {}", pl.col(n)) if n else pl.lit(None, dtype=pl.String)
    details = pl.concat_str([bounds, count], separator="; ", ignore_nulls=True)
    text = (
        pl.when(details == "")
        .then(_format_percent_expr(column))
        .otherwise(pl.format("{} ({})", _format_percent_expr(column), details))
    )
    return pl.when(pl.col(column).is_not_null()).then(text)


def _format_percent_expr(name: str) -> pl.Expr:
    return pl.format("{} %", _format_percent_without_sign_expr(name))


def _format_percent_without_sign_expr(name: str) -> pl.Expr:
    """Write a rate in per cent without the sign, with more digits for small rates."""
    x = pl.col(name) * 100.0
    large = pl.when(x.abs() >= 1.0).then(x).map_elements(format_fixed, return_dtype=pl.String)
    return pl.coalesce(large, x.round_sig_figs(2).cast(pl.String))
