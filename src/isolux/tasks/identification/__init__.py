"""Identification, one to many: each person is searched for in a gallery of enrolled people.

The input is embeddings, from which candidate lists are made, or the candidate lists of an engine;
the output is one row a search: the person's rank, whether they are returned at the threshold, and
whether anyone is returned for a person who is not enrolled (NIST's FRTE 1:N; ISO/IEC 19795-1).
Rates depend on the gallery, so notes give its size and who is in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.schema import to_polars
from isolux.tasks._embeddings.vectors import read_embeddings
from isolux.tasks._scores import read_metrics, restrict_task_info
from isolux.tasks.identification.candidate_lists import read_candidate_lists
from isolux.tasks.identification.candidates import (
    Candidates,
    SearchRoles,
    read_roles_or_all_to_all,
    search_gallery,
)
from isolux.tasks.identification.metrics import (
    CANDIDATES,
    FNIR,
    FPIR,
    FTA,
    FTE,
    GALLERY,
    HIT,
    METRICS,
    REFERENCES,
)
from isolux.tasks.identification.rows import (
    ModelResults,
    OperatingPoint,
    build_candidates_table,
    build_gallery_table,
    build_notes,
    build_score_rows,
    describe_thresholds,
)
from isolux.tasks.identification.search_outcomes import (
    SearchOutcomes,
    check_agreement,
    evaluate_searches,
    threshold_at_fpir,
)

INFO = TaskInfo(
    predictions="outputs",
    # Searches share one gallery, so their outcomes are not independent.
    has_independent_scores=False,
    title="Identification",
    summary="Whether a person is found in a gallery of many, and who is found wrongly.",
    references=REFERENCES,
    assumptions=(
        "One gallery is given: intervals are about other searches, not about another gallery.",
        "Rates move with the gallery's size and with who is in it; compare galleries of one size.",
        "A person with several entries is one candidate; a tie counts against the model.",
        "A search without a template finds nobody: a miss if the person is enrolled.",
        "A threshold set on the data is held fixed in intervals.",
    ),
    metrics=METRICS,
    defaults=(HIT, FPIR, FNIR, FTA),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    enrolled: str | None = None,
    top_k: Sequence[int] = (1,),
    fpir: float = 0.01,
    threshold: float | None = None,
    threshold_on: float | str | None = None,
    rank_limit: int | None = None,
    candidates: int = 50,
    lower_score_means: Literal["different", "same"] = "different",
    identity: str | None = None,
    seed: int = 0,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Search for each person in a gallery, and judge what was found.

    Parameters
    ----------
    dataset : Dataset
        Its instances are searched for, enrolled, or both.
    predictions : frame
        Embeddings: ``model, instance_id, embedding`` (null: no template could be made), compared by
        their cosine. Or candidate lists: ``model, instance_id`` (who is searched for), ``other_id``
        (the candidate; null: no one came up) and ``score``, ``rank`` (from 1) or both; ``failed``,
        if the file has it, says of which images no template could be made. Where there are both,
        ranks order a list: candidates of one score and different ranks are no tie, which a note
        counts (a warning, where it is a tenth of the lists or more). Of one rank, or of one score
        where there are no ranks, they are one, and the person who is searched for comes last of
        it. Scores that rise as ranks fall are refused.
    enrolled : str, optional
        Who is in the gallery: ``ATTRIBUTE=VALUE``, such as ``role=gallery``; all others are
        searched for. Default: each image is searched for among all others.
    top_k : sequence of int
        The ranks of ``hit_rate_at_rank`` (column ``threshold``).
    fpir : float
        The false positive identification rate at which the threshold is set, if none is given.
    threshold : float, optional
        The score from which a candidate is returned, for both rates at one threshold; default: the
        lowest at which at most ``fpir`` of the searches for people who are not enrolled return
        anyone.
    threshold_on : float or str, optional
        Where the threshold is set: ``split=val``, or a share of the clusters such as .3; those are
        then not judged. Default: on the searches that are judged.
    rank_limit : int, optional
        The rank that a person must reach for ``false_negative_identification_rate``; default: the
        length of the lists.
    candidates : int
        For embeddings: how many entries each list holds.
    lower_score_means : {"different", "same"}
        What a smaller score of a list means. ``"same"``: scores are distances, and ``threshold``
        is the distance up to which a candidate is returned.
    identity : str, optional
        The column of the instances or the attribute that names the person; default: ``subject_id``,
        else ``cluster_id``. If there is no ``cluster_id``, identities are the clusters.
    seed : int
        Seed for the random share of ``threshold_on``.
    metrics : sequence of str
        What to measure; default: all that the gallery, the searches and the lists allow.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: one row a model, metric, rank and image, 0 or 1. Null with a reason where the
        metric is not about it: "enrolled, not searched for", "the person is not enrolled", "the
        person is enrolled", "unknown identity", "no prediction" (the file says nothing of it).
        ``evidence["candidates"]``: one row a search, ``model, unit_id, cluster_id, mated`` (null:
        it counts in no rate), ``failed, threshold`` (null: none), lists ``other_id`` and
        ``similarity``, those of other people alone, the first first. ``evidence["gallery"]``:
        one row an enrolled image, ``model, unit_id, cluster_id, template`` (null: not known).

    Raises
    ------
    SpecError
        A rate that is no share, nothing that names people, a metric asked for that cannot be
        measured.
    UnknownNameError, TableError, JoinError
        Predictions that cannot be read, or whose ids are not in the dataset.

    Examples
    --------
    Ann and Bo are enrolled. Ann is found first, Bo second, and Cy, who is not enrolled, not at .9.

    >>> from isolux.core.info import DatasetInfo
    >>> who = {"instance_id": ["ann", "bo", "ann 2", "bo 2", "cy"],
    ...        "image_id": ["1", "2", "3", "4", "5"], "subject_id": ["a", "b", "a", "b", "c"]}
    >>> role = pl.DataFrame({"unit_kind": "instance", "unit_id": who["instance_id"],
    ...     "attribute": "role", "value": ["gallery", "gallery", "probe", "probe", "probe"]})
    >>> people = Dataset("five images", DatasetInfo(title="x", summary="x", references=()),
    ...                  pl.DataFrame(who), role)
    >>> lists = pl.DataFrame({"model": "m", "instance_id": ["ann 2", "bo 2", "bo 2", "cy"],
    ...     "other_id": ["ann", "ann", "bo", "bo"], "score": [0.95, 0.8, 0.7, 0.6]})
    >>> found = score(people, lists, enrolled="role=gallery", threshold=0.9).units
    >>> found.drop_nulls("value").select("metric", "unit_id", "value").rows()[:3]
    [('hit_rate_at_rank', 'ann 2', 1.0), ('hit_rate_at_rank', 'bo 2', 0.0),
     ('false_positive_identification_rate', 'cy', 0.0)]
    """
    ks = tuple(sorted(set(top_k)))
    _check_settings(fpir, threshold, threshold_on, (*ks, rank_limit or 1, candidates))
    requested = read_metrics(INFO, metrics)
    roles = read_roles_or_all_to_all(
        dataset, enrolled=enrolled, threshold_on=threshold_on, identity=identity, seed=seed
    )
    is_distance = lower_score_means == "same"
    lists, notes = _read_candidates(
        to_polars(predictions), roles, candidates, model, is_distance=is_distance
    )
    # Distances are negated when they are read, and a given threshold with them.
    similarity_threshold = -threshold if is_distance and threshold is not None else threshold
    model_results = []
    for model_candidates in lists:
        outcomes = evaluate_searches(model_candidates, roles)
        operating_point = _build_operating_point(
            model_candidates, outcomes, roles, similarity_threshold, fpir, (ks, rank_limit)
        )
        model_results.append((model_candidates, outcomes, operating_point))
    names = _select_metrics(requested, model_results, roles)
    agreement_notes = [
        note
        for model_result in model_results
        for note in check_agreement(*model_result[:2], roles, is_distance=is_distance)
    ]
    return Scores(
        units=pl.concat(
            [build_score_rows(*model_result, roles, names) for model_result in model_results]
        ),
        info=restrict_task_info(INFO, names, cites=True),
        evidence={
            CANDIDATES: pl.concat(
                [build_candidates_table(*model_result, roles) for model_result in model_results]
            ),
            GALLERY: pl.concat(
                [build_gallery_table(model_result, roles) for model_result in lists]
            ),
        },
        notes=(
            *agreement_notes,
            *notes,
            *build_notes(model_results, roles, fpir, similarity_threshold, is_distance=is_distance),
        ),
        task="identification",
        task_choices=describe_thresholds(model_results, names, is_distance=is_distance),
    )


