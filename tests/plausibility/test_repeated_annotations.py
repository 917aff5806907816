"""Annotations that repeat another: refused, warned of, or too few to matter."""

from __future__ import annotations

import pytest

from isolux.core.errors import TableError
from isolux.plausibility import AuditInputs, repeated_annotations
from tests.plausibility._shapes import detect


def _repeat(n_people: int, repeats: list[int], shift: float = 0.0) -> AuditInputs:
    """People alone in their images, and some of them annotated again."""
    boxes = [(f"{i}", (5.0 * i, 10.0, 40.0, 80.0)) for i in range(n_people)]
    again = [(f"{i}", (5.0 * i + shift, 10.0, 40.0, 80.0)) for i in repeats]
    races = ["AB"[i % 2] for i in [*range(n_people), *repeats]]
    return detect([*boxes, *again], boxes, races)


def build_broken_inputs() -> AuditInputs:
    return _repeat(40, [0, 2, 4, 6], shift=1.0)


def test_the_group_with_most_of_them_is_named() -> None:
    (caution,) = repeated_annotations.check(build_broken_inputs())
    assert caution.startswith(
        "4 of 44 annotations have the box of another one; of race = A 4 of 24 ('p40' has nearly"
        " the box of 'p0'). A model finds an object once, so that each repeat counts as missed."
    )


@pytest.mark.parametrize(
    ("n_people", "n_repeats", "shift", "n_cautions"),
    [
        (100, 1, 0.0, 1),  # exactly the same box is no chance, and 1 of 51 in its group
        (400, 1, 0.0, 0),  # 1 of 201 changes nothing
        (40, 2, 1.0, 0),  # two pairs of people may stand close together
        (40, 3, 1.0, 1),
    ],
)
def test_from_how_many_on_it_warns(n_people, n_repeats, shift, n_cautions) -> None:
    repeats = [2 * i for i in range(n_repeats)]
    assert len(repeated_annotations.check(_repeat(n_people, repeats, shift))) == n_cautions


def test_a_whole_list_twice_is_refused() -> None:
    with pytest.raises(TableError, match="30 of 60 annotations repeat another exactly"):
        repeated_annotations.check(_repeat(30, list(range(30))))
