"""Hair and face from annotation: each way that datasets give it, and what was not annotated."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.derive import body
from tests.contracts._samples import MADE_UP


def people(**columns):
    n = len(next(iter(columns.values())))
    ids = {"instance_id": [f"p{i}" for i in range(n)], "image_id": [f"i{i}" for i in range(n)]}
    return Dataset("made up", MADE_UP, pl.DataFrame(ids | columns))


def values(found, attribute, column="value"):
    return found.filter(attribute=attribute)[column].to_list()


def part(name):
    return {"part": name, "counts": "04", "height": 2, "width": 2}


def test_bald_is_who_has_parts_and_no_head_hair():
    masks = [[part("skin"), part("hair")], [part("skin"), part("hat")], None, []]
    found = body.derive(people(part_masks=masks))
    assert values(found, "bald") == ["no", "yes", None, None]


@pytest.mark.parametrize("name", ["6. Head hair", "Head hair", "hair", "head_hair"])
def test_each_name_of_head_hair(name):
    text = [f"[{{'class_name': '{name}', 'num': 1}}]", '[{"class_name": "17. Facial hair"}]']
    assert values(body.derive(people(segments=text)), "bald") == ["no", "yes"]


def test_where_both_are_given_masks_count_and_polygons_fill_in():
    text = ["[{'class_name': '6. Head hair'}]"] * 2
    found = body.derive(people(part_masks=[[part("skin")], None], segments=text))
    assert values(found, "bald") == ["yes", "no"]


def test_faces_by_hand():
    found = body.derive(
        people(
            face_box_w=[10.0, 0.0, None, 10.0],
            face_box_h=[20.0, 5.0, None, 90.0],
            box_h=[80.0, 80.0, 80.0, 60.0],
        )
    )
    assert values(found, "face_height", "number") == [20.0, None, None, 90.0]
    assert values(found, "face_area", "number") == [200.0, None, None, 900.0]
    # A face's box may reach beyond the person's: the share stays one.
    assert values(found, "face_to_body", "number") == [0.25, None, None, 1.0]


def test_a_dataset_with_neither_is_refused_and_nobody_is_no_problem():
    with pytest.raises(SpecError, match="hair and face cannot be looked at"):
        body.derive(people(box_h=[3.0]))
    nobody = people(box_h=[3.0])
    empty = Dataset("made up", MADE_UP, nobody.instances.clear())
    assert body.derive(empty).is_empty()
