"""From search outcomes to the table scores, the evidence tables and the notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.notes import Caution
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import score_rows, stack_scores
from isolux.tasks._threshold import caution_on_constant_outcome, caution_on_rate_difference
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, SearchRoles
from isolux.tasks.identification.metrics import AT_THRESHOLD, FNIR, FPIR, FTA, FTE, HIT
from isolux.tasks.identification.search_outcomes import NullReason, SearchOutcomes

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """Ranks, rank limit and threshold (NaN: none) at which one model is evaluated.

    ``n_threshold_searches`` is the number of nonmated searches that set the threshold; 0: it was
    given.
    """

    ranks: tuple[int, ...]
    rank_limit: int
    threshold: float
    n_threshold_searches: int


def build_score_rows(
    candidates: Candidates,
    outcomes: SearchOutcomes,
    operating_point: OperatingPoint,
    roles: SearchRoles,
    names: Sequence[str],
) -> pl.DataFrame:
    """Build one model's rows of the table ``scores``."""
    words = pl.Series([None, *(null_reason.value for null_reason in NullReason)], dtype=pl.String)
    return stack_scores(
        [
            score_rows(
                roles.units.with_columns(reason=words.gather(reason_code)),
                "identification",
                name,
                values.astype(np.float64),
                model=candidates.model,
                threshold=rank,
            )
            for name, rank, values, reason_code in _metric_values(
                candidates, outcomes, operating_point, roles
            )
            if name in names
        ]
    )


def _metric_values(
    candidates: Candidates,
    outcomes: SearchOutcomes,
    operating_point: OperatingPoint,
    roles: SearchRoles,
) -> Iterator[tuple[str, float | None, npt.NDArray[np.bool_], Codes]]:
    """Yield each metric's name, rank, values and reason codes, all ``[n]``."""
    # Searches that set the threshold are excluded from every metric, also from those without one.
    search_code = np.where(
        (outcomes.reason_code == 0) & roles.is_threshold_sample,
        NullReason.SET_ON.code,
        outcomes.reason_code,
    ).astype(np.int8)
    mated_code = np.where(
        (search_code == 0) & ~outcomes.is_mated, NullReason.NOT_ENROLLED.code, search_code
    ).astype(np.int8)
    nonmated_code = np.where(
        (search_code == 0) & ~outcomes.is_nonmated, NullReason.ENROLLED.code, search_code
    ).astype(np.int8)
    for k in operating_point.ranks:
        yield HIT, float(k), outcomes.rank <= k, mated_code
    # At or above the threshold is returned, as in NIST's reports (docs/methods/biometrics.md).
    is_returned = outcomes.best_other_score >= operating_point.threshold
    # A miss by rank or by score: NIST's FNIR has both limits.
    is_missed = ~(
        (outcomes.rank <= operating_point.rank_limit)
        & (outcomes.mate_score >= operating_point.threshold)
    )
    for name, is_hit, base_code in (
        (FPIR, is_returned, nonmated_code),
        (FNIR, is_missed, mated_code),
    ):
        has_no_threshold = math.isnan(operating_point.threshold)
        reason_code = np.where(
            (base_code == 0) & has_no_threshold, NullReason.NO_THRESHOLD.code, base_code
        ).astype(np.int8)
        yield name, None, is_hit, reason_code
    # Failures are counted for all images of a role, also where the identity is unknown.
    for name, state, is_member, exclusion_reason in (
        (FTA, candidates.search_failure, roles.is_searched, NullReason.NOT_SEARCHED),
        (FTE, candidates.enrolment_failure, roles.is_enrolled, NullReason.NOT_TO_BE_ENROLLED),
    ):
        is_absent = (state == MISSING).fill_null(value=False).to_numpy()
        reason_code = np.where(is_absent, NullReason.MISSING.code, 0)
        reason_code = np.where(is_member, reason_code, exclusion_reason.code).astype(np.int8)
        yield name, None, (state == FAILED).fill_null(value=False).to_numpy(), reason_code


def build_candidates_table(
    candidates: Candidates,
    outcomes: SearchOutcomes,
    operating_point: OperatingPoint,
    roles: SearchRoles,
) -> pl.DataFrame:
    """Build the evidence ``candidates``: one row a search, with the other people of its list."""
    ids, person = roles.units["unit_id"], roles.person
    probe, entry = (candidates.rows[c].to_numpy() for c in ("probe", "entry"))
    # Only other people: this evidence shows who is returned wrongly, by group.
    nonmates = candidates.rows.filter(pl.Series(person[probe] != person[entry]))
    nonmates = nonmates.sort("probe", "order", "entry")
    lists = (
        nonmates.select("probe", other_id=ids.gather(nonmates["entry"]), similarity="score")
        .group_by("probe", maintain_order=True)
        .agg("other_id", "similarity")
    )
    rows = roles.units.select("unit_id", "cluster_id").with_columns(
        pl.Series("mated", outcomes.is_mated),
        pl.Series("counts", (outcomes.reason_code == 0) & ~roles.is_threshold_sample),
        pl.Series("failed", outcomes.has_failed),
        probe=pl.int_range(pl.len(), dtype=pl.UInt32),
        model=pl.lit(candidates.model),
        threshold=pl.lit(
            None if math.isnan(operating_point.threshold) else operating_point.threshold,
            dtype=pl.Float64,
        ),
    )
    rows = rows.filter(pl.Series(roles.is_searched)).join(
        lists, on="probe", how="left", maintain_order="left"
    )
    return rows.select(
        "model",
        "unit_id",
        "cluster_id",
        # Null where a search counts in no rate, so that the evidence gives the same rates.
        pl.when("counts").then("mated").alias("mated"),
        "failed",
        "threshold",
        pl.col("other_id").fill_null(pl.lit([], dtype=pl.List(pl.String))),
        pl.col("similarity").fill_null(pl.lit([], dtype=pl.List(pl.Float64))),
    )


