"""Face verification: whether images of one person are distinguished from images of two people.

The input is pairs with similarities, or embeddings that are compared in pairs; the pairs are the
evidence, and every rate is a function of the pairs within a group. FHIBE (Xiang et al. 2025,
Methods) reads the true accept rate at a false accept rate of .001.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.schema import to_polars
from isolux.stats.verification import lowest_threshold_at_far
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows
from isolux.tasks._threshold import caution_on_constant_outcome
from isolux.tasks._truth import units_with_identity
from isolux.tasks.face_verification.embedding_pairs import (
    build_hard_rule,
    build_pairs_table,
    compare_all_models,
)
from isolux.tasks.face_verification.metrics import (
    AT_THRESHOLD,
    EVIDENCE,
    FAILURE,
    FTA,
    FTE,
    METRICS,
    REFERENCES,
    SUMMARIES,
)
from isolux.tasks.face_verification.pairs import (
    ComparedPairs,
    check_pair_agreement,
    note_excluded_pairs,
    read_pairs,
)
from isolux.tasks.face_verification.roles import add_enrolment_failures

INFO = TaskInfo(
    predictions="outputs",
    # One unit is in many pairs, so values of units are not independent.
    has_independent_scores=False,
    title="Face verification",
    summary="Whether two images of the same person are told apart from images of two people.",
    references=REFERENCES,
    assumptions=(
        "A pair counts for a group when both of its people are in it, each pair once.",
        "Rates depend on which impostors were compared: hard pairs make more false matches.",
        "A threshold set on the data is held fixed in intervals of rates at that threshold.",
        "At a FAR, below 1/FAR impostor pairs a group has no value, below 30/FAR no interval.",
        "At a threshold that is given, a false match rate is a plain share.",
    ),
    metrics=METRICS,
    defaults=("tar_at_far", "false_match_rate", "false_non_match_rate", FAILURE),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    far: float = 0.001,
    threshold: float | None = None,
    lower_score_means: Literal["different", "same"] = "different",
    identity: str | None = None,
    enrolled: str | None = None,
    impostors: Literal["all", "hard"] = "all",
    same: str | None = "pronoun",
    near: str | None = "apparent_skin_color",
    within: int = 1,
    max_per_group: int | None = None,
    max_pairs: int = 100_000_000,
    seed: int = 0,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Lay out pairs of people and how alike a model finds them, for rates by group.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances.
    predictions : frame
        Pairs: ``model, instance_id, other_id, score`` (higher is more alike; null: the comparison
        failed) and, if known, ``genuine``. Or embeddings: ``model, instance_id, embedding``,
        compared by their cosine.
    far : float
        The false accept rate at which ``tar_at_far`` is read with each group's own threshold, and
        which sets the common threshold if none is given.
    threshold : float, optional
        The similarity from which a pair is accepted, for the rates at one threshold; default: the
        lowest at which at most ``far`` of all impostor pairs are accepted. With a threshold, the
        default metrics are those at it, not ``tar_at_far``.
    lower_score_means : {"different", "same"}
        What a smaller score of a pair means. ``"same"``: scores are distances, and ``threshold``
        is the distance up to which a pair is accepted; the evidence holds them with their sign
        turned, so that higher is more alike.
    identity : str, optional
        The column of the instances or the attribute that names the person; default: ``subject_id``,
        else ``cluster_id``. If there is no ``cluster_id``, identities are the clusters.
    enrolled : str, optional
        Of embeddings: ``ATTRIBUTE=VALUE`` of the images that are enrolled, such as
        ``role=reference``, so that ``failure_to_enrol_rate`` and ``failure_to_acquire_rate`` (of
        all others) are told apart. All are compared.
    impostors : {"all", "hard"}
        Which impostor pairs of embeddings are compared; all genuine pairs are. ``"hard"``: people
        who share a value of ``same`` and are at most ``within`` levels of ``near`` apart (FHIBE,
        Methods); if either is unknown, none.
    same : str, optional
        For hard pairs: an attribute. Default: any two people.
    near : str, optional
        For hard pairs: an attribute with whole ``number`` s. Default: any two people.
    within : int
        Levels of ``near``: 1 is FHIBE's "no more than one of the six possible levels".
    max_per_group : int, optional
        Within each group, everyone included, draw this many genuine and this many impostor
        pairs, by ``seed``. Default: all. FHIBE samples within each subgroup; its released code
        takes 3,000.
    max_pairs : int
        Of embeddings: the most pairs that are compared, since all are kept in memory. More are
        refused before they are.
    seed : int
        The seed of the pairs that are drawn.
    metrics : sequence of str
        What to measure; default: ``tar_at_far`` (without a ``threshold``), ``false_match_rate,
        false_non_match_rate``; and ``failure_rate`` where a comparison failed.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: ``failure_rate`` of each model and unit, 0 to 1, lower is better; null with the
        reason "in no pair", of embeddings "no prediction": the file says nothing of the unit, which
        is no failure. With ``enrolled``: ``failure_to_enrol_rate`` and ``failure_to_acquire_rate``,
        null with the reason "not enrolled" or "enrolled". ``evidence["pairs"]``: one row per model
        and unit with all that it was compared with, each pair once, under its smaller id: ``model,
        unit_id, cluster_id`` (of ``unit_id``), the lists ``other_id, similarity`` (null: failed),
        ``genuine`` (null: an identity is unknown), and ``far, threshold`` (null: too few impostor
        pairs to set one) and
        ``given`` (whether the threshold was) and ``turned`` (whether similarities are distances
        with their sign turned);
        with ``max_per_group`` also the list ``draw`` (a group takes the lowest) and ``most``.
        ``explode("other_id", "similarity", "genuine")`` gives one row a pair.

    Raises
    ------
    SpecError
        A FAR that is not a share, nothing that names people, too few impostors for a rate asked
        for, more pairs than ``max_pairs``.
    UnknownNameError, TableError, JoinError
        Predictions that cannot be read, or whose ids are not in the dataset.

    Examples
    --------
    Two people with two images each: every pair of one person is more alike than any of two.

    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="four images",
    ...     info=DatasetInfo(title="Four images", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a1", "a2", "b1", "b2"],
    ...             "image_id": ["a1", "a2", "b1", "b2"],
    ...             "subject_id": ["a", "a", "b", "b"],
    ...         }
    ...     ),
    ... )
    >>> space = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> vectors = pl.DataFrame(
    ...     {"model": "m", "instance_id": ["a1", "a2", "b1", "b2"], "embedding": space}
    ... )
    >>> held = score(people, vectors, far=0.25).evidence["pairs"]
    >>> pairs = held.explode("other_id", "similarity", "genuine")
    >>> pairs.select("unit_id", "other_id", "genuine", pl.col("similarity").round(2)).rows()[:3]
    [('a1', 'a2', True, 0.99), ('a1', 'b1', False, 0.0), ('a1', 'b2', False, 0.11)]
    """
    _check_settings(far, threshold, within, max_per_group)
    frame = to_polars(predictions)
    has_embeddings, has_genuine = ("embedding" in frame.columns), ("genuine" in frame.columns)
    if has_embeddings and lower_score_means == "same":
        raise SpecError(
            "embeddings are compared by their cosine, which is higher for who is more alike",
            expected="lower_score_means='same' for pairs with distances",
            found="embeddings",
        )
    hard_settings = {"same": same, "near": near, "within": within}
    _refuse_unused_pair_settings(impostors, hard_settings, has_embeddings=has_embeddings)
    # Pairs that say themselves whether they are genuine need no identities.
    people = units_with_identity(dataset, identity, subject_ids_only=has_genuine)
    units = people.sort("unit_id")  # draws must not depend on the order of rows
    if has_embeddings:
        # FHIBE's hard impostor pairs: the same pronoun, skin colour at most one of six levels apart
        # (Methods, sampling of pairs).
        hard_attributes = (same, near) if impostors == "hard" else (None, None)
        hard_impostors = build_hard_rule(dataset, units["unit_id"], *hard_attributes, within)
        comparisons = compare_all_models(frame, units, hard_impostors, model, max_pairs)
    else:
        pairs = _as_similarities(frame) if lower_score_means == "same" else frame
        comparisons = read_pairs(pairs, units, model=model)
    is_turned = lower_score_means == "same"
    if is_turned and threshold is not None:
        # Scores were negated, so the threshold is too.
        threshold = -threshold
    thresholds, unset_notes = _set_model_thresholds(comparisons, far, threshold)
    failures = _failure_rows(comparisons, people)
    has_failures = bool((failures["value"] > 0).any())
    metric_names = _select_metrics(
        read_metrics(INFO, metrics), threshold, thresholds, unset_notes, enrolled, has_failures
    )
    if enrolled is not None:
        failures = add_enrolment_failures(failures, dataset, enrolled, has_embeddings)
    pair_orders = _draw_pair_order(comparisons, len(units), seed) if max_per_group else []
    pairs = build_pairs_table(
        comparisons.pairs, units, far, thresholds, pair_orders, max_per_group
    ).with_columns(given=pl.lit(threshold is not None), turned=pl.lit(is_turned))
    return Scores(
        units=failures,
        info=_build_task_info(metric_names),
        evidence={EVIDENCE: pairs},
        notes=(
            *_build_cautions(comparisons, threshold, is_turned=is_turned),
            *comparisons.notes,
            *_note_pair_counts(comparisons, units, has_genuine=has_genuine),
            *unset_notes,
        ),
        task="face_verification",
    )


