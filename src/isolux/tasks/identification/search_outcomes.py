"""The outcome of each search: the person's rank, the best other candidate, and checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import JoinError
from isolux.core.notes import Caution
from isolux.stats.statistic import FloatArray
from isolux.stats.verification import lowest_threshold_at_far
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, SearchRoles

Flags = npt.NDArray[np.bool_]


class NullReason(Enum):
    """Why a score is null, in the words of the table ``scores``; ``code`` is its place from 1."""

    MATES_MISSING = "the person's enrolled images are not in the file"
    UNKNOWN = "unknown identity"
    MISSING = MISSING
    NOT_SEARCHED = "enrolled, not searched for"
    SET_ON = "the threshold was set on them"
    ENROLLED = "the person is enrolled"
    NOT_ENROLLED = "the person is not enrolled"
    NO_THRESHOLD = "no threshold could be set"
    NOT_TO_BE_ENROLLED = "not to be enrolled"

    @property
    def code(self) -> int:
        """Number of the reason, from 1; 0 means no reason."""
        return list(NullReason).index(self) + 1


@dataclass(frozen=True, slots=True)
class SearchOutcomes:
    """One row a unit; what does not apply to it is False, or infinite.

    Parameters
    ----------
    is_mated, is_nonmated : [n] bool
        Searches that count and whose person is enrolled, or is not; also those that a threshold
        is set on.
    rank : [n] float
        Place of the person among the people of the list, from 1; infinite: not in it.
    mate_score, best_other_score : [n] float
        Score of the person's best entry, and of the best of all other people; −infinite: none in
        the list.
    has_failed : [n] bool
        Searches of which no template could be made.
    reason_code : [n] int8
        Why a search counts in neither kind, as a code of ``NullReason``; 0 where it does.
    """

    is_mated: Flags
    is_nonmated: Flags
    rank: FloatArray
    mate_score: FloatArray
    best_other_score: FloatArray
    has_failed: Flags
    reason_code: npt.NDArray[np.int8]


def evaluate_searches(candidates: Candidates, roles: SearchRoles) -> SearchOutcomes:
    """Evaluate the searches of one model."""
    n, person = roles.units.height, roles.person
    # Never found: a rank beyond every limit, and scores below every threshold.
    rank = np.full(n, np.inf)
    mate_score = np.full(n, -np.inf)
    best_other_score = np.full(n, -np.inf)
    of_people = _deduplicate_people(candidates, person)
    mates = of_people.filter(person=pl.col("whose"))
    nonmates = of_people.filter(pl.col("person") != pl.col("whose"))
    best_by_search = nonmates.group_by("probe").agg(pl.col("score").max())
    best_other_score[best_by_search["probe"].to_numpy()] = (
        best_by_search["score"].fill_null(np.nan).to_numpy()
    )
    # Rank of the person: other people of the list at their place or before it, ties included, count
    # against the model.
    n_before_mate = (
        mates.select("probe", own="order")
        .join(nonmates.select("probe", "order"), on="probe")
        .filter(pl.col("order") <= pl.col("own"))
        .group_by("probe")
        .len()
    )
    n_ahead = np.zeros(n)
    n_ahead[n_before_mate["probe"].to_numpy()] = n_before_mate["len"].to_numpy()
    mate_rows = mates["probe"].to_numpy()
    rank[mate_rows] = 1.0 + n_ahead[mate_rows]
    mate_score[mate_rows] = mates["score"].fill_null(np.nan).to_numpy()
    return _classify_searches(candidates, roles, (rank, mate_score, best_other_score))


def _deduplicate_people(candidates: Candidates, person: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Reduce a list to one row per person, with their best rank and score."""
    entry, probe = (candidates.rows[c].to_numpy() for c in ("entry", "probe"))
    rows = candidates.rows.with_columns(
        person=pl.Series(person[entry]), whose=pl.Series(person[probe])
    ).filter(pl.col("person") > 0, pl.col("whose") > 0)
    # NIST calls a gallery without this step unconsolidated (NISTIR 8271): a person's images would
    # otherwise take several ranks.
    return rows.group_by("probe", "person", "whose").agg(
        pl.col("order").min(), pl.col("score").max()
    )