def build_gallery_table(candidates: Candidates, roles: SearchRoles) -> pl.DataFrame:
    """Build the evidence ``gallery``: one row an enrolled image."""
    enrolment_failure = pl.col("held")
    template = (
        pl.when(enrolment_failure.is_null())
        .then(True)  # noqa: FBT003
        .when(enrolment_failure == FAILED)
        .then(False)  # noqa: FBT003
    )
    is_from_embeddings = pl.lit(candidates.is_from_embeddings)
    return (
        roles.units.with_columns(held=candidates.enrolment_failure)
        .filter(pl.Series(roles.is_enrolled))
        .select(
            pl.lit(candidates.model).alias("model"),
            "unit_id",
            "cluster_id",
            # Candidate lists do not show which enrolled images failed.
            template=pl.when(is_from_embeddings).then(template),
        )
    )


_CAUTION_SHARE = 0.1  # of the gallery's images, unknown or missing
ModelResults = Sequence[tuple[Candidates, SearchOutcomes, OperatingPoint]]


def describe_thresholds(
    model_results: ModelResults, names: Sequence[str], *, is_distance: bool
) -> dict[str, Any]:
    """Record each model's threshold, for sentences and for ``audit.json``."""
    sign = -1.0 if is_distance else 1.0
    threshold_by_model = {
        candidates.model: sign * operating_point.threshold
        for candidates, _, operating_point in model_results
        if not math.isnan(operating_point.threshold)
    }
    threshold_metrics = [name for name in AT_THRESHOLD if name in names]
    if not threshold_by_model or not threshold_metrics:
        return {}
    is_common = len(set(threshold_by_model.values())) == 1
    words = (
        f"at a score of {next(iter(threshold_by_model.values())):.6g}"
        if is_common
        else "at its threshold"
    )
    return {
        "threshold": {"metrics": threshold_metrics, "words": words, "value": threshold_by_model}
    }


def build_notes(
    model_results: ModelResults,
    roles: SearchRoles,
    fpir: float,
    similarity_threshold: float | None,
    *,
    is_distance: bool,
) -> list[str]:
    """Describe the gallery, the number of searches and the thresholds."""
    notes: list[str] = [*roles.cautions, *_describe_gallery(roles)]
    has_several_models = len(model_results) > 1
    for candidates, outcomes, operating_point in model_results:
        prefix = f"{candidates.model}: " if has_several_models else ""
        is_counted = ~roles.is_threshold_sample
        n_mated = int((outcomes.is_mated & is_counted).sum())
        n_nonmated = int((outcomes.is_nonmated & is_counted).sum())
        notes += [*candidates.notes, *_describe_failures(candidates, outcomes, roles, prefix)]
        notes.append(
            f"{prefix}{n_mated:,} searches are for people who are enrolled, {n_nonmated:,} for"
            " people who are not"
            + (": a closed set, in which nobody can be found in error." if not n_nonmated else ".")
        )
        notes += _describe_threshold(
            candidates,
            outcomes,
            operating_point,
            roles,
            prefix,
            (fpir, similarity_threshold),
            is_distance=is_distance,
        )
    return notes


def _describe_gallery(roles: SearchRoles) -> list[str]:
    """Count the gallery's images and people; caution where many are unknown."""
    n_entries, is_known = int(roles.is_enrolled.sum()), roles.is_enrolled & (roles.person > 0)
    if not n_entries:
        return []
    n_people = len(np.unique(roles.person[is_known]))
    text = f"The gallery holds {n_entries:,} images of {n_people:,} people"
    if roles.is_all_to_all:
        text += "; each is searched for among all others (--enrolled names a gallery)"
    notes = [f"{text}."]
    n_unknown = n_entries - int(is_known.sum())
    if n_unknown:
        unknown_text = (
            f"{n_unknown:,} of {n_entries:,} enrolled images are of unknown people and are left out"
            " of the gallery."
        )
        notes.append(
            Caution(unknown_text) if n_unknown >= _CAUTION_SHARE * n_entries else unknown_text
        )
    return notes


