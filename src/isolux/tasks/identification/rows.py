"""From search outcomes to the table scores, the evidence tables and the notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import score_rows, stack_scores
from isolux.tasks._threshold import other_rates, out_of_reach
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, Roles
from isolux.tasks.identification.judging import Judged, Why
from isolux.tasks.identification.metrics import AT_THRESHOLD, FNIR, FPIR, FTA, FTE, HIT
from isolux.vocabulary.notes import Caution

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class At:
    """Ranks, rank limit and threshold (NaN: none) at which one model is evaluated.

    ``set_on`` is the number of nonmated searches that set the threshold; 0: it was given.
    """

    ranks: tuple[int, ...]
    limit: int
    threshold: float
    set_on: int


def rows_of_model(
    candidates: Candidates,
    outcomes: Judged,
    operating_point: At,
    roles: Roles,
    names: Sequence[str],
) -> pl.DataFrame:
    """Build one model's rows of the table ``scores``."""
    words = pl.Series([None, *(null_reason.value for null_reason in Why)], dtype=pl.String)
    return stack_scores(
        [
            score_rows(
                roles.units.with_columns(words.gather(reason_code).alias("reason")),
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
    candidates: Candidates, outcomes: Judged, operating_point: At, roles: Roles
) -> Iterator[tuple[str, float | None, npt.NDArray[np.bool_], Codes]]:
    """Yield each metric's name, rank, values and reason codes, all ``[n]``."""
    search_code = np.where(
        (outcomes.why == 0) & roles.setting, Why.SET_ON.code, outcomes.why
    ).astype(np.int8)
    mated_code = np.where(
        (search_code == 0) & ~outcomes.mated, Why.NOT_ENROLLED.code, search_code
    ).astype(np.int8)
    nonmated_code = np.where(
        (search_code == 0) & ~outcomes.other, Why.ENROLLED.code, search_code
    ).astype(np.int8)
    for k in operating_point.ranks:
        yield HIT, float(k), outcomes.rank <= k, mated_code
    # At or above the threshold is returned, as in NIST's reports (docs/methods/biometrics.md).
    is_returned = outcomes.best >= operating_point.threshold
    is_missed = ~(
        (outcomes.rank <= operating_point.limit) & (outcomes.own >= operating_point.threshold)
    )
    for name, is_hit, base_code in (
        (FPIR, is_returned, nonmated_code),
        (FNIR, is_missed, mated_code),
    ):
        has_no_threshold = math.isnan(operating_point.threshold)
        reason_code = np.where(
            (base_code == 0) & has_no_threshold, Why.NO_THRESHOLD.code, base_code
        ).astype(np.int8)
        yield name, None, is_hit, reason_code
    for name, state, is_member, exclusion_reason in (
        (FTA, candidates.state, roles.searched, Why.NOT_SEARCHED),
        (FTE, candidates.held, roles.enrolled, Why.NOT_TO_BE_ENROLLED),
    ):
        is_absent = (state == MISSING).fill_null(value=False).to_numpy()
        reason_code = np.where(is_absent, Why.MISSING.code, 0)
        reason_code = np.where(is_member, reason_code, exclusion_reason.code).astype(np.int8)
        yield name, None, (state == FAILED).fill_null(value=False).to_numpy(), reason_code


def candidates_table(
    candidates: Candidates, outcomes: Judged, operating_point: At, roles: Roles
) -> pl.DataFrame:
    """Build the evidence ``candidates``: one row a search, with the other people of its list."""
    ids, person = roles.units["unit_id"], roles.person
    probe, entry = (candidates.rows[c].to_numpy() for c in ("probe", "entry"))
    nonmates = candidates.rows.filter(pl.Series(person[probe] != person[entry]))
    nonmates = nonmates.sort("probe", "order", "entry")
    lists = (
        nonmates.select("probe", other_id=ids.gather(nonmates["entry"]), similarity="score")
        .group_by("probe", maintain_order=True)
        .agg("other_id", "similarity")
    )
    rows = roles.units.select("unit_id", "cluster_id").with_columns(
        pl.Series("mated", outcomes.mated),
        pl.Series("counts", (outcomes.why == 0) & ~roles.setting),
        pl.Series("failed", outcomes.failed),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("probe"),
        model=pl.lit(candidates.model),
        threshold=pl.lit(
            None if math.isnan(operating_point.threshold) else operating_point.threshold,
            dtype=pl.Float64,
        ),
    )
    rows = rows.filter(pl.Series(roles.searched)).join(
        lists, on="probe", how="left", maintain_order="left"
    )
    return rows.select(
        "model",
        "unit_id",
        "cluster_id",
        pl.when("counts").then("mated").alias("mated"),
        "failed",
        "threshold",
        pl.col("other_id").fill_null(pl.lit([], dtype=pl.List(pl.String))),
        pl.col("similarity").fill_null(pl.lit([], dtype=pl.List(pl.Float64))),
    )


def gallery_table(candidates: Candidates, roles: Roles) -> pl.DataFrame:
    """Build the evidence ``gallery``: one row an enrolled image."""
    enrolment_failure = pl.col("held")
    template = (
        pl.when(enrolment_failure.is_null())
        .then(True)  # noqa: FBT003
        .when(enrolment_failure == FAILED)
        .then(False)  # noqa: FBT003
    )
    is_from_embeddings = pl.lit(candidates.of_embeddings)
    return (
        roles.units.with_columns(candidates.held.alias("held"))
        .filter(pl.Series(roles.enrolled))
        .select(
            pl.lit(candidates.model).alias("model"),
            "unit_id",
            "cluster_id",
            template=pl.when(is_from_embeddings).then(template),
        )
    )


_CAUTION_SHARE = 0.1  # of the gallery's images, unknown or missing
Every = Sequence[tuple[Candidates, Judged, At]]


def thresholds_chosen(
    model_results: Every, names: Sequence[str], *, turned: bool
) -> dict[str, Any]:
    """Record each model's threshold, for sentences and for ``audit.json``."""
    sign = -1.0 if turned else 1.0
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


def notes_on(
    model_results: Every,
    roles: Roles,
    fpir: float,
    similarity_threshold: float | None,
    *,
    turned: bool,
) -> list[str]:
    """Describe the gallery, the number of searches and the thresholds."""
    notes: list[str] = [*roles.cautions, *_describe_gallery(roles)]
    has_several_models = len(model_results) > 1
    for candidates, outcomes, operating_point in model_results:
        prefix = f"{candidates.model}: " if has_several_models else ""
        is_counted = ~roles.setting
        n_mated, n_nonmated = (
            int((outcomes.mated & is_counted).sum()),
            int((outcomes.other & is_counted).sum()),
        )
        notes += [*candidates.notes, *_describe_failures(candidates, outcomes, roles, prefix)]
        notes.append(
            f"{prefix}{n_mated:,} searches are for people who are enrolled, {n_nonmated:,} for"
            " people who are"
            " not"
            + (": a closed set, in which nobody can be found in error." if not n_nonmated else ".")
        )
        notes += _describe_threshold(
            candidates,
            outcomes,
            operating_point,
            roles,
            prefix,
            (fpir, similarity_threshold),
            is_distance=turned,
        )
    return notes


def _describe_gallery(roles: Roles) -> list[str]:
    """Count the gallery's images and people; caution where many are unknown."""
    n_entries, is_known = int(roles.enrolled.sum()), roles.enrolled & (roles.person > 0)
    if not n_entries:
        return []
    n_people = len(np.unique(roles.person[is_known]))
    text = f"The gallery holds {n_entries:,} images of {n_people:,} people"
    if roles.everyone:
        text += "; each is searched for among all others (--enrolled names a gallery)"
    notes = [f"{text}."]
    n_unknown = n_entries - int(is_known.sum())
    if n_unknown:
        unknown_text = (
            f"{n_unknown:,} of {n_entries:,} enrolled images are of unknown people and are left"
            " out of"
            " the gallery."
        )
        notes.append(
            Caution(unknown_text) if n_unknown >= _CAUTION_SHARE * n_entries else unknown_text
        )
    return notes


def _describe_failures(
    candidates: Candidates, outcomes: Judged, roles: Roles, prefix: str
) -> list[str]:
    """Count images without a template or a row, searched for and enrolled."""
    enrolment_failure = candidates.held.filter(pl.Series(roles.enrolled & (not roles.everyone)))
    n_entries, n_failed_searches = int(roles.enrolled.sum()), int(outcomes.failed.sum())
    n_failed_entries, n_absent = (
        int((enrolment_failure == FAILED).sum()),
        int((enrolment_failure == MISSING).sum()),
    )
    notes: list[str] = []
    if n_failed_searches:
        n_searched = int((roles.searched & (outcomes.why != Why.MISSING.code)).sum())
        notes.append(
            f"{prefix}No template could be made from {n_failed_searches:,} of {n_searched:,}"
            " images to be searched "
            "for: they find nobody."
        )
    if n_failed_entries:
        notes.append(
            f"{prefix}No template could be made of {n_failed_entries:,} of {n_entries:,} images"
            " to be enrolled:"
            " searches for those people miss them."
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
    for digits in (6, 9, 12):
        rounded = float(f"{threshold:.{digits}g}")
        if ((scores >= rounded) == is_returned).all():
            return f"{inclusive_phrase} {sign * rounded:.{digits}g}"
    next_score = float(scores[~is_returned].max())
    digits = next(
        d
        for d in (6, 9, 12, 17)
        if ((scores > float(f"{next_score:.{d}g}")) == is_returned).all() or d > 12
    )
    return f"{strict_phrase} {sign * float(f'{next_score:.{digits}g}'):.{digits}g}"


def _describe_threshold(
    candidates: Candidates,
    outcomes: Judged,
    operating_point: At,
    roles: Roles,
    prefix: str,
    rate_and_threshold: tuple[float, float | None],
    *,
    is_distance: bool,
) -> list[str]:
    """Describe where a model's threshold comes from; caution where it is out of range."""
    fpir, similarity_threshold = rate_and_threshold
    sign, scores = -1.0 if is_distance else 1.0, candidates.rows["score"].to_numpy()
    if not candidates.scored:
        return [f"{prefix}Lists have ranks and no scores: nothing is measured at a threshold."]
    if similarity_threshold is not None:
        return list(
            out_of_reach(
                candidates.model,
                sign * scores,
                sign * similarity_threshold,
                falling=is_distance,
                none="no candidate is returned",
                every="every candidate is returned",
            )
        )
    if math.isnan(operating_point.threshold):
        n_required = math.ceil(1.0 / fpir * (1.0 - 1e-12))
        missing_text = (
            f"{prefix}{operating_point.set_on:,} searches for people who are not enrolled; a"
            " threshold at a false"
            f" positive identification rate of {fpir:g} needs {n_required:,}, so nothing was"
            " measured"
            " at a threshold."
        )
        return [missing_text] if outcomes.other.any() else []  # a closed set has a note already
    sample_phrase = (
        f"on {roles.where}, who are not judged" if roles.where else "on those who are judged"
    )
    text = (
        f"{prefix}A candidate is returned from a score of"
        f" {_format_threshold(scores, operating_point.threshold, sign)}: at"
        f" most {100 * fpir:g} % of {operating_point.set_on:,} searches for people who are not"
        " enrolled then"
        f" return anyone. It was set {sample_phrase}."
    )
    notes: list[str] = [text]
    if roles.where:
        is_nonmated = outcomes.other
        notes += other_rates(
            outcomes.best[is_nonmated] >= operating_point.threshold,
            roles.setting[is_nonmated],
            where=roles.where,
            what="searches for people who are not enrolled",
            model=candidates.model,
        )
    if len(scores) and operating_point.threshold <= float(scores.min()):
        text = (
            f"{prefix}The candidate lists of {candidates.model!r} end at a score of"
            f" {sign * operating_point.threshold:.6g}, and fewer than {100 * fpir:g} % of the"
            " searches for"
            " people who are not enrolled return anyone: the threshold is that end."
        )
        notes.append(Caution(text))
    return notes