def _check_settings(
    fpir: float,
    threshold: float | None,
    threshold_on: float | str | None,
    counts: Sequence[int],
) -> None:
    is_given = threshold is not None
    for is_wrong, problem, expected, setting in (
        (not 0.0 < fpir < 1.0, "fpir is a share of searches", "above 0, below 1", fpir),
        (
            threshold is not None and not math.isfinite(threshold),
            "threshold is a score",
            "a finite number",
            threshold,
        ),
        (
            is_given and threshold_on is not None,
            "a threshold that is given is not set on anyone",
            "threshold_on with fpir",
            f"threshold={threshold} and threshold_on={threshold_on!r}",
        ),
        (
            min(counts) < 1,
            "top_k, rank_limit and candidates count people",
            "1 or more",
            min(counts),
        ),
        # rank_limit and candidates are always counted: a third number means that top_k has one.
        (len(counts) < 3, "top_k names ranks", "at least one, such as 1", "none"),
    ):
        if is_wrong:
            raise SpecError(problem, expected=expected, found=str(setting))


def _read_candidates(
    frame: pl.DataFrame, roles: SearchRoles, length: int, model: str | None, *, is_distance: bool
) -> tuple[tuple[Candidates, ...], tuple[str, ...]]:
    """Search the gallery by embeddings, or read an engine's candidate lists."""
    if "embedding" not in frame.columns:
        return read_candidate_lists(frame, roles, is_distance=is_distance, model=model), ()
    if is_distance:
        raise SpecError(
            "embeddings are compared by their cosine, which is higher for who is more alike",
            expected="lower_score_means='same' for candidate lists with distances",
            found="embeddings",
        )
    embeddings, notes = read_embeddings(frame, roles.units["unit_id"], model=model)
    return tuple(
        search_gallery(model_embeddings, roles, length) for model_embeddings in embeddings
    ), notes


