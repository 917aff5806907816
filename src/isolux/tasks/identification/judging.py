"""What each search found: whether the person is enrolled, at which rank, and who else came up.

A person with several entries is one candidate, at the best of them. People who tie with the
person's own entry count as found before it, so a tie never helps the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.stats.verification import threshold_at_far
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates
from isolux.tasks.identification.roles import Roles

__all__ = ["Judged", "Why", "judge", "threshold_at_fpir"]

Flags = npt.NDArray[np.bool_]


class Why(Enum):
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
        """Place from 1, as 0 is no reason."""
        return list(Why).index(self) + 1


@dataclass(frozen=True, slots=True)
class Judged:
    """One row a unit; what does not apply to it is False, or infinite.

    Parameters
    ----------
    mated, other : [n] bool
        Searches that count and whose person is enrolled, or is not; also those that a threshold
        is set on.
    rank : [n] float
        Place of the person among the people of the list, from 1; infinite: not in it.
    own, best : [n] float
        Score of the person's best entry, and of the best of all other people; −infinite: none in
        the list.
    failed : [n] bool
        Searches of which no template could be made.
    why : [n] int8
        Why a search counts in neither kind, as a code of ``Why``; 0 where it does.
    """

    mated: Flags
    other: Flags
    rank: FloatArray
    own: FloatArray
    best: FloatArray
    failed: Flags
    why: npt.NDArray[np.int8]


def judge(found: Candidates, roles: Roles) -> Judged:
    """Judge the searches of one model."""
    n, person = roles.units.height, roles.person
    rank, own, best = np.full(n, np.inf), np.full(n, -np.inf), np.full(n, -np.inf)
    of_people = _people(found, person)
    mine = of_people.filter(pl.col("person") == pl.col("whose"))
    others = of_people.filter(pl.col("person") != pl.col("whose"))
    at = others.group_by("probe").agg(pl.col("score").max())
    best[at["probe"].to_numpy()] = at["score"].fill_null(np.nan).to_numpy()
    before = (
        mine.select("probe", own="order")
        .join(others.select("probe", "order"), on="probe")
        .filter(pl.col("order") <= pl.col("own"))
        .group_by("probe")
        .len()
    )
    ahead = np.zeros(n)
    ahead[before["probe"].to_numpy()] = before["len"].to_numpy()
    place = mine["probe"].to_numpy()
    rank[place] = 1.0 + ahead[place]
    own[place] = mine["score"].fill_null(np.nan).to_numpy()
    return _kinds(found, roles, (rank, own, best))


def _people(found: Candidates, person: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Take each person of a list once: ``probe, person, whose, order, score``."""
    entry, probe = (found.rows[c].to_numpy() for c in ("entry", "probe"))
    rows = found.rows.with_columns(
        person=pl.Series(person[entry]), whose=pl.Series(person[probe])
    ).filter((pl.col("person") > 0) & (pl.col("whose") > 0))
    return rows.group_by("probe", "person", "whose").agg(
        pl.col("order").min(), pl.col("score").max()
    )


def _kinds(
    found: Candidates, roles: Roles, values: tuple[FloatArray, FloatArray, FloatArray]
) -> Judged:
    n, person = roles.units.height, roles.person
    absent = (found.held == MISSING).fill_null(value=False).to_numpy()
    count = int(person.max(initial=0)) + 1
    enrolled = np.bincount(person[roles.enrolled], minlength=count)
    present = np.bincount(person[roles.enrolled & ~absent], minlength=count)
    # Where everyone is searched for among all others, a person's own image is no mate of itself.
    itself = (roles.enrolled & roles.searched).astype(np.int64)
    there = itself * ~absent
    mates, present = enrolled[person] - itself, present[person] - there
    why = np.zeros(n, dtype=np.int8)
    for which, reason in (
        ((mates > 0) & (present == 0), Why.MATES_MISSING),
        (person == 0, Why.UNKNOWN),
        ((found.state == MISSING).fill_null(value=False).to_numpy(), Why.MISSING),
        (~roles.searched, Why.NOT_SEARCHED),
    ):
        why[which] = reason.code
    counts = why == 0
    failed = roles.searched & (found.state == FAILED).fill_null(value=False).to_numpy()
    return Judged(counts & (mates > 0), counts & (mates == 0), *values, failed, why)


def threshold_at_fpir(
    judged: Judged, found: Candidates, setting: Flags, fpir: float
) -> tuple[float, int]:
    """Find the lowest score at which at most ``fpir`` of the searches return anyone.

    Shapes: ``setting`` [n].
    """
    on = judged.other & setting if setting.any() else judged.other
    n = int(on.sum())
    # 1 / .01 may come out above 100 in binary, and would ask for one search too many.
    if n < np.ceil(1.0 / fpir * (1.0 - 1e-12)):
        return float("nan"), n
    at, scores = threshold_at_far(judged.best[on], fpir), found.rows["score"].to_numpy()
    return max(at, float(scores.min(initial=np.inf))), n
