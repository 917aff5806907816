"""FHIBE's benchmarking analysis: which attribute's groups score differently, pair by pair.

From each unit's score to one row an attribute. Xiang et al. (2025, Methods, "Benchmarking
analysis"): for every annotated attribute, groups of at least ten subjects; pairwise two-sided
Mann-Whitney tests; Bonferroni for the attribute's pairs; for each significant pair
D = 1 - MED(worst) / MED(best); the pair with the highest D is kept.

That is here as printed (``test=naive``, ``correction=published``), and every table has its verdict
next to the recommended one, because it misleads where subjects have several photos: Mann-Whitney
takes ten photos for ten people, and each attribute is corrected alone, however many are looked at.
In worlds where nothing differs (ten photos a subject, correlation .3, ten attributes) it claims
something nearly always (``docs/methods/rank_tests.md``). Recommended, and what is done unless
asked: the clustered rank test of ``stats.ranks``, Holm over all that was looked at.

Doubts about the source, and what is done here:

- The paper compares "scores for all subjects" of a group and counts subjects for the minimum, but
  scores are of images, ten a subject; the released code takes groups of at least 20
  scores. The minimum here counts subjects, as printed.
- Mann-Whitney does not compare medians but how often one side scores higher. Where scores are
  quantised (a recall over ten thresholds; right or wrong) medians tie while the test is sure: then
  the means decide which group is worse, if they are the same too the probability of superiority,
  and the claim says so.
- D is for scores above 0 of which more is better. Where less is better (LPIPS) the ratio is turned
  over, or the best group would be called the worst; where a median is 0 or negative D is undefined.
- The pair with the highest of many D is chosen for it, so that D is likely too large. Its interval
  (percentiles, clusters resampled) does not know of the choice.
- A person with two values (two ancestries) is in both groups; the naive test counts them twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import polars as pl

from isolux.analyses._judged import findings_table
from isolux.analyses._regrouping import at_least, check_settings, settings_of
from isolux.analyses._sampled import FIXED, sampled_of
from isolux.analyses.rank_tests.judged import (
    Correction,
    Test,
    adjusted,
    leading,
    ordered_sides,
    with_intervals,
)
from isolux.analyses.rank_tests.pairs import (
    MIN_SUBJECTS,
    Ranked,
    grouped_by,
    rank_pairs,
    ranked_scores,
)
from isolux.analyses.rank_tests.sentences import CORRECTIONS, TESTS, differs, nothing_more
from isolux.statements.leading import MEASURE
from isolux.statements.words import Words, words_of
from isolux.stats.ranks.weighted import Weights
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    samples=True,
    title="Rank tests of all pairs of groups",
    summary="Which attributes' groups have higher and lower scores, by rank tests that take "
    "subjects into account, compared with FHIBE's published procedure.",
    references=(
        works.FHIBE.at("Methods, Bias discovery in narrow models: Benchmarking analysis"),
        Reference(
            "rosner-grove",
            "Rosner, B. & Grove, D. (1999). Use of the Mann-Whitney U-test for clustered data. "
            "Statistics in Medicine 18, 1387-1400.",
            "the variance of U with correlated units",
        ),
        Reference(
            "lumley-scott",
            "Lumley, T. & Scott, A. J. (2013). Two-sample rank tests under complex sampling. "
            "Biometrika 100, 831-842.",
            "where clusters are in both groups",
        ),
    ),
    assumptions=(
        "Clusters (subjects) are independent of one another, whatever holds within them.",
        (
            "Where each subject is in one group: if nothing differs, subjects of both groups are "
            "alike in spread and in how alike their photos are, not only in the middle."
        ),
        "The pair shown was chosen for its disparity D, which is therefore probably too large.",
    ),
)

_SHOWN = 40
_DIGITS = 5


def explain(
    run: Run,
    *,
    attributes: Literal["by", "all"] = "by",
    test: Test = "clustered",
    correction: Correction = "holm",
    replicates: int | None = None,
) -> Explained:
    """Test all pairs of groups of every attribute on every score.

    Parameters
    ----------
    run : Run
        Its ``scores`` (each unit's value) and ``attributes`` are read. Whose value is unknown is
        in no group.
    attributes : {"by", "all"}
        Those of the audit, or all that the dataset has (including derived ones, if requested).
    test : {"clustered", "naive"}
        The test that decides. The published test is the naive one.
    correction : {"holm", "bh", "published"}
        Family-wise over all tests of the run; false discovery rate over them; Bonferroni within
        each attribute, as published.
    replicates : int or None
        Replicates for the interval of D; default: the audit's.

    Returns
    -------
    Explained
        A finding for each metric and attribute with a pair that differs: ``effect`` is D, a share
        of the better median (status ``undefined`` and null where a median is 0 or negative), with
        an interval, ``n`` the units of both groups, ``group_a`` the worse one. One for each metric
        says where nothing was found, and what the published procedure would have claimed there.

    Raises
    ------
    SpecError
        A run without scores of single units, or without attributes; a setting out of range.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_settings("rank_tests", replicates=at_least(100, replicates))
    if "model_a" in run.disparities.columns or _nobody(run):
        return Explained(FINDINGS.empty())
    spec = settings_of(run, replicates=replicates)
    if not spec.groups.by and attributes == "by":
        raise SpecError(
            "this run has no attribute to compare groups of",
            expected="an audit with --by",
            hint="--analysis-option rank_tests.attributes=all takes all that the dataset has",
        )
    ranked = ranked_scores(run.scores)
    sampled = sampled_of(run, ranked.units, ranked.cluster, "the analysis rank_tests")
    if sampled is not None:
        weights = Weights(sampled.weight, ranked.cluster, sampled.strata)
        ranked = replace(ranked, drawn=weights)
    grouped, left_out = grouped_by(run, spec, ranked, every=attributes == "all")
    pairs, small = rank_pairs(ranked, grouped)
    words = words_of(run)
    notes = [
        *_notes(run, ranked, words),
        *([f"rank_tests: {FIXED}"] if sampled is not None and sampled.calibrated else []),
        *left_out,
        *_too_small(small, words),
    ]
    if pairs.is_empty():
        notes.append("no attribute has two groups that are large enough to be ranked")
        return Explained(FINDINGS.empty(), {}, tuple(notes))
    judged = ordered_sides(
        adjusted(pairs, test, correction, 1.0 - spec.statistics.level), words.metrics
    )
    lead = with_intervals(
        leading(judged),
        ranked,
        grouped,
        replicates=spec.statistics.replicates,
        seed=spec.statistics.seed,
        level=spec.statistics.level,
    )
    if ranked.drawn is not None and test == "clustered":
        name = TESTS["weighted"]
    else:
        name = TESTS["rows" if words.cluster is None else test]
    how = f"{name}, {CORRECTIONS[correction].format(m=judged['p'].count())}"
    findings = _findings(lead, words, name, how, spec.statistics.level)
    return Explained(findings, _tables(lead, words, how), tuple(notes))


def _nobody(run: Run) -> bool:
    """Say whether no people were judged; refuse a run of metrics that no single unit has."""
    if run.scores["value"].count():
        return False
    if run.group_metrics.is_empty():
        return True
    raise SpecError(
        "this run has no scores of single units, so there is nothing to rank",
        expected="a metric that is a mean of units' scores",
        found=", ".join(run.group_metrics["metric"].unique().sort()),
        hint="audit again with another --metric, such as average_recall or accuracy",
    )


def _notes(run: Run, ranked: Ranked, words: Words) -> list[str]:
    notes = []
    ranks = set(ranked.measures["metric"])
    other = [m for m in run.group_metrics["metric"].unique().sort() if m not in ranks]
    if other:
        notes.append(f"not ranked, because no single unit has such a score: {', '.join(other)}")
    if words.cluster is None:
        notes.append(
            "rank tests: no --cluster was named, so every unit is treated as a different person; "
            "if people have several units, pairs will seem to differ that do not"
        )
    same = ranked.measures.filter(
        pl.Series([bool(len(set(row[row == row])) == 1) for row in ranked.values])  # noqa: PLR0124
    )
    notes += [
        f"{words.measure(row)}: every unit has the same score, so no group ranks above another"
        for row in same.iter_rows(named=True)
    ]
    unknown = sorted(m for m in ranks if m not in words.metrics)
    if unknown:
        notes.append(f"it is not known which way is better: {', '.join(unknown)}")
    return notes


def _too_small(small: pl.DataFrame, words: Words) -> list[str]:
    notes = []
    for (attribute,), rows in small.partition_by("attribute", as_dict=True).items():
        listed = [f"{g} ({c:,})" for g, c in rows.select("group", "clusters").head(8).iter_rows()]
        if rows.height > len(listed):
            listed.append(f"{rows.height - len(listed):,} more")
        notes.append(
            f"{words.title(str(attribute))}: not ranked, for a group needs {MIN_SUBJECTS} "
            f"subjects with a score: {', '.join(listed)}"
        )
    return notes


def _findings(lead: pl.DataFrame, words: Words, test: str, how: str, level: float) -> pl.DataFrame:
    differ = lead.filter("found").sort("p_adjusted", maintain_order=True)
    rows = [_finding(row, words, how) for row in differ.iter_rows(named=True)]
    rest = lead.filter(~pl.col("found"))
    for own in rest.partition_by(MEASURE, maintain_order=True):
        lines = own.rows(named=True)
        rows.append(
            {
                "analysis": "rank_tests",
                "claim": nothing_more(lines, words, test, level),
                "reference": "fhibe",
                "status": "ok",
                "metric": lines[0]["metric"],
                "label": lines[0]["label"],
            }
        )
    return findings_table(rows)


def _finding(row: Mapping[str, Any], words: Words, how: str) -> dict[str, Any]:
    names = ("low", "high", "metric", "label", "attribute", "group_a", "group_b", "p_adjusted")
    return {
        "analysis": "rank_tests",
        "claim": differs(row, words, how),
        "effect": row["disparity"],
        "n": row["n_a"] + row["n_b"],
        "reference": "fhibe",
        "status": "ok" if row["disparity"] is not None else "undefined",
        **{name: row[name] for name in names},
    }


def _tables(lead: pl.DataFrame, words: Words, how: str) -> dict[str, pl.DataFrame]:
    """Print each attribute's leading pair, the surest first, and where the two ways part."""
    ordered = lead.sort("found", "p_adjusted", descending=[True, False], maintain_order=True)
    tables = {f"Rank tests, each attribute's leading pair: {how} (first {_SHOWN})": ordered}
    apart = ordered.filter((pl.col("n_found") > 0) != (pl.col("n_published") > 0))
    if apart.height:
        caption = "Where the published procedure and this one disagree whether groups differ"
        tables[f"{caption} (first {_SHOWN})"] = apart
    return {name: _printed(frame.head(_SHOWN), words) for name, frame in tables.items()}


def _printed(lead: pl.DataFrame, words: Words) -> pl.DataFrame:
    rows = [
        {
            "model": row["model"],
            "metric": words.measure(row),
            "attribute": words.title(row["attribute"]),
            "worst": row["group_a"],
            "best": row["group_b"],
            "better is": row["direction"],
            "median worst": row["median_a"],
            "median best": row["median_b"],
            "D": row["disparity"],
            "worse, share of pairs": row["worse"],
            "decided by": row["decided_by"],
            "n": f"{row['n_a']:,} / {row['n_b']:,}",
            "subjects": f"{row['clusters_a']:,} / {row['clusters_b']:,}",
            "p adjusted": row["p_adjusted"],
            "p clustered": row["p_clustered"],
            "p naive": row["p_naive"],
            "p published": row["p_published"],
            "pairs found": f"{row['n_found']:,} of {row['pairs']:,}",
            "pairs published": f"{row['n_published']:,} of {row['pairs']:,}",
        }
        for row in lead.iter_rows(named=True)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.selectors.float().round_sig_figs(_DIGITS)
    )
    return frame if words.models > 1 else frame.drop("model")
