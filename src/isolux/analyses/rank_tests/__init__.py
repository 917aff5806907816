"""FHIBE's benchmarking analysis: rank tests of all pairs of groups of each attribute.

From each unit's score to one row an attribute. Xiang et al. (2025, Methods, "Benchmarking
analysis"): for every annotated attribute, groups of at least ten subjects; pairwise two-sided
Mann-Whitney tests; Bonferroni for the attribute's pairs; for each significant pair
D = 1 - MED(worst) / MED(best); the pair with the highest D is kept.

That is here as printed (``test=naive``, ``correction=published``), and every table has its verdict
next to the recommended one, because it misleads where subjects have several photos: Mann-Whitney
counts ten photos as ten people, and each attribute is corrected alone, however many are tested.
In simulated data where nothing differs (ten photos a subject, correlation .3, ten attributes) it
claims a difference nearly always (``docs/methods/rank_tests.md``). Recommended, and the default:
the clustered rank test of ``stats.ranks``, Holm over all tests.

Open questions about the source, and what is done here:

- The paper compares "scores for all subjects" of a group and counts subjects for the minimum, but
  scores are of images, ten a subject; the released code takes groups of at least 20
  scores. The minimum here counts subjects, as printed.
- Mann-Whitney does not compare medians but how often one group scores higher. Where scores are
  quantised (a recall over ten thresholds; right or wrong) medians tie while the test is
  significant: then the means decide which group is worse, if they are the same too the probability
  of superiority, and the claim says so.
- D is for positive scores of which higher is better. Where lower is better (LPIPS) the ratio is
  inverted, or the best group would be called the worst; with a median of 0 or below D is undefined.
- The pair with the highest of many D is chosen for it, so that D is likely too large. Its interval
  (percentiles, clusters resampled) does not account for the choice.
- A person with two values (two ancestries) is in both groups; the naive test counts them twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import polars as pl

from isolux.analyses._regrouping import (
    build_minimum_check,
    check_analysis_settings,
    read_run_settings,
)
from isolux.analyses._survey_sample import FIXED_WEIGHTS_NOTE, read_survey_sample_or_none
from isolux.analyses._unit_scores import build_ranked_findings_table
from isolux.analyses.rank_tests.pair_results import (
    Correction,
    Test,
    add_adjusted_p_to_pairs,
    add_disparity_intervals,
    orient_worse_group_first,
    select_leading_pair_by_attribute,
)
from isolux.analyses.rank_tests.pairs import (
    MIN_SUBJECTS,
    ScoreVectors,
    build_known_attribute_groups,
    build_score_vectors,
    run_pair_tests_and_list_small_groups,
)
from isolux.analyses.rank_tests.sentences import (
    CORRECTIONS,
    TESTS,
    format_leading_pair_difference,
    format_no_difference_found,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo, Reference
from isolux.core.tables import FINDINGS
from isolux.statements.leading import MEASURE_COLUMNS
from isolux.statements.run_terms import RunTerms, read_display_terms
from isolux.stats.ranks.weighted import RankWeights

INFO = AnalysisInfo(
    supports_survey_weights=True,
    title="Rank tests of all pairs of groups",
    summary="Which attributes' groups have higher and lower scores, by rank tests that take "
    "subjects into account, compared with FHIBE's published procedure.",
    references=(
        citations.FHIBE.with_location(
            "Methods, Bias discovery in narrow models: Benchmarking analysis"
        ),
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

_MAX_LISTED = 40
_DIGITS = 5


def explain(
    run: Run,
    *,
    attributes: Literal["by", "all"] = "by",
    test: Test = "clustered",
    correction: Correction = "holm",
    replicates: int | None = None,
) -> AnalysisResult:
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
    AnalysisResult
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
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_analysis_settings("rank_tests", replicates=build_minimum_check(100, replicates))
    if "model_a" in run.disparities.columns or _has_no_scores_or_raise(run):
        return AnalysisResult(FINDINGS.empty())
    spec = read_run_settings(run, replicates=replicates)
    if not spec.groups.by and attributes == "by":
        raise SpecError(
            "this run has no attribute to compare groups of",
            expected="an audit with --by",
            hint="--analysis-option rank_tests.attributes=all takes all that the dataset has",
        )
    score_vectors = build_score_vectors(run.scores)
    survey_sample = read_survey_sample_or_none(
        run, score_vectors.units, score_vectors.cluster, "the analysis rank_tests"
    )
    if survey_sample is not None:
        weights = RankWeights(survey_sample.weight, score_vectors.cluster, survey_sample.strata)
        score_vectors = replace(score_vectors, survey_weights=weights)
    attribute_groups, left_out = build_known_attribute_groups(
        run, spec, score_vectors, is_every=attributes == "all"
    )
    pairs, small_groups = run_pair_tests_and_list_small_groups(score_vectors, attribute_groups)
    terms = read_display_terms(run)
    notes = [
        *_build_rank_test_notes(run, score_vectors, terms),
        *(
            [f"rank_tests: {FIXED_WEIGHTS_NOTE}"]
            if survey_sample is not None and survey_sample.is_calibrated
            else []
        ),
        *left_out,
        *_note_small_groups(small_groups, terms),
    ]
    if pairs.is_empty():
        notes.append("no attribute has two groups that are large enough to be ranked")
        return AnalysisResult(FINDINGS.empty(), {}, tuple(notes))
    tested_pairs = orient_worse_group_first(
        add_adjusted_p_to_pairs(pairs, test, correction, 1.0 - spec.statistics.level), terms.metrics
    )
    leading_pairs = add_disparity_intervals(
        select_leading_pair_by_attribute(tested_pairs),
        score_vectors,
        attribute_groups,
        replicates=spec.statistics.replicates,
        seed=spec.statistics.seed,
        level=spec.statistics.level,
    )
    if score_vectors.survey_weights is not None and test == "clustered":
        name = TESTS["weighted"]
    else:
        name = TESTS["rows" if terms.cluster is None else test]
    test_description = f"{name}, {CORRECTIONS[correction].format(m=tested_pairs['p'].count())}"
    findings = _build_rank_test_findings(
        leading_pairs, terms, name, test_description, spec.statistics.level
    )
    return AnalysisResult(
        findings, _build_leading_pair_tables(leading_pairs, terms, test_description), tuple(notes)
    )


def _has_no_scores_or_raise(run: Run) -> bool:
    """Tell whether no people were scored; refuse a run of metrics that no single unit has."""
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


def _build_rank_test_notes(run: Run, score_vectors: ScoreVectors, terms: RunTerms) -> list[str]:
    notes = []
    ranked_metrics = set(score_vectors.measures["metric"])
    unranked = [m for m in run.group_metrics["metric"].unique().sort() if m not in ranked_metrics]
    if unranked:
        notes.append(f"not ranked, because no single unit has such a score: {', '.join(unranked)}")
    if terms.cluster is None:
        notes.append(
            "rank tests: no --cluster was named, so every unit is treated as a different person; "
            "if people have several units, pairs will seem to differ that do not"
        )
    constant = score_vectors.measures.filter(
        pl.Series([bool(len(set(v[v == v])) == 1) for v in score_vectors.values])  # noqa: PLR0124
    )
    notes += [
        f"{terms.format_metric(row)}: every unit has the same score, so no group ranks above"
        " another"
        for row in constant.iter_rows(named=True)
    ]
    unknown = sorted(m for m in ranked_metrics if m not in terms.metrics)
    if unknown:
        notes.append(f"it is not known which way is better: {', '.join(unknown)}")
    return notes


def _note_small_groups(small_groups: pl.DataFrame, terms: RunTerms) -> list[str]:
    notes = []
    for (attribute,), rows in small_groups.partition_by("attribute", as_dict=True).items():
        group_list = [
            f"{g} ({c:,})" for g, c in rows.select("group", "clusters").head(8).iter_rows()
        ]
        if rows.height > len(group_list):
            group_list.append(f"{rows.height - len(group_list):,} more")
        notes.append(
            f"{terms.format_attribute(str(attribute))}: not ranked, for a group needs"
            f" {MIN_SUBJECTS} subjects with a score: {', '.join(group_list)}"
        )
    return notes


def _build_rank_test_findings(
    leading_pairs: pl.DataFrame,
    terms: RunTerms,
    test_name: str,
    test_description: str,
    level: float,
) -> pl.DataFrame:
    differ = leading_pairs.filter("found").sort("p_adjusted", maintain_order=True)
    rows = [
        _build_difference_finding(row, terms, test_description)
        for row in differ.iter_rows(named=True)
    ]
    not_differing = leading_pairs.filter(~pl.col("found"))
    for measure_rows in not_differing.partition_by(MEASURE_COLUMNS, maintain_order=True):
        attribute_rows = measure_rows.rows(named=True)
        rows.append(
            {
                "analysis": "rank_tests",
                "claim": format_no_difference_found(attribute_rows, terms, test_name, level),
                "reference": "fhibe",
                "status": "ok",
                "metric": attribute_rows[0]["metric"],
                "label": attribute_rows[0]["label"],
            }
        )
    return build_ranked_findings_table(rows)


def _build_difference_finding(
    row: Mapping[str, Any], terms: RunTerms, test_description: str
) -> dict[str, Any]:
    names = ("low", "high", "metric", "label", "attribute", "group_a", "group_b", "p_adjusted")
    return {
        "analysis": "rank_tests",
        "claim": format_leading_pair_difference(row, terms, test_description),
        "effect": row["disparity"],
        "n": row["n_a"] + row["n_b"],
        "reference": "fhibe",
        "status": "ok" if row["disparity"] is not None else "undefined",
        **{name: row[name] for name in names},
    }


def _build_leading_pair_tables(
    leading_pairs: pl.DataFrame, terms: RunTerms, test_description: str
) -> dict[str, pl.DataFrame]:
    """Build tables: each attribute's leading pair by p, and where the two procedures disagree."""
    ordered = leading_pairs.sort(
        "found", "p_adjusted", descending=[True, False], maintain_order=True
    )
    tables = {
        f"Rank tests, each attribute's leading pair: {test_description} "
        f"(first {_MAX_LISTED})": ordered
    }
    disagreeing = ordered.filter((pl.col("n_found") > 0) != (pl.col("n_published") > 0))
    if disagreeing.height:
        caption = "Where the published procedure and this one disagree whether groups differ"
        tables[f"{caption} (first {_MAX_LISTED})"] = disagreeing
    return {
        name: _format_leading_pairs_table(frame.head(_MAX_LISTED), terms)
        for name, frame in tables.items()
    }


def _format_leading_pairs_table(leading_pairs: pl.DataFrame, terms: RunTerms) -> pl.DataFrame:
    rows = [
        {
            "model": row["model"],
            "metric": terms.format_metric(row),
            "attribute": terms.format_attribute(row["attribute"]),
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
        for row in leading_pairs.iter_rows(named=True)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.selectors.float().round_sig_figs(_DIGITS)
    )
    return frame if terms.n_models > 1 else frame.drop("model")