def _classify_searches(
    candidates: Candidates, roles: SearchRoles, values: tuple[FloatArray, FloatArray, FloatArray]
) -> SearchOutcomes:
    """Classify searches as mated, nonmated or not counted, with the reason."""
    n, person = roles.units.height, roles.person
    is_absent = (candidates.enrolment_failure == MISSING).fill_null(value=False).to_numpy()
    count = int(person.max(initial=0)) + 1
    n_enrolled = np.bincount(person[roles.is_enrolled], minlength=count)
    # Enrolled images without a template stay in the count: searches for these people are misses.
    n_present = np.bincount(person[roles.is_enrolled & ~is_absent], minlength=count)
    # Where everyone is searched for among all others, an image is no mate of itself.
    is_self_enrolled = (roles.is_enrolled & roles.is_searched).astype(np.int64)
    self_present = is_self_enrolled * ~is_absent
    n_mates, n_present = n_enrolled[person] - is_self_enrolled, n_present[person] - self_present
    reason_code = np.zeros(n, dtype=np.int8)
    # Later reasons overwrite earlier ones, so the most basic reason comes last.
    for mask, reason in (
        # All of the person's enrolled images are missing from the file: neither a hit nor a miss.
        ((n_mates > 0) & (n_present == 0), NullReason.MATES_MISSING),
        (person == 0, NullReason.UNKNOWN),
        (
            (candidates.search_failure == MISSING).fill_null(value=False).to_numpy(),
            NullReason.MISSING,
        ),
        (~roles.is_searched, NullReason.NOT_SEARCHED),
    ):
        reason_code[mask] = reason.code
    is_counted = reason_code == 0
    has_failed = (
        roles.is_searched & (candidates.search_failure == FAILED).fill_null(value=False).to_numpy()
    )
    return SearchOutcomes(
        is_counted & (n_mates > 0), is_counted & (n_mates == 0), *values, has_failed, reason_code
    )


def threshold_at_fpir(
    outcomes: SearchOutcomes, candidates: Candidates, is_threshold_sample: Flags, fpir: float
) -> tuple[float, int]:
    """Find the lowest score at which at most ``fpir`` of the nonmated searches return anyone.

    Shapes: ``is_threshold_sample`` [n].
    """
    is_sample = (
        outcomes.is_nonmated & is_threshold_sample
        if is_threshold_sample.any()
        else outcomes.is_nonmated
    )
    n = int(is_sample.sum())
    # A rate of 1 in N needs N searches. 1 / .01 may exceed 100 in binary, hence the factor.
    if n < np.ceil(1.0 / fpir * (1.0 - 1e-12)):
        return float("nan"), n
    threshold = lowest_threshold_at_far(outcomes.best_other_score[is_sample], fpir)
    scores = candidates.rows["score"].to_numpy()
    # Below the lists' lowest score nothing was returned, so a lower threshold cannot be observed.
    return max(threshold, float(scores.min(initial=np.inf))), n


_MIN_SEARCHES = 30  # mated searches below which the check is not made
_MIN_Z, _MIN_SHIFT_HALF_SD = 3.0, 6.0
_MIN_EQUAL_COSINE = 1.0 - 1e-6  # a cosine of two vectors that are equal in single precision
_CAUTION_SHARE = 0.1
PositionArray = npt.NDArray[np.int64]


