"""The worst slices: whom to look at first when no hypothesis is at hand.

Every combination of values of up to three attributes is a slice. One half of the clusters suggests
the few that are worst by SliceLine's score (``stats/slices.py``: how far the mean error lies above
everyone's, less a penalty for being small), found exactly. The other half, which chose nothing, is
asked about those alone: how much worse each slice is than everyone else there, with the audit's
intervals and null test over clusters, p-values corrected over the slices by Holm's method.

SliceLine stops at the first step. Its worst slices then look bad in any case: the worst of
thousands do in any data, above all where a person has many photos (``docs/methods/slices.md``
measures how often). Slices that share most of their people with a worse one are left out, because
SliceLine's list often repeats one finding ten times.

A slice says where to look, and not why. What else differs there is for ``confounders``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import polars as pl

from isolux.analyses._features import Features, items_of, kinds_of, without
from isolux.analyses._judged import (
    Judged,
    ScoreSettings,
    findings_table,
    judged_of,
    nothing_to_judge,
)
from isolux.analyses._regrouping import at_least, check_settings, settings_of
from isolux.analyses._sampled import FIXED, rows_of_units, sampled_of
from isolux.analyses.slices.searching import Suggested, asked, search
from isolux.statements.numbers import points, value_text, with_unit
from isolux.statements.words import Words, level_of, words_of
from isolux.stats.multiplicity import holm
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    samples=True,
    title="The worst slices",
    summary="For which people, described by up to three attributes, the model works worst; found "
    "on one half of the data and tested on the other.",
    references=(
        Reference(
            "sliceline",
            "Sagadeeva, S., & Boehm, M. (2021). SliceLine: Fast, linear-algebra-based slice "
            "finding for ML model debugging. In Proceedings of SIGMOD (pp. 2290–2299).",
            "sections 2 and 3: the score and its bounds",
            "https://doi.org/10.1145/3448016.3457323",
        ),
        works.HOLM.at("the correction"),
    ),
    assumptions=(
        (
            "Clusters are independent of one another; which of them suggest slices and which test "
            "them is drawn at random."
        ),
        "A slice tells where errors are, not why: what else differs there is not taken out.",
        (
            "Slices with fewer people than the least support, or than the audit's minimum, are not "
            "looked at; unknown values are not a slice."
        ),
    ),
)
CAPTION = "The worst slices of one half, measured on the other"
"""Of its table."""
_BINS = 4  # quantiles of attributes that are numbers


@dataclass(frozen=True, slots=True)
class _Told:
    """One model's slices: what was suggested, what the other half said, and the words for it."""

    judged: Judged
    items: Features
    suggested: Suggested
    answers: pl.DataFrame
    words: Words

    def name(self, k: int) -> str:
        """Call a slice by its values: ``light: dim, box size: small``."""
        own = [j for j in self.suggested.found.members[k].tolist() if j >= 0]
        return ", ".join(
            f"{self.words.title(self.items.attribute[j])}: {self.items.value[j]}" for j in own
        )


