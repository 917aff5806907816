"""Failures, errors and false positives across groups, as tables that biometric testers ask for.

They stand in the report of every audit of ``face_verification`` and ``identification``: failures to
enrol and to acquire and both errors by group, how far errors lie apart with everyone's errors
beside, who is taken for whom across groups, and who is in the gallery. No claim is made and nothing
is tested: the audit's own gaps are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from isolux.analyses._regrouping import at_least, check_settings
from isolux.disparity.biometrics import (
    RATES,
    differentials,
    false_positive_matrix,
    gallery_by_group,
    impostor_matrix,
    is_biometric,
    performance,
)
from isolux.statements.numbers import fixed
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    tests=False,
    title="Biometric performance by group",
    summary="Failures to enrol and acquire, both errors, and who is mistaken for whom, by group.",
    references=(
        Reference(
            "biometric-differentials",
            "ISO/IEC 19795-10:2024. Information technology: Biometric performance testing and "
            "reporting. Part 10: Quantifying biometric system performance variation across "
            "demographic groups.",
            "its scope: failure to enrol, failure to acquire, recognition errors",
            "https://standards.iteh.ai/catalog/standards/iso/c393f7c4-f721-4602-a96f-f84b35e020f9/"
            "iso-iec-19795-10-2024",
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
SUMMARY = "How far apart the groups' errors are, beside the errors of everyone"
_CROSSED = "False match rate between people of two groups"
_TAKEN = "Searches for people who are not enrolled, and the enrolled people whom they return"
_GALLERY = "Who is enrolled, by group"
_MAX_GROUPS = 8
"""Attributes with more groups have no table between two groups."""
_KEEP = "Between groups: not measured, as this run does not keep its pairs (keep_pairs)."
_ALL = "Between groups all pairs count; the rates by group are of those that max_per_group drew."


def explain(run: Run, *, replicates: int = 500) -> Explained:
    """Lay out the tables of a biometric test.

    Parameters
    ----------
    run : Run
        Of ``face_verification`` or ``identification``.
    replicates : int
        Replicates for the intervals between two groups.

    Returns
    -------
    Explained
        No findings; tables with cells such as "1.2 % (0.8 to 1.9)", the interval in brackets.

    Raises
    ------
    SpecError
        A run of another task, or a setting that is too small.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    check_settings("biometrics", replicates=at_least(100, replicates))
    if not is_biometric(run):
        if run.scores.height:
            performance(run)  # which says what is expected
        return Explained(FINDINGS.empty())
    found = dict(_tables(run, replicates))
    verified = run.record.get("task") == "face_verification"
    notes = (_KEEP,) if verified and "pairs" not in run.evidence else ()
    if verified and "most" in run.evidence.get("pairs", pl.DataFrame()).columns:
        notes = (_ALL,)
    tables = {k: _without_blanks(t) for k, t in found.items() if t.height}
    return Explained(FINDINGS.empty(), tables, notes)


def _tables(run: Run, replicates: int) -> Iterator[tuple[str, pl.DataFrame]]:
    yield PERFORMANCE, _performance(performance(run))
    yield SUMMARY, _quietly(lambda: _summary(differentials(run)))
    if {"candidates", "gallery"} <= run.evidence.keys():
        yield _GALLERY, _gallery(gallery_by_group(run))
        yield _TAKEN, _taken(false_positive_matrix(run, most_groups=_MAX_GROUPS))
    elif "pairs" in run.evidence:
        crossed = impostor_matrix(run, replicates=replicates, most_groups=_MAX_GROUPS)
        yield _CROSSED, _crossed(crossed)


def _without_blanks(table: pl.DataFrame) -> pl.DataFrame:
    """Drop remarks where there are none."""
    remarks = ("read with care", "read_with_care", "reason", "without_template")
    return table.drop([c for c in remarks if c in table.columns and table[c].is_null().all()])


def _quietly(make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Leave a table out where the run did not measure what it is of."""
    try:
        return make()
    except SpecError:
        return pl.DataFrame()


_WORDS = {
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
_NAMES = frozenset(_WORDS.values())


def _performance(table: pl.DataFrame) -> pl.DataFrame:
    cells = [
        _cell(name, f"{name}_low", f"{name}_high", f"{name}_n").alias(words)
        for name, words in _WORDS.items()
        if name in table.columns
    ]
    short = list(_WORDS)
    why = (
        pl.col("said")
        .str.replace_all(r"[^;]* not measured(; |$)", "")
        .str.replace_many([f"{s} " for s in short], [f"{_WORDS[s]} " for s in short])
    )
    why = pl.when(why != "").then(why)
    shown = table.select(
        "model", "attribute", "group", _number("threshold"), *cells, why.alias("read with care")
    )
    empty = [
        c for c in _WORDS.values() if c in shown.columns and shown[c].null_count() == len(shown)
    ]
    return shown.drop(empty)


def _summary(table: pl.DataFrame) -> pl.DataFrame:
    named = {RATES[task][short]: _WORDS[short] for task in RATES for short in RATES[task]}
    words, other = (pl.col(name).replace(named) for name in ("rate", "other_rate"))
    return table.select(
        "model",
        "attribute",
        rate=words,
        everyone=_cell("everyone", "everyone_low", "everyone_high"),
        beside=pl.format("{}: {}", other, _percent("other_everyone")),
        groups="groups",
        lowest=pl.format("{} ({})", _percent("lowest"), "lowest_group"),
        highest=pl.format("{} ({})", _percent("highest"), "highest_group"),
        max_over_geometric_mean=pl.col("max_over_geometric_mean").round(3),
        max_over_min=pl.col("max_over_min").round(3),
        gini=pl.col("gini").round(4),
        read_with_care="said",
    )


def _crossed(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        "model",
        "attribute",
        "group_a",
        "group_b",
        "pairs",
        _cell("false_match_rate", "low", "high").alias("false match rate"),
        "reason",
    )


def _taken(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(
        "model",
        "attribute",
        "group",
        taken_for="gallery_group",
        searches="searches",
        enrolled_images="enrolled",
        returned=_cell("value", "low", "high"),
        reason="reason",
    )


def _gallery(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(of_all_images=_percent("share")).drop("share")


def _cell(value: str, low: str, high: str, n: str | None = None) -> pl.Expr:
    """Write a rate with its interval, and its n: ``1.2 % (0.8 to 1.9; n = 900)``."""
    ends = pl.when(pl.col(low).is_not_null()).then(
        pl.format("{} to {}", _hundred(low), _hundred(high))
    )
    count = pl.format("n = {}", pl.col(n)) if n else pl.lit(None, dtype=pl.String)
    said = pl.concat_str([ends, count], separator="; ", ignore_nulls=True)
    text = (
        pl.when(said == "")
        .then(_percent(value))
        .otherwise(pl.format("{} ({})", _percent(value), said))
    )
    return pl.when(pl.col(value).is_not_null()).then(text)


def _percent(name: str) -> pl.Expr:
    return pl.format("{} %", _hundred(name))


def _hundred(name: str) -> pl.Expr:
    """Write hundredths with two digits, or as many as a small rate needs."""
    x = pl.col(name) * 100.0
    large = pl.when(x.abs() >= 1.0).then(x).map_elements(fixed, return_dtype=pl.String)
    return pl.coalesce(large, x.round_sig_figs(2).cast(pl.String))


def _number(name: str) -> pl.Expr:
    return pl.col(name).round_sig_figs(6)