def _build_operating_point(
    candidates: Candidates,
    outcomes: SearchOutcomes,
    roles: SearchRoles,
    threshold: float | None,
    fpir: float,
    ranks: tuple[tuple[int, ...], int | None],
) -> OperatingPoint:
    """Set the ranks and the threshold at which one model is evaluated."""
    ks, requested_limit = ranks
    # Without a limit, a person anywhere in the list is returned.
    limit = max(candidates.length, 1) if requested_limit is None else requested_limit
    n_enrolled = int(roles.is_enrolled.sum())
    # A list cannot show ranks beyond its length, unless the gallery is smaller. In an all-to-all
    # search the gallery has the image itself, which its list never contains.
    for name, k in (("top_k", max(ks)), ("rank_limit", limit)):
        if candidates.rows.height and min(k, n_enrolled) > candidates.length + int(
            roles.is_all_to_all
        ):
            raise SpecError(
                f"{name} is beyond the candidate lists of {candidates.model!r}",
                expected=f"a rank up to {candidates.length}, the length of the lists (of"
                " embeddings: --candidates)",
                found=str(k),
            )
    # Ranks alone order a list but cannot be compared with a threshold.
    if not candidates.has_scores:
        return OperatingPoint(ks, limit, math.nan, 0)
    if threshold is not None:
        return OperatingPoint(ks, limit, threshold, 0)
    return OperatingPoint(
        ks, limit, *threshold_at_fpir(outcomes, candidates, roles.is_threshold_sample, fpir)
    )


def _select_metrics(
    requested: Sequence[str], model_results: ModelResults, roles: SearchRoles
) -> tuple[str, ...]:
    """Select the metrics that were requested, or all that can be measured."""
    has_mated = any(
        (outcomes.is_mated & ~roles.is_threshold_sample).any() for _, outcomes, _ in model_results
    )
    has_nonmated = any(
        (outcomes.is_nonmated & ~roles.is_threshold_sample).any()
        for _, outcomes, _ in model_results
    )
    has_threshold = not all(
        math.isnan(operating_point.threshold) for *_, operating_point in model_results
    )
    # Candidate lists do not show which enrolled images have no template.
    has_templates = not roles.is_all_to_all and any(
        candidates.is_from_embeddings for candidates, *_ in model_results
    )
    none_enrolled = "no search is for a person who is enrolled"
    none_other = "no search is for a person who is not enrolled"
    none_set = "no threshold could be set: --threshold gives one"
    no_entries = "nothing says of which enrolled images no template could be made"
    availability = {
        # Without searches of either kind the hit rate stays, so that an empty run has a metric.
        HIT: (has_mated or not has_nonmated, none_enrolled),
        # A closed set has no false positives by design; a rate of 0 would look like a good result.
        FPIR: (has_nonmated and has_threshold, none_set if has_nonmated else none_other),
        FNIR: (has_mated and has_threshold, none_set if has_mated else none_enrolled),
        FTA: (True, ""),
        FTE: (has_templates, no_entries),
    }
    for name in requested:
        is_available, reason = availability[name]
        if not is_available:
            raise SpecError(
                f"the metric {name!r} cannot be measured", found=reason, where="metrics"
            )
    return tuple(
        n for n in availability if n in requested or (not requested and availability[n][0])
    )