def explain(
    run: Run, *, most: int = 5, min_support: float = 0.01, **scores: Unpack[ScoreSettings]
) -> Explained:
    """Find the worst slices on one half of the clusters and test them on the other.

    Parameters
    ----------
    run : Run
        Its ``scores``, ``attributes`` and settings are read.
    attributes : sequence of str
        Attributes to use; default: all that the run has, except those that the audit's settings
        name as the model's answers and scores. Nothing identifies other models' answers: leave them
        out here.
    most : int
        Slices per model that are tested on the other half.
    min_support : float
        Least share of one half's units in a slice; never fewer than the audit's minimum of units
        and clusters.
    **scores
        Which scores are used, and by which attributes: ``metric`` and ``worse``, described in
        ``ScoreSettings``.

    Returns
    -------
    Explained
        A finding for each slice that the other half confirms, the worst of the first half first;
        for a model without one, a finding that says so. ``effect, low, high``: its mean score less
        everyone else's there, in the metric's unit; ``n``: its units there; ``p_adjusted``: Holm's,
        over the slices of all models. One table: all slices that were asked about.

    Raises
    ------
    SpecError
        Settings out of range, a metric without a direction, no attribute that differs, too few
        clusters for two halves.
    UnknownNameError
        No such metric or attribute.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    check_settings(
        "slices",
        most=at_least(1, most),
        min_support=(min_support, 0.0 < min_support < 1.0, "above 0 and below 1"),
    )
    if nothing_to_judge(run):
        return Explained(FINDINGS.empty())
    spec, words = settings_of(run), replace(words_of(run), corrected=True)
    several = judged_of(run, spec.task, words, "slices", scores)
    told, notes = [], []
    for judged in several:
        items, said = _items(run, judged, scores.get("attributes", ()), spec)
        notes += [*judged.notes, *said]
        own = judged.metric(words)
        sampled = sampled_of(run, judged.units, judged.cluster, "the analysis slices")
        suggested = search(judged, items, own, most, min_support, spec.comparing, sampled)
        task = str(run.scores["task"][0])
        held = None if sampled is None else rows_of_units(run, judged.units)
        answers = asked(judged, suggested, own, task, spec.comparing, held)
        told.append(_Told(judged, items, suggested, answers, words))
        if sampled is not None and sampled.calibrated:
            notes.append(f"slices: {FIXED}")
    if not told:
        return Explained(FINDINGS.empty(), notes=tuple(notes))
    told = _corrected(told)
    rows = [row for one in told for row in _findings(one, spec.statistics.level)]
    table = pl.concat([_table(one, several=len(told) > 1) for one in told])
    tables = {CAPTION: table} if table.height else {}
    return Explained(findings_table(rows), tables, tuple(dict.fromkeys(notes)))


def _items(
    run: Run, judged: Judged, attributes: Sequence[str], spec: AuditSpec
) -> tuple[Features, tuple[str, ...]]:
    notes: list[str] = []
    said = spec.predictions
    answers = said.prediction_column, said.score_column, said.detected_column
    known = set(run.attributes["attribute"].unique())
    # Together with the truth, an answer is the error itself: such a slice teaches nothing.
    for names, why in (
        (answers, "which the model said"),
        ((spec.sample.weight,), "which says how people were drawn"),
    ):
        left = [name for name in names if name is not None and name in known]
        if left and not attributes:
            kept = run.attributes.filter(pl.col("attribute").is_in(left).not_())
            run = replace(run, attributes=kept)
            notes.append(f"Slices are not described by {', '.join(left)}, {why}.")
    kinds = kinds_of(run, spec, judged.units, attributes, analysis="slices")
    items = without(items_of(run, spec, judged.units, kinds, bins=_BINS), judged.value)
    return items, (*notes, *items.notes)


def _corrected(told: Sequence[_Told]) -> list[_Told]:
    """Add Holm's p-values, over the slices of all models."""
    raw = pl.concat([one.answers["p_value"] for one in told]).cast(pl.Float64)
    adjusted = pl.Series("p_adjusted", holm(raw.fill_null(float("nan")).to_numpy()))
    adjusted, made, at = adjusted.fill_nan(None), [], 0
    for one in told:
        n = one.answers.height
        answers = one.answers.with_columns(adjusted.slice(at, n))
        made.append(replace(one, answers=answers))
        at += n
    return made


def _findings(told: _Told, level: float) -> list[dict[str, Any]]:
    sign = 1.0 if told.judged.higher_is_better else -1.0
    rows = []
    for k, answer in enumerate(told.answers.iter_rows(named=True)):
        p = answer["p_adjusted"]
        if p is not None and p <= 1.0 - level and sign * answer["difference"] < 0:
            rows.append(_row(told, _claim(told, k, answer), answer, told.name(k)))
    return rows or [_row(told, _nothing(told), None, None)]


