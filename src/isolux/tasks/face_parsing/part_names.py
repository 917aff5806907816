"""The names of a face's parts: the dataset's, the model's, and the numbers of label pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isolux.vocabulary.errors import SpecError

BACKGROUND, COMBINED = "background", "combined"
LABELS = (
    BACKGROUND,
    "skin",
    "nose",
    "eye_g",
    "l_eye",
    "r_eye",
    "l_brow",
    "r_brow",
    "l_ear",
    "r_ear",
    "mouth",
    "u_lip",
    "l_lip",
    "hair",
    "hat",
    "ear_r",
    "neck_l",
    "neck",
    "cloth",
)
"""The parts that the numbers 0 to 18 of a label picture mean, in CelebAMask-HQ and FHIBE."""

_MOST = 62  # parts, one bit of a pixel each
_NAMED = 40  # names in a message


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of parts, and what the model's names and the numbers of label pictures mean.

    ``names`` are the dataset's, without the background: part k is ``names[k - 1]``, 0 the
    background. ``number_of`` gives k for each name of the model, ``of_labels`` and ``of_truth``
    for each number of a label picture of the model's or the dataset's.
    """

    names: tuple[str, ...]
    number_of: Mapping[str, int]
    of_labels: tuple[int, ...]
    of_truth: tuple[int, ...]


def vocabulary_of(
    known: Sequence[str] | None,
    given: Sequence[str],
    labels: Sequence[str],
    mapping: Mapping[str, str],
) -> Vocabulary:
    """Bring the model's names of parts to the dataset's."""
    if not labels or len(set(labels)) != len(labels) or len(labels) > 256:
        raise SpecError(
            "labels cannot be that",
            expected="1 to 256 names, none of them twice; the first is the background's",
            found=repr(list(labels))[:200],
        )
    names = _names(known, labels)
    number = {labels[0]: 0, BACKGROUND: 0} | {name: k for k, name in enumerate(names, start=1)}
    drawn = list(labels) if COMBINED in given else []
    every = dict.fromkeys([*(g for g in given if g != COMBINED), *drawn])
    asked = {name: mapping.get(name, name) for name in (*every, *mapping)}
    lost = {name: to for name, to in asked.items() if to not in number}
    if lost and names:
        raise SpecError(
            "parts that the dataset does not have: " + _listed(list(dict.fromkeys(lost.values()))),
            expected="the dataset's parts, " + _listed(names),
            found="the model's parts, "
            + _listed([name if to == name else f"{name} → {to}" for name, to in asked.items()]),
            where="mapping",
            hint="map the model's names to the dataset's, or to 'background' to leave one out",
        )
    to = {name: number.get(mapping.get(name, name), 0) for name in (*every, *labels)}
    of_truth = tuple(number.get(name, 0) for name in labels)
    return Vocabulary(names, to, tuple(to[name] for name in labels), of_truth)


def _names(known: Sequence[str] | None, labels: Sequence[str]) -> tuple[str, ...]:
    """Put the dataset's parts in the order of the labels, others after them."""
    order = {name: k for k, name in enumerate(labels)}
    found = [n for n in (labels[1:] if known is None else known) if n != BACKGROUND]
    names = sorted(found, key=lambda n: (order.get(n, len(order)), n))
    if len(names) > _MOST:
        raise SpecError(
            "there are too many parts", expected=f"at most {_MOST}", found=f"{len(names)}"
        )
    return tuple(names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMED])) or "none"
    return shown + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")
