"""Run analyses on a finished audit: its tables go in, more findings and their tables come out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux.api._tables_from_memory import RunHolder, run_of, write_with_report
from isolux.api.error_budget import add_error_budget_entry, label_exploratory
from isolux.core import registry
from isolux.core.containers import AnalysisResult, Run, tables_to_json
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import SpecError
from isolux.core.info import Reference
from isolux.core.notebook import FindingsFrame
from isolux.core.notes import split_cautions_from_notes
from isolux.core.plugin_options import parse_option_assignments
from isolux.core.progress import report_step
from isolux.core.survey_sample import SAMPLE, refuse_survey_sample
from isolux.core.tables import FINDINGS, check

GROUP_GAPS = "group_gaps"
"""The analysis of every audit, whose findings come first."""

CONFOUNDERS = "confounders"

EVIDENCE_ANALYSES = {
    "recall_by_iou": ("overlap_curves", "size_and_occlusion"),
    "label_association": ("confidence_curves",),
    "answers": ("answer_associations",),
    "pairs": ("biometrics",),
    "candidates": ("biometrics",),
}
"""Further analyses of every audit, by the evidence that they read."""


_COUNT_ANALYSES = (GROUP_GAPS, "power")
"""Analyses of group tables alone, which support runs of counts."""

_TABLE_ANALYSES = (GROUP_GAPS, "model_changes")
"""Analyses of an audit's tables alone, whose numbers are weighted already."""

_NOT_IN_STORY = (
    GROUP_GAPS,
    *sum(EVIDENCE_ANALYSES.values(), ()),
    "model_changes",
)  # the second is of comparisons


READING_ORDER = (
    "confounders",
    "trends",
    "rank_tests",
    "error_model",
    "patterns",
    "slices",
    "tradeoffs",
    "label_errors",
    "power",
)
"""The order in which to read why: what a gap survives, where scores fall, what goes with errors,
where to look, what a threshold could do, what wrong labels could do, what more data is needed.
Others follow."""


def sort_analyses_for_reading(names: Sequence[str]) -> list[str]:
    """Put analyses in reading order; others follow.

    Examples
    --------
    >>> sort_analyses_for_reading(["power", "weather", "confounders"])
    ['confounders', 'power', 'weather']
    """
    position_by_name = {name: position for position, name in enumerate(READING_ORDER)}
    return sorted(
        dict.fromkeys(names), key=lambda name: position_by_name.get(name, len(position_by_name))
    )


def list_default_analyses(run: Run) -> list[str]:
    """List the analyses of every audit: gaps, and those that its evidence supports."""
    if SAMPLE in run.evidence:
        return [GROUP_GAPS]
    return [
        GROUP_GAPS,
        *(
            analysis
            for evidence_name in run.evidence
            for analysis in EVIDENCE_ANALYSES.get(evidence_name, ())
        ),
    ]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A run with what analyses say of it."""

    run: Run
    refused: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return self.run._repr_html_()

    @property
    def findings(self) -> pl.DataFrame:
        """Plain sentences, what matters first: table ``findings``."""
        return FindingsFrame(self.run.findings, self.run.record)

    def report(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run directory with its ``report.html`` and return the report's path."""
        from isolux.report.html import write_report

        return write_with_report(self.run, out, write_report, overwrite=overwrite)


def explain(
    run: Run | RunHolder | str | Path,
    *,
    analysis: Sequence[str] = (),
    analysis_option: Sequence[str] = (),
    role: Sequence[str] = (),
) -> Explanation:
    """Look for reasons why groups differ: confounders, error models, patterns, slices, power.

    Parameters
    ----------
    run : Audit, Run, str or Path
        A finished audit, or its run directory. It stays as it is.
    analysis : sequence of str
        What to run, one of `isolux list analyses`; default: all that fit.
    analysis_option : sequence of str
        A setting of an analysis, ANALYSIS.NAME=VALUE.
    role : sequence of str
        An attribute's causal role in the gap, for confounders, as light=mediator: before, mediator,
        after or unknown.

    Returns
    -------
    Explanation
        ``.findings``, ``.run``, ``.refused``, ``.report(out)``.

    Raises
    ------
    UnknownNameError, SpecError
        No such analysis or setting, or a run that lacks what an analysis named reads.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> run = Run({}, *(t.empty() for t in tables))
    >>> explain(run, analysis=["group_gaps"]).findings.height
    0
    """
    loaded = run_of(run)
    options = [*analysis_option, *role_flags_to_options(role, analysis or None)]
    if analysis:
        return Explanation(run_analyses(loaded, analysis, options))
    return Explanation(*run_all_analyses(loaded, options))


