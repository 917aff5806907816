"""The names of a face's parts: the dataset's, the model's, and the numbers of label images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isolux.core.errors import SpecError
from isolux.core.formatting import AND_MORE, join_first

# "combined" is FHIBE's name of a label image that has all parts.
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
"""The parts that the numbers 0 to 18 of a label image mean, in CelebAMask-HQ and FHIBE."""

_MAX_PARTS = 62  # a pixel has one bit of 64 for each part, and one for the background
_MAX_LISTED = 40  # names in a message


@dataclass(frozen=True, slots=True)
class PartVocabulary:
    """The names of parts, and what the model's names and the numbers of label images mean.

    ``names`` are the dataset's, without the background: part k is ``names[k - 1]``, 0 the
    background. ``number_of`` gives k for each name of the model, ``of_labels`` and ``of_truth``
    for each number of a label image of the model's or the dataset's.
    """

    names: tuple[str, ...]
    number_of: Mapping[str, int]
    of_labels: tuple[int, ...]
    of_truth: tuple[int, ...]


def match_part_names(
    dataset_parts: Sequence[str] | None,
    model_parts: Sequence[str],
    labels: Sequence[str],
    mapping: Mapping[str, str],
) -> PartVocabulary:
    """Map the model's names of parts to the dataset's; refuse unknown ones."""
    # A label image has 8 bits a pixel.
    if not labels or len(set(labels)) != len(labels) or len(labels) > 256:
        raise SpecError(
            "labels cannot be that",
            expected="1 to 256 names, none of them twice; the first is the background's",
            found=repr(list(labels))[:200],
        )
    names = _order_part_names(dataset_parts, labels)
    # The first label is the background, whatever it is called.
    index_by_name = {labels[0]: 0, BACKGROUND: 0} | {
        name: k for k, name in enumerate(names, start=1)
    }
    label_names = list(labels) if COMBINED in model_parts else []
    all_names = dict.fromkeys([*(g for g in model_parts if g != COMBINED), *label_names])
    name_map = {name: mapping.get(name, name) for name in (*all_names, *mapping)}
    unknown_names = {
        name: target for name, target in name_map.items() if target not in index_by_name
    }
    # Dropping unknown parts would score a part that has another name as never predicted.
    if unknown_names and names:
        raise SpecError(
            "parts that the dataset does not have: "
            + _format_names(list(dict.fromkeys(unknown_names.values()))),
            expected="the dataset's parts, " + _format_names(names),
            found="the model's parts, "
            + _format_names(
                [
                    name if target == name else f"{name} → {target}"
                    for name, target in name_map.items()
                ]
            ),
            where="mapping",
            hint="map the model's names to the dataset's, or to 'background' to leave one out",
        )
    index_by_model_name = {
        name: index_by_name.get(mapping.get(name, name), 0) for name in (*all_names, *labels)
    }
    # A number that means no part of the dataset counts as background.
    of_truth = tuple(index_by_name.get(name, 0) for name in labels)
    return PartVocabulary(
        names, index_by_model_name, tuple(index_by_model_name[name] for name in labels), of_truth
    )


def _order_part_names(
    dataset_parts: Sequence[str] | None, labels: Sequence[str]
) -> tuple[str, ...]:
    """Order the dataset's parts as in ``labels``, others after them by name."""
    order = {name: k for k, name in enumerate(labels)}
    part_names = [
        n for n in (labels[1:] if dataset_parts is None else dataset_parts) if n != BACKGROUND
    ]
    # With overlaps="last" the order decides which part a pixel keeps, so it follows the labels.
    names = sorted(part_names, key=lambda n: (order.get(n, len(order)), n))
    if len(names) > _MAX_PARTS:
        raise SpecError(
            "there are too many parts", expected=f"at most {_MAX_PARTS}", found=f"{len(names)}"
        )
    return tuple(names)


def _format_names(names: Sequence[str]) -> str:
    return join_first(map(repr, names), _MAX_LISTED, AND_MORE) or "none"