def _describe_failures(
    candidates: Candidates, outcomes: SearchOutcomes, roles: SearchRoles, prefix: str
) -> list[str]:
    """Count images without a template or a row, searched for and enrolled."""
    enrolment_failure = candidates.enrolment_failure.filter(
        # In an all-to-all search each image has one template, which is counted as a search.
        pl.Series(roles.is_enrolled & (not roles.is_all_to_all))
    )
    n_entries, n_failed_searches = int(roles.is_enrolled.sum()), int(outcomes.has_failed.sum())
    n_failed_entries = int((enrolment_failure == FAILED).sum())
    n_absent = int((enrolment_failure == MISSING).sum())
    notes: list[str] = []
    if n_failed_searches:
        n_searched = int(
            (roles.is_searched & (outcomes.reason_code != NullReason.MISSING.code)).sum()
        )
        notes.append(
            f"{prefix}No template could be made from {n_failed_searches:,} of {n_searched:,} images"
            " to be searched for: they find nobody."
        )
    if n_failed_entries:
        notes.append(
            f"{prefix}No template could be made of {n_failed_entries:,} of {n_entries:,} images to"
            " be enrolled: searches for those people miss them."
        )
    if n_absent:
        text = (
            f"{prefix}{n_absent:,} of {n_entries:,} enrolled images are not in the file of"
            f" {candidates.model!r}:"
            " the gallery is smaller than it should be, and errors look fewer. Is the file whole?"
        )
        notes.append(Caution(text) if n_absent >= _CAUTION_SHARE * n_entries else text)
    return notes


def _format_threshold(scores: FloatArray, threshold: float, sign: float) -> str:
    """Format the threshold with the fewest digits that accept the same scores."""
    inclusive_phrase, strict_phrase = (
        ("at most", "less than") if sign < 0 else ("at least", "more than")
    )
    is_returned = scores >= threshold
    # The printed threshold must accept the same scores as the exact one.
    for digits in (6, 9, 12):
        rounded = float(f"{threshold:.{digits}g}")
        if ((scores >= rounded) == is_returned).all():
            return f"{inclusive_phrase} {sign * rounded:.{digits}g}"
    # No short number at or above works: the next lower score, excluded, describes the same
    # threshold.
    next_score = float(scores[~is_returned].max())
    digits = next(
        d
        for d in (6, 9, 12, 17)
        if ((scores > float(f"{next_score:.{d}g}")) == is_returned).all() or d > 12
    )
    return f"{strict_phrase} {sign * float(f'{next_score:.{digits}g}'):.{digits}g}"


def _describe_threshold(
    candidates: Candidates,
    outcomes: SearchOutcomes,
    operating_point: OperatingPoint,
    roles: SearchRoles,
    prefix: str,
    rate_and_threshold: tuple[float, float | None],
    *,
    is_distance: bool,
) -> list[str]:
    """Describe where a model's threshold comes from; caution where it is out of range."""
    fpir, similarity_threshold = rate_and_threshold
    sign, scores = -1.0 if is_distance else 1.0, candidates.rows["score"].to_numpy()
    if not candidates.has_scores:
        return [f"{prefix}Lists have ranks and no scores: nothing is measured at a threshold."]
    if similarity_threshold is not None:
        return list(
            caution_on_constant_outcome(
                candidates.model,
                sign * scores,
                sign * similarity_threshold,
                passes_below=is_distance,
                none_phrase="no candidate is returned",
                all_phrase="every candidate is returned",
            )
        )
    if math.isnan(operating_point.threshold):
        n_required = math.ceil(1.0 / fpir * (1.0 - 1e-12))
        missing_text = (
            f"{prefix}{operating_point.n_threshold_searches:,} searches for people who are not"
            f" enrolled; a threshold at a false positive identification rate of {fpir:g} needs"
            f" {n_required:,}, so nothing was measured at a threshold."
        )
        return (
            [missing_text] if outcomes.is_nonmated.any() else []
        )  # a closed set has a note already
    sample_phrase = (
        f"on {roles.sample_description}, who are not judged"
        if roles.sample_description
        else "on those who are judged"
    )
    text = (
        f"{prefix}A candidate is returned from a score of"
        f" {_format_threshold(scores, operating_point.threshold, sign)}: at most {100 * fpir:g} %"
        f" of {operating_point.n_threshold_searches:,} searches for people who are not enrolled"
        f" then return anyone. It was set {sample_phrase}."
    )
    notes: list[str] = [text]
    if roles.sample_description:
        is_nonmated = outcomes.is_nonmated
        notes += caution_on_rate_difference(
            outcomes.best_other_score[is_nonmated] >= operating_point.threshold,
            roles.is_threshold_sample[is_nonmated],
            source=roles.sample_description,
            subject="searches for people who are not enrolled",
            model=candidates.model,
        )
    # An engine that cuts its lists at a score hides all rates at lower thresholds.
    if len(scores) and operating_point.threshold <= float(scores.min()):
        text = (
            f"{prefix}The candidate lists of {candidates.model!r} end at a score of"
            f" {sign * operating_point.threshold:.6g}, and fewer than {100 * fpir:g} % of the"
            " searches for people who are not enrolled return anyone: the threshold is that end."
        )
        notes.append(Caution(text))
    return notes