def _select_metrics(
    requested: Sequence[str],
    threshold: float | None,
    thresholds: Sequence[float | None],
    unset_notes: Sequence[str],
    enrolled: str | None,
    has_failures: bool,
) -> set[str]:
    """Select the metrics that were requested, or the defaults that these pairs have."""
    # A given threshold replaces the one that a false accept rate would set.
    excluded_metrics = {FAILURE} if threshold is None else {FAILURE, "tar_at_far"}
    metrics = set(requested) or set(INFO.defaults) - excluded_metrics
    if unset_notes and set(requested) & set(AT_THRESHOLD):
        raise SpecError("no common threshold can be set", expected=unset_notes[0], where="metrics")
    # Dropped only if no model has a threshold; otherwise the others' rates are still measured.
    if unset_notes and not any(value is not None for value in thresholds):
        metrics -= set(AT_THRESHOLD)
    if has_failures:  # without a failure the rate is 0 for everyone
        metrics.add(FAILURE)
    if enrolled is not None:
        return metrics | {FTE, FTA}
    if {FTE, FTA} & set(requested):
        raise SpecError(
            "nothing says which images are enrolled",
            expected="--enrolled ATTRIBUTE=VALUE, such as role=reference",
            found="metrics of enrolment alone",
            where="metrics",
        )
    return metrics


