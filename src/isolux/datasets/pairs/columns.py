"""Which column of a table of pairs is which: ids, people, score, truth, and groups of either side.

What is not named is found by its name; an error says what was looked for and how to name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isolux.datasets._tables import first_named
from isolux.vocabulary.errors import SpecError, UnknownNameError, columns_shown

_ID = (
    ("instance_id", "other_id"), ("id_a", "id_b"), ("id1", "id2"), ("id_1", "id_2"),
    ("image_a", "image_b"), ("image1", "image2"), ("image_1", "image_2"), ("img_a", "img_b"),
    ("img1", "img2"), ("img_1", "img_2"), ("file_a", "file_b"), ("file1", "file2"),
    ("file_1", "file_2"), ("path1", "path2"), ("path_1", "path_2"), ("left", "right"),
    ("probe", "gallery"), ("probe", "reference"), ("first", "second"),
)  # fmt: skip
_PEOPLE = ("subject", "subject_id", "person", "person_id", "identity", "identity_id", "name")
_SCORE = ("score", "similarity", "cosine", "cosine_similarity", "sim", "distance", "dist")
_GENUINE = (
    "genuine", "is_genuine", "same", "is_same", "issame", "same_person", "match", "is_match",
    "mated", "is_mated", "label", "target",
)  # fmt: skip
_ENDS = (("_a", "_b"), ("_1", "_2"), ("1", "2"), ("_first", "_second"), ("_left", "_right"),
         ("_probe", "_gallery"), ("_probe", "_reference"), ("A", "B"))  # fmt: skip
_STARTS = (("a_", "b_"), ("first_", "second_"), ("left_", "right_"), ("probe_", "gallery_"),
           ("probe_", "reference_"))  # fmt: skip
_MODEL = "model"


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The columns of a table of pairs.

    Parameters
    ----------
    score : str
    genuine : str or None
        Whether both are one person; None: where their people are the same.
    ids, people : (str, str) or None
        Of either side.
    sides : dict of str to (str, str)
        Attribute to its two columns; the same column twice where it is of the pair.
    model : str or None
    """

    score: str
    genuine: str | None
    ids: tuple[str, str] | None
    people: tuple[str, str] | None
    sides: dict[str, tuple[str, str]]
    model: str | None


def find_columns(
    columns: Sequence[str],
    *,
    where: str,
    first: str | None,
    second: str | None,
    score: str | None,
    genuine: str | None,
) -> PairColumns:
    """Find each column, by its name where none is given.

    Examples
    --------
    >>> found = find_columns(["same", "sim", "race_a", "race_b", "age"], where="pairs.csv",
    ...                      first=None, second=None, score=None, genuine=None)
    >>> found.score, found.genuine, found.ids, found.sides
    ('sim', 'same', None, {'race': ('race_a', 'race_b'), 'age': ('age', 'age')})
    """
    for name in (first, second, score, genuine):
        if name is not None and name not in columns:
            raise UnknownNameError("column", name, columns, where=where)
    if (first is None) != (second is None):
        raise SpecError(
            "one side of a pair has an id and the other has none",
            expected="--data-option first=COLUMN and --data-option second=COLUMN, or neither",
            found=f"only {'first' if first else 'second'}={first or second}",
            where=where,
        )
    ids = (first, second) if first and second else _both(_ID, columns)
    taken = {score, genuine, *(ids or ())}
    rest = [name for name in columns if name not in taken]
    scored = score or first_named(_SCORE, rest)
    if scored is None:
        raise _missing("how alike the two of a pair are", _SCORE, "--score-column COLUMN", columns,
                       where)  # fmt: skip
    same = genuine or first_named(_GENUINE, [name for name in rest if name != scored])
    rest = [name for name in rest if name not in (scored, same)]
    sides = _sides([name for name in rest if name != _MODEL])
    people = next((sides.pop(name) for name in _PEOPLE if _differ(sides.get(name))), None)
    if same is None and people is None:
        raise _missing(
            "which pairs are of one person", (*_GENUINE[:6], "subject_a and subject_b"),
            "--data-option genuine=COLUMN", columns, where,
        )  # fmt: skip
    return PairColumns(scored, same, ids, people, sides, _MODEL if _MODEL in rest else None)


def _missing(
    what: str, known: Sequence[str], flag: str, columns: Sequence[str], where: str
) -> SpecError:
    return SpecError(
        f"no column says {what}",
        expected="one of " + ", ".join(known),
        found=columns_shown(columns),
        where=where,
        hint=f"name it with {flag}",
    )


def _both(known: Sequence[tuple[str, str]], columns: Sequence[str]) -> tuple[str, str] | None:
    folded = {name.strip().lower(): name for name in reversed(columns)}
    return next(((folded[a], folded[b]) for a, b in known if a in folded and b in folded), None)


def _differ(sides: tuple[str, str] | None) -> bool:
    return sides is not None and sides[0] != sides[1]


def _sides(columns: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Put the two columns of an attribute together: ``race_a, race_b``; one alone is of both."""
    there, found = set(columns), {}
    used: set[str] = set()
    for name in columns:
        if name in used:
            continue
        stem, other = next(
            ((s, o) for s, o in _partners(name) if o in there and o not in used), (name, name)
        )
        found[stem if stem not in found else name] = (name, other)
        used |= {name, other}
    return found


def _partners(name: str) -> list[tuple[str, str]]:
    ends = [(name[: -len(a)], name[: -len(a)] + b) for a, b in _ENDS if name.endswith(a)]
    starts = [(name[len(a) :], b + name[len(a) :]) for a, b in _STARTS if name.startswith(a)]
    return [(stem.rstrip("_"), other) for stem, other in [*ends, *starts] if stem.rstrip("_")]
