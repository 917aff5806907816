"""What each search found: the rank, who else came up, and whether that is beyond chance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.stats.verification import threshold_at_far
from isolux.tasks.identification.candidates import FAILED, MISSING, Candidates, Roles
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

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


_LEAST = 30  # searches below which chance may explain anything
_CHANCE, _SURE = 3.0, 6.0
_EQUAL = 1.0 - 1e-6  # a cosine of two vectors that are equal in single precision
_MANY = 0.1
Places = npt.NDArray[np.int64]


def agreement(found: Candidates, judged: Judged, roles: Roles, *, turned: bool) -> list[Caution]:
    """Caution where people are found no more often than by chance, or by the very same picture."""
    mated = judged.mated & ~judged.failed
    n = int(mated.sum())
    if n < _LEAST:
        return []
    first = _first(found, roles.units.height)
    person = roles.person
    entries = np.bincount(person[roles.enrolled], minlength=int(person.max(initial=0)) + 1)
    itself = (roles.enrolled & roles.searched).astype(np.int64)
    chance = (entries[person] - itself) / max(int(roles.enrolled.sum()) - int(itself.any()), 1)
    hits = int((judged.rank[mated] == 1.0).sum())
    expected = float(chance[mated].sum())
    spread = float(np.sqrt((chance[mated] * (1.0 - chance[mated])).sum()))
    _refuse_shifted(found.model, first, person, mated, hits)
    if hits > expected + _CHANCE * max(spread, 1e-9):
        return _same_pictures(found, roles, mated)
    ask = (
        "Is larger more alike? Leave --smaller alike out."
        if turned
        else "Are they of these people? Is smaller more alike: --smaller alike (smaller='alike')?"
    )
    return [
        Caution(
            f"The searches of {found.model!r} find the right person first in {hits:,} of {n:,}"
            f" cases, no more than chance would ({expected:.1f}). {ask}"
        )
    ]


def _first(found: Candidates, n: int) -> Places:
    """Return the place of the first candidate of each search; −1: none."""
    first = np.full(n, -1, dtype=np.int64)
    rows = found.rows.sort("probe", "order", "entry").unique(
        "probe", keep="first", maintain_order=True
    )
    first[rows["probe"].to_numpy()] = rows["entry"].to_numpy()
    return first


def _refuse_shifted(
    model: str, first: Places, person: Places, mated: npt.NDArray[np.bool_], hits: int
) -> None:
    """Refuse answers that fit the people of the next row, or of the last one, far better."""
    asked = np.flatnonzero(mated & (first >= 0))
    for shift in (1, -1):
        moved = np.roll(person, shift)
        fits = int((moved[first[asked]] == moved[asked]).sum())
        # Pairs of searches that disagree would split evenly by chance.
        if fits - hits > _SURE * np.sqrt(max(fits + hits, 1)) / 2 and fits > 0.8 * len(asked):
            raise JoinError(
                f"the answers of {model!r} belong to other rows",
                expected="each answer in the row of the person that it is about",
                found="they find the people of the row"
                f" {'before' if shift > 0 else 'after'} theirs, and their own less often"
                f" ({fits:,} and {hits:,} of {len(asked):,})",
                hint="a row was lost or put in: are ids in the order of the embeddings?",
            )


def _same_pictures(found: Candidates, roles: Roles, mated: npt.NDArray[np.bool_]) -> list[Caution]:
    """Caution where many searches meet a vector of their person that equals their own."""
    if not found.of_embeddings:  # an engine's scores may end at a largest one
        return []
    probe, entry = (found.rows[c].to_numpy() for c in ("probe", "entry"))
    person, score = roles.person, found.rows["score"].to_numpy()
    equal = (person[probe] == person[entry]) & (score >= _EQUAL)
    twice, n = len(np.unique(probe[equal & mated[probe]])), int(mated.sum())
    text = (
        f"{twice:,} of {n:,} searches meet an embedding of {found.model!r} that equals their own."
        " Is the same picture enrolled and searched for? Rates are then better than with another"
        " picture."
    )
    return [Caution(text)] if twice >= max(_MANY * n, 2) else []