def _row(
    told: _Told, claim: str, answer: dict[str, Any] | None, name: str | None
) -> dict[str, Any]:
    said = answer or dict.fromkeys(("difference", "low", "high", "p_adjusted"))
    row = told.judged.finding(
        "slices",
        told.words.start(told.judged.model, claim),
        reference="sliceline",
        n=answer["n"] if answer else int(told.suggested.second.sum()),
        effect=said["difference"],
        low=said["low"],
        high=said["high"],
    )
    return row | {
        "status": answer["status"] if answer else "ok",
        "group_a": name,
        "group_b": None if name is None else "everyone else",
        "p_adjusted": said["p_adjusted"],
    }


def _claim(told: _Told, k: int, answer: dict[str, Any]) -> str:
    words, row = told.words, told.judged.row
    unit = words.unit(row)
    way = "lower" if answer["difference"] < 0 else "higher"
    of = f" of {answer['n_clusters']:,} clusters" if words.cluster is not None else ""
    return (
        f"{words.measure(row)} with {told.name(k)} is {with_unit(answer['value'], unit)}, and "
        f"{with_unit(answer['others'], unit)} for everyone else: "
        f"{points(answer['difference'], unit)} {way} ({level_of(words)} interval "
        f"{_interval(answer, unit, flip=answer['difference'] < 0)}; "
        f"{words.p(answer['p_adjusted'])}; {answer['n']:,} units{of}). "
        f"One half of the data suggested this slice, {100 * told.suggested.share[k]:.1f} % of its "
        "units; these numbers are the other half's."
    )


def _interval(answer: dict[str, Any], unit: str, *, flip: bool = False) -> str:
    if answer["low"] is None:
        return "not known"
    low, high = (-answer["high"], -answer["low"]) if flip else (answer["low"], answer["high"])
    return f"{value_text(low, unit)} to {value_text(high, unit)}"


def _nothing(told: _Told) -> str:
    """Say that no slice was confirmed; never that there is none."""
    words, row = told.words, told.judged.row
    measure = words.measure(row)
    if told.answers.is_empty():
        return (
            f"{measure}: no slice of one half of the data is enough worse than everyone in that "
            "half to make up for its size, so none was tested on the other half."
        )
    judged = told.answers.filter(pl.col("p_adjusted").is_not_null())
    asked = f"{measure}: none of the {told.answers.height} slices that one half of the data "
    if judged.is_empty():
        return f"{asked}suggested has enough people in the other half to be judged."
    first = judged.row(0, named=True)
    k = int(np.flatnonzero(told.answers["p_adjusted"].is_not_null())[0])
    unit = words.unit(row)
    points = " points" if unit == "fraction" else f" {unit}".rstrip()
    return (
        f"{asked}suggested was confirmed on the other. The first of them, {told.name(k)}, differs "
        f"from everyone else there by {value_text(first['difference'], unit)}{points} "
        f"({level_of(words)} interval {_interval(first, unit)}; {words.p(first['p_adjusted'])})."
    )


def _table(told: _Told, *, several: bool) -> pl.DataFrame:
    found, answers = told.suggested.found, told.answers
    names = [told.name(k) for k in range(len(found.score))]
    table = pl.DataFrame(
        {
            "slice": pl.Series(names, dtype=pl.String),
            "share": told.suggested.share,
            "score": found.score,
            "mean where suggested": told.suggested.value,
            "units": answers["n"],
            "clusters": answers["n_clusters"],
            "mean": answers["value"],
            "of everyone else": answers["others"],
            "difference": answers["difference"],
            "from": answers["low"],
            "to": answers["high"],
            "adjusted p": answers["p_adjusted"],
            "status": answers["status"],
        }
    ).with_columns(pl.selectors.float().fill_nan(None))
    return (
        table.insert_column(0, pl.Series("model", [told.judged.model] * table.height))
        if (several)
        else table
    )
