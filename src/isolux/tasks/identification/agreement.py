"""Whether searches find people beyond chance, and the people of their own row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.tasks.identification.candidates import Candidates
from isolux.tasks.identification.judging import Judged
from isolux.tasks.identification.roles import Roles
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

__all__ = ["agreement"]

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
    twice = np.unique(probe[equal & mated[probe]])
    if len(twice) < max(_MANY * int(mated.sum()), 2):
        return []
    return [
        Caution(
            f"{len(twice):,} of {int(mated.sum()):,} searches meet an embedding of {found.model!r}"
            " that equals their own. Is the same picture enrolled and searched for? Rates are then"
            " better than with another picture."
        )
    ]