def check_agreement(
    candidates: Candidates, outcomes: SearchOutcomes, roles: SearchRoles, *, is_distance: bool
) -> list[Caution]:
    """Caution where hits are no more frequent than by chance, or come from identical images."""
    is_mated = outcomes.is_mated & ~outcomes.has_failed
    n = int(is_mated.sum())
    if n < _MIN_SEARCHES:
        return []
    first = _first_candidates(candidates, roles.units.height)
    person = roles.person
    entries = np.bincount(person[roles.is_enrolled], minlength=int(person.max(initial=0)) + 1)
    is_self_enrolled = (roles.is_enrolled & roles.is_searched).astype(np.int64)
    # An image is not among its own candidates.
    hit_probability = (entries[person] - is_self_enrolled) / max(
        int(roles.is_enrolled.sum()) - int(is_self_enrolled.any()), 1
    )
    hits = int((outcomes.rank[is_mated] == 1.0).sum())
    expected = float(hit_probability[is_mated].sum())
    # Hits by chance: a sum of Bernoulli variables, one for each search; the probability is the
    # person's share of the gallery.
    hits_sd = float(np.sqrt((hit_probability[is_mated] * (1.0 - hit_probability[is_mated])).sum()))
    _refuse_shifted_rows(candidates.model, first, person, is_mated, hits)
    if hits > expected + _MIN_Z * max(hits_sd, 1e-9):
        return _caution_on_same_images(candidates, roles, is_mated)
    question = (
        "Is larger more alike? Leave --lower-score-means same out."
        if is_distance
        else "Are they of these people? Is smaller more alike: --lower-score-means same"
        " (lower_score_means='same')?"
    )
    return [
        Caution(
            f"The searches of {candidates.model!r} find the right person first in {hits:,} of {n:,}"
            f" cases, no more than chance would ({expected:.1f}). {question}"
        )
    ]


def _first_candidates(candidates: Candidates, n: int) -> PositionArray:
    """Return the row of each search's first candidate; −1: none."""
    first = np.full(n, -1, dtype=np.int64)
    rows = candidates.rows.sort("probe", "order", "entry").unique(
        "probe", keep="first", maintain_order=True
    )
    first[rows["probe"].to_numpy()] = rows["entry"].to_numpy()
    return first


def _refuse_shifted_rows(
    model: str,
    first: PositionArray,
    person: PositionArray,
    is_mated: npt.NDArray[np.bool_],
    hits: int,
) -> None:
    """Refuse predictions that fit the people of an adjacent row far better than their own."""
    searches = np.flatnonzero(is_mated & (first >= 0))
    for shift in (1, -1):
        shifted_person = np.roll(person, shift)
        n_shifted_hits = int((shifted_person[first[searches]] == shifted_person[searches]).sum())
        # By chance searches that fit one of the two rows would split evenly, and the difference
        # would have the standard deviation sqrt(n).
        if n_shifted_hits - hits > _MIN_SHIFT_HALF_SD * np.sqrt(
            max(n_shifted_hits + hits, 1)
        ) / 2 and n_shifted_hits > 0.8 * len(searches):
            raise JoinError(
                f"the answers of {model!r} belong to other rows",
                expected="each answer in the row of the person that it is about",
                found="they find the people of the row"
                f" {'before' if shift > 0 else 'after'} theirs, and their own less often"
                f" ({n_shifted_hits:,} and {hits:,} of {len(searches):,})",
                hint="a row was lost or put in: are ids in the order of the embeddings?",
            )


def _caution_on_same_images(
    candidates: Candidates, roles: SearchRoles, is_mated: npt.NDArray[np.bool_]
) -> list[Caution]:
    """Caution where many searches match an identical embedding of the same person."""
    if not candidates.is_from_embeddings:  # an engine's scores may have an upper limit
        return []
    probe, entry = (candidates.rows[c].to_numpy() for c in ("probe", "entry"))
    person, score = roles.person, candidates.rows["score"].to_numpy()
    # Two photos hardly ever give the same vector; an equal one is the same image under two ids.
    is_equal = (person[probe] == person[entry]) & (score >= _MIN_EQUAL_COSINE)
    n_equal, n = len(np.unique(probe[is_equal & is_mated[probe]])), int(is_mated.sum())
    text = (
        f"{n_equal:,} of {n:,} searches meet an embedding of {candidates.model!r} that equals their"
        " own. Is the same picture enrolled and searched for? Rates are then better than with"
        " another picture."
    )
    return [Caution(text)] if n_equal >= max(_CAUTION_SHARE * n, 2) else []
