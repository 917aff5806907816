"""Which class a picture is given by its prompts: the mean direction's, or the nearest prompt's."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.errors import SpecError, UnknownNameError
from isolux.io.prompts import list_built_in_prompts, read_prompt_file
from isolux.models._prompts import build_prompt_label_table

TOLD = {"indoor": ("a room", "a hall"), "outdoor": ("a street", "a park")}


def test_the_nearest_prompt_decides_and_is_kept():
    """Rows of two pictures: the street is nearest to the first, the hall to the second."""
    near = np.array([[0.1, 0.2, 0.9, 0.0], [0.0, 0.7, 0.6, 0.6]])
    found = build_prompt_label_table(near, TOLD, pooling="nearest", is_sigmoid=False, top=1)
    assert found.select("label", "prompt").rows() == [("outdoor", "a street"), ("indoor", "a hall")]
    whole = build_prompt_label_table(near, TOLD, pooling="nearest", is_sigmoid=False, top=2)
    assert whole.filter(picture=0, rank=2)["prompt"].item() == "a hall"
    # softmax of the nearest of each class: 1 / (1 + exp(.2 - .9))
    assert found["score"][0] == pytest.approx(1 / (1 + np.exp(-0.7)))


def test_of_no_pictures_there_are_no_rows():
    none = build_prompt_label_table(
        np.zeros((0, 4)), TOLD, pooling="nearest", is_sigmoid=False, top=1
    )
    assert none.height == 0


@pytest.mark.parametrize("name", list_built_in_prompts())
def test_prompts_that_come_along_say_where_they_are_from(name):
    found = read_prompt_file(name)
    assert found.title
    assert len(found.source) > 40
    assert found.language == "English"
    assert len(found.sha256) == 64
    counts = {len(texts) for texts in found.prompts.values()}
    assert counts == ({4} if name.startswith("fhibe") else {1})
    assert len(found.prompts) == 52 or name.startswith("fhibe")


def test_a_name_that_there_is_not():
    with pytest.raises(UnknownNameError, match="there is no file of prompts named 'fhibe_scenes'"):
        read_prompt_file("fhibe_scenes")


def test_a_place_that_nothing_fills_is_refused(tmp_path):
    (tmp_path / "two.yaml").write_text("nurse: a photo of a {}\nchef: a photo of a chef\n")
    with pytest.raises(SpecError, match=r"(?s)'nurse' has a place that nothing fills.*template"):
        read_prompt_file(tmp_path / "two.yaml")
    (tmp_path / "two.yaml").write_text('template: "a photo of a {}"\nclasses: [nurse, chef]\n')
    assert read_prompt_file(tmp_path / "two.yaml").prompts["nurse"] == ("a photo of a nurse",)