def run_analyses(
    run: Run, analyses: Sequence[str], options: Sequence[str] = (), *, planned: Sequence[str] = ()
) -> Run:
    """Add what analyses say of a run to its findings, tables, notes and references.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> run_analyses(Run({}, *(t.empty() for t in tables)), ["group_gaps"]).findings.height
    0
    """
    by_analysis = _split_options(analyses, options)
    for name in dict.fromkeys(analyses):
        report_step(f"the analysis {name}")
        plugin = registry.load("analyses", name)
        if name not in _COUNT_ANALYSES:
            refuse_count_tables(run.evidence, f"the analysis {name}", "the analysis power")
        if (
            SAMPLE in run.evidence
            and name not in _TABLE_ANALYSES
            and not _supports_survey_weights(name)
        ):
            supported = ", ".join(
                analysis for analysis in READING_ORDER if _supports_survey_weights(analysis)
            )
            refuse_survey_sample(
                run.evidence,
                f"the analysis {name}",
                f"one that does ({supported}), or an audit without them",
            )
        settings = parse_option_assignments(
            plugin.explain,
            by_analysis[name],
            owner=f"the analysis {name}",
            flag="--analysis-option",
        )
        analysis_result = plugin.explain(run, **settings)
        analysis_result = replace(
            analysis_result,
            findings=label_exploratory(analysis_result.findings, run.record, name, planned),
        )
        run = _add_analysis_result(run, name, analysis_result, by_analysis[name])
        run = replace(run, record=add_error_budget_entry(run.record, name, planned))
    return run


def _supports_survey_weights(name: str) -> bool:
    return registry.load_analysis_info(name).supports_survey_weights


def role_flags_to_options(role: Sequence[str], analyses: Sequence[str] | None) -> list[str]:
    """Turn ``--role light=mediator`` into the setting of the analysis that reads roles.

    Examples
    --------
    >>> role_flags_to_options(["light=mediator", "hour=before"], None)
    ['confounders.roles={"light": "mediator", "hour": "before"}']
    """
    if not role:
        return []
    if analyses is not None and CONFOUNDERS not in analyses:
        raise SpecError(
            f"--role belongs to the analysis {CONFOUNDERS}, which does not run",
            expected=f"{CONFOUNDERS} among the analyses",
            found=", ".join(analyses) or "none",
            where="--role",
        )
    roles: dict[str, str] = {}
    for assignment in role:
        name, equals, causal_role = (text.strip() for text in assignment.rpartition("="))
        if not equals or not name or not causal_role:
            raise SpecError(
                "--role is not ATTRIBUTE=ROLE",
                expected="such as light=mediator",
                found=repr(assignment),
            )
        if name in roles:
            raise SpecError(f"--role names {name!r} twice", found=repr(assignment), where="--role")
        roles[name] = causal_role
    return [f"{CONFOUNDERS}.roles={json.dumps(roles, ensure_ascii=False)}"]


def run_all_analyses(run: Run, options: Sequence[str] = ()) -> tuple[Run, dict[str, str]]:
    """Run every supported analysis; return the reason for each that did not run."""
    names = sort_analyses_for_reading(
        [n for n in registry.names("analyses") if n not in _NOT_IN_STORY]
    )
    refusals: dict[str, str] = {}
    for name in names:
        own_options = [option for option in options if option.startswith(f"{name}.")]
        try:
            run = run_analyses(run, [name], own_options)
        except SpecError as error:
            refusals[name] = "; ".join([error.problem, *([error.hint] if error.hint else [])])
    return run, refusals