def _build_cautions(
    comparisons: ComparedPairs, threshold: float | None, *, is_turned: bool
) -> list[str]:
    """Caution where scores do not fit the pairs' truth, or a threshold is out of their range."""
    sign = -1.0 if is_turned else 1.0
    cautions: list[str] = [
        note
        for pairs in comparisons.pairs
        for note in check_pair_agreement(pairs, is_distance=is_turned)
    ]
    # A threshold fitted to the data lies within its scores; a given one may be on another scale.
    for pairs in comparisons.pairs if threshold is not None else ():
        cautions += caution_on_constant_outcome(
            pairs.model,
            sign * pairs.similarity,
            sign * (threshold or 0.0),
            passes_below=is_turned,
            none_phrase="no pair is accepted",
            all_phrase="every pair is accepted",
        )
    return cautions


def _as_similarities(frame: pl.DataFrame) -> pl.DataFrame:
    """Negate distances, so that higher is more similar."""
    if "score" in frame.columns and frame.schema["score"].is_numeric():
        return frame.with_columns(score=-pl.col("score").cast(pl.Float64))
    return frame


def _check_settings(
    false_accept_rate: float, threshold: float | None, max_levels: int, max_per_group: int | None
) -> None:
    is_finite = threshold is None or math.isfinite(threshold)
    for is_wrong, problem, expected, setting in (
        (
            not 0.0 < false_accept_rate < 1.0,
            "far is a share of impostor pairs",
            "above 0, below 1",
            false_accept_rate,
        ),
        (not is_finite, "threshold is a similarity", "a finite number", threshold),
        (max_levels < 0, "within counts levels", "0 or more", max_levels),
        (
            max_per_group is not None and max_per_group < 1,
            "max_per_group counts pairs",
            "1 or more",
            max_per_group,
        ),
    ):
        if is_wrong:
            raise SpecError(problem, expected=expected, found=repr(setting))


def _refuse_unused_pair_settings(
    impostors: str, hard_settings: Mapping[str, object], *, has_embeddings: bool
) -> None:
    """Refuse settings of hard impostor pairs where no pair is chosen by them."""
    if impostors == "hard" and not has_embeddings:
        raise SpecError(
            "impostors='hard' would do nothing: it chooses which embeddings are compared",
            expected="embeddings, or no such setting",
            found="pairs with scores",
        )
    defaults = {"same": "pronoun", "near": "apparent_skin_color", "within": 1}
    changed = [name for name, value in hard_settings.items() if value != defaults[name]]
    if changed and impostors != "hard":
        raise SpecError(
            f"{' and '.join(changed)} would do nothing",
            expected="--impostors hard (impostors='hard') and embeddings, or no such setting",
            found=", ".join(f"{name}={hard_settings[name]!r}" for name in changed),
        )


