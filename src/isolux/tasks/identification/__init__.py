"""Identification, one to many: each person is searched for in a gallery of enrolled people.

Embeddings of which candidate lists are made, or candidate lists as an engine returned them, come
in; one row a search goes out: found at which rank, above which threshold, someone else returned for
a person who is not enrolled (NIST's FRTE 1:N; ISO/IEC 19795-1). Rates depend on the gallery: its
size and who is in it are said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import polars as pl

from isolux.tasks._embeddings.vectors import read_embeddings
from isolux.tasks._scores import measured_info, read_metrics
from isolux.tasks.identification.candidates import Candidates, Roles, roles_of, searched_by
from isolux.tasks.identification.judging import Judged, agreement, judge, threshold_at_fpir
from isolux.tasks.identification.listed import read_lists
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
    At,
    Every,
    candidates_table,
    gallery_table,
    notes_on,
    rows_of_model,
    thresholds_chosen,
)
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.schema import to_polars

INFO = TaskInfo(
    predictions="outputs",
    one_by_one=False,
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
    smaller: Literal["different", "alike"] = "different",
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
    smaller : {"different", "alike"}
        What a smaller score of a list means. ``"alike"``: scores are distances, and ``threshold``
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

    >>> from isolux.vocabulary.info import DatasetInfo
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
    _refuse(fpir, threshold, threshold_on, (*ks, rank_limit or 1, candidates))
    asked = read_metrics(INFO, metrics)
    roles = roles_of(
        dataset, enrolled=enrolled, threshold_on=threshold_on, identity=identity, seed=seed
    )
    turned = smaller == "alike"
    lists, notes = _lists(to_polars(predictions), roles, candidates, model, turned=turned)
    given = -threshold if turned and threshold is not None else threshold
    every = []
    for found in lists:
        judged = judge(found, roles)
        at = _at(found, judged, roles, given, fpir, (ks, rank_limit))
        every.append((found, judged, at))
    names = _names(asked, every, roles)
    told = [note for one in every for note in agreement(*one[:2], roles, turned=turned)]
    return Scores(
        units=pl.concat([rows_of_model(*one, roles, names) for one in every]),
        info=measured_info(INFO, names, cites=True),
        evidence={
            CANDIDATES: pl.concat([candidates_table(*one, roles) for one in every]),
            GALLERY: pl.concat([gallery_table(one, roles) for one in lists]),
        },
        notes=(*told, *notes, *notes_on(every, roles, fpir, given, turned=turned)),
        task="identification",
        chosen=thresholds_chosen(every, names, turned=turned),
    )


def _refuse(
    fpir: float,
    threshold: float | None,
    threshold_on: float | str | None,
    counts: Sequence[int],
) -> None:
    given = threshold is not None
    for is_wrong, problem, expected, found in (
        (not 0.0 < fpir < 1.0, "fpir is a share of searches", "above 0, below 1", fpir),
        (
            threshold is not None and not math.isfinite(threshold),
            "threshold is a score",
            "a finite number",
            threshold,
        ),
        (
            given and threshold_on is not None,
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
        (len(counts) < 3, "top_k names ranks", "at least one, such as 1", "none"),
    ):
        if is_wrong:
            raise SpecError(problem, expected=expected, found=str(found))


def _lists(
    frame: pl.DataFrame, roles: Roles, length: int, model: str | None, *, turned: bool
) -> tuple[tuple[Candidates, ...], tuple[str, ...]]:
    if "embedding" not in frame.columns:
        return read_lists(frame, roles, turned=turned, model=model), ()
    if turned:
        raise SpecError(
            "embeddings are compared by their cosine, which is higher for who is more alike",
            expected="smaller='alike' for candidate lists with distances",
            found="embeddings",
        )
    found, notes = read_embeddings(frame, roles.units["unit_id"], model=model)
    return tuple(searched_by(one, roles, length) for one in found), notes


def _at(
    found: Candidates,
    judged: Judged,
    roles: Roles,
    threshold: float | None,
    fpir: float,
    ranks: tuple[tuple[int, ...], int | None],
) -> At:
    """Say at which ranks and threshold one model is judged."""
    ks, asked = ranks
    limit = max(found.length, 1) if asked is None else asked
    gallery = int(roles.enrolled.sum())
    for name, k in (("top_k", max(ks)), ("rank_limit", limit)):
        if found.rows.height and min(k, gallery) > found.length + int(roles.everyone):
            raise SpecError(
                f"{name} is beyond the candidate lists of {found.model!r}",
                expected=f"a rank up to {found.length}, the length of the lists (of embeddings:"
                " --candidates)",
                found=str(k),
            )
    if not found.scored:
        return At(ks, limit, math.nan, 0)
    if threshold is not None:
        return At(ks, limit, threshold, 0)
    return At(ks, limit, *threshold_at_fpir(judged, found, roles.setting, fpir))


def _names(asked: Sequence[str], every: Every, roles: Roles) -> tuple[str, ...]:
    """Choose the metrics: those asked for, or all that can be measured."""
    mated = any((judged.mated & ~roles.setting).any() for _, judged, _ in every)
    other = any((judged.other & ~roles.setting).any() for _, judged, _ in every)
    at_one = not all(math.isnan(at.threshold) for *_, at in every)
    entries = not roles.everyone and any(found.of_embeddings for found, *_ in every)
    none_enrolled = "no search is for a person who is enrolled"
    none_other = "no search is for a person who is not enrolled"
    none_set = "no threshold could be set: --threshold gives one"
    no_entries = "nothing says of which enrolled images no template could be made"
    able = {
        HIT: (mated or not other, none_enrolled),
        FPIR: (other and at_one, none_set if other else none_other),
        FNIR: (mated and at_one, none_set if mated else none_enrolled),
        FTA: (True, ""),
        FTE: (entries, no_entries),
    }
    for name in asked:
        is_able, reason = able[name]
        if not is_able:
            raise SpecError(
                f"the metric {name!r} cannot be measured", found=reason, where="metrics"
            )
    return tuple(n for n in able if n in asked or (not asked and able[n][0]))