def _split_options(analyses: Sequence[str], options: Sequence[str]) -> dict[str, list[str]]:
    options_by_analysis: dict[str, list[str]] = {name: [] for name in analyses}
    for option in options:
        key = option.partition("=")[0]
        name, dot, _ = key.partition(".")
        if dot and name.strip() in options_by_analysis:
            options_by_analysis[name.strip()].append(option.partition(".")[2])
        elif len(options_by_analysis) == 1 and not dot:
            options_by_analysis[next(iter(options_by_analysis))].append(option)
        else:
            raise SpecError(
                "--analysis-option belongs to no analysis that runs",
                expected="ANALYSIS.NAME=VALUE with ANALYSIS one of "
                + ", ".join(options_by_analysis or ["none"]),
                found=repr(option),
            )
    return options_by_analysis


def merge_references(
    recorded_references: Iterable[Mapping[str, str]], references: Iterable[Reference]
) -> list[Mapping[str, str]]:
    """Merge references into a record's list, each publication once; the first entry stays."""
    reference_rows = {(r["key"], r["place"]): r for r in recorded_references}
    for r in references:
        row = {"key": r.key, "citation": r.citation, "place": r.location, "url": r.url}
        reference_rows.setdefault((r.key, r.location), row)
    return list(reference_rows.values())


def _add_analysis_result(
    run: Run, name: str, analysis_result: AnalysisResult, options: Sequence[str]
) -> Run:
    """Add one analysis's findings, notes, tables and references to the run."""
    findings = check(analysis_result.findings, FINDINGS, source=name)
    other_findings = run.findings.filter(pl.col("analysis") != name)
    all_findings = pl.concat([FINDINGS.conform(table) for table in (other_findings, findings)])
    names = all_findings["analysis"].unique(maintain_order=True).to_list()
    order = [
        GROUP_GAPS,
        *sort_analyses_for_reading([analysis for analysis in names if analysis != GROUP_GAPS]),
    ]
    all_findings = all_findings.sort(
        pl.col("analysis").replace_strict(order, list(range(len(order))), return_dtype=pl.Int64),
        "rank",
        maintain_order=True,
    )
    record = dict(run.record)
    analysis_info = registry.load_info("analyses", name)
    entry_record: dict[str, Any] = {
        "name": name,
        "title": analysis_info.title,
        "options": list(options),
    }
    entries = {entry["name"]: entry for entry in record.get("analyses", ())}
    earlier_notes = entries.get(name, {}).get("said", ())
    entries[name] = entry_record | {
        "assumptions": list(analysis_info.assumptions),
        "said": [*map(str, analysis_result.notes)],
    }
    # Its earlier notes are replaced, except those that other analyses repeat.
    repeated_notes = {text for entry in entries.values() for text in entry.get("said", ())}
    removed_notes = set(earlier_notes) - repeated_notes
    ordered_names = sort_analyses_for_reading(
        [analysis for analysis in entries if analysis not in _NOT_IN_STORY]
    )
    record["analyses"] = [
        entries[analysis]
        for analysis in (*(n for n in entries if n in _NOT_IN_STORY), *ordered_names)
    ]
    for severity, new_notes in zip(
        ("warnings", "notes"), split_cautions_from_notes(analysis_result.notes), strict=True
    ):
        remaining_notes = [text for text in record.get(severity, ()) if text not in removed_notes]
        record[severity] = list(dict.fromkeys([*remaining_notes, *new_notes]))
    record["references"] = merge_references(record.get("references", ()), analysis_info.references)
    tables = {**record.get("explained", {}), name: tables_to_json(analysis_result.tables)}
    record["explained"] = {
        key: printed_tables for key, printed_tables in tables.items() if printed_tables
    }
    ranked_findings = all_findings.with_columns(rank=pl.int_range(1, pl.len() + 1))
    return replace(run, record=record, findings=ranked_findings)