def _set_model_thresholds(
    comparisons: ComparedPairs, false_accept_rate: float, threshold: float | None
) -> tuple[tuple[float | None, ...], tuple[str, ...]]:
    """Set each model's common threshold; note models with too few impostor pairs."""
    if threshold is not None:
        return (threshold,) * len(comparisons.pairs), ()
    thresholds: list[float | None] = []
    unset_notes = []
    # A rate of 1 in N needs N impostor pairs. 1 / .001 may exceed 1000 in binary, hence the factor.
    n_required = math.ceil(1.0 / false_accept_rate * (1.0 - 1e-12))
    for pair_list in comparisons.pairs:
        impostors = pair_list.impostor_similarities()
        n = len(impostors)
        thresholds.append(
            lowest_threshold_at_far(impostors, false_accept_rate) if n >= n_required else None
        )
        if n < n_required and len(pair_list.first):
            unset_notes.append(
                f"{pair_list.model}: {n:,} impostor pairs; a threshold at a false accept rate of "
                f"{false_accept_rate:g} needs {n_required:,}, so rates at one threshold were not"
                " measured."
            )
    return tuple(thresholds), tuple(unset_notes)


def _draw_pair_order(
    comparisons: ComparedPairs, n_units: int, seed: int
) -> list[npt.NDArray[np.uint32]]:
    """Draw a random order of pairs, the same for every model; each group takes its first pairs."""
    keys = [
        pair_list.first.astype(np.int64) * n_units + pair_list.second
        for pair_list in comparisons.pairs
    ]
    # Models may have different pairs; a common order lets them be compared on the same ones.
    all_keys = keys[0] if len(keys) == 1 else np.unique(np.concatenate(keys))
    # A random order instead of a sample: each group then takes its own first pairs.
    order = np.random.default_rng(seed).permutation(len(all_keys)).astype(np.uint32)
    return [order[np.searchsorted(all_keys, key)] for key in keys]


def _failure_rows(comparisons: ComparedPairs, units: pl.DataFrame) -> pl.DataFrame:
    all_units = pl.concat(
        [units.select(pl.lit(name).alias("model"), pl.all()) for name in comparisons.models]
    )
    rows = all_units.join(
        comparisons.failures, on=["model", "unit_id"], how="left", maintain_order="left"
    )
    # A person in no pair has no failure rate; 0 would say that all of their comparisons worked.
    reason = pl.when(pl.col("value").is_null()).then(pl.lit(comparisons.missing_reason))
    return score_rows(rows, "face_verification", FAILURE, pl.col("value"), reason=reason)


def _build_task_info(metric_names: set[str]) -> TaskInfo:
    """Declare the measured metrics with their references."""
    task_info = restrict_task_info(INFO, metric_names, cites=True)
    # One error rate alone rewards a model that makes the other error for everyone.
    has_both_rates = {"false_match_rate", "false_non_match_rate"} <= set(task_info.defaults)
    return replace(
        task_info, references=(*task_info.references, *(SUMMARIES if has_both_rates else ()))
    )


def _note_pair_counts(
    comparisons: ComparedPairs, units: pl.DataFrame, *, has_genuine: bool
) -> list[str]:
    """Count genuine and impostor pairs, and those that are excluded."""
    notes = []
    for pair_list in comparisons.pairs:
        n_pairs = len(pair_list.first)
        if not n_pairs:
            continue
        prefix = f"{pair_list.model}: " if len(comparisons.pairs) > 1 else ""
        n_unknown, n_failed = pair_list.count_pairs(-1), int(np.isnan(pair_list.similarity).sum())
        notes.append(
            f"{prefix}{pair_list.count_pairs(1):,} genuine and {pair_list.count_pairs(0):,}"
            " impostor pairs."
        )
        reason = (
            "nothing says whether they are of one person"
            if has_genuine
            else "an identity is unknown"
        )
        for n_excluded, exclusion in (
            (n_unknown, f"pairs were left out: {reason}."),
            (n_failed, "comparisons failed and are left out of rates."),
        ):
            text = f"{prefix}{n_excluded:,} of {n_pairs:,} {exclusion}"
            notes += [note_excluded_pairs(text, n_excluded, n_pairs)] * bool(n_excluded)
    n_unidentified = units["identity"].null_count()
    if (
        n_unidentified
        and not has_genuine
        and any(pair_list.count_pairs(-1) for pair_list in comparisons.pairs)
    ):
        notes.append(f"{n_unidentified:,} of {units.height:,} units have no known identity.")
    return notes
