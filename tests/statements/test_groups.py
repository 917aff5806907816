"""Groups in sentences are people or images, whatever their attribute is called."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError
from isolux.statements.groups import GroupPhrases, parse_group_templates, read_group_phrases

PEOPLE = [
    ("race", ["Black"], "Black people"),
    ("race", ["Latino_Hispanic"], "Latino_Hispanic people"),
    ("race", ["Others"], "people labelled Others"),
    ("race", ["W"], "people labelled W"),
    ("race", ["unknown"], "people of unknown race"),
    ("perceived_gender", ["Female"], "people labelled Female"),
    ("age", ["10-19"], "people aged 10-19"),
    ("age", ["more than 70"], "people aged more than 70"),
    ("age_group", ["adult"], "people labelled adult"),
    ("skin_tone", ["9.0"], "people with skin tone 9"),
    ("skin_tone", ["lighter"], "people with skin tone = lighter"),
    ("self_reported_gender", ["F"], "people with self reported gender = F"),
    ("wearing_hat", ["yes"], "people with wearing hat = yes"),
    ("box_size", ["small"], "people with box size = small"),
    ("lighting", ["dim"], "images with lighting = dim"),
    ("lighting", ["unknown"], "images of unknown lighting"),
    ("image_blur", ["2.0"], "images with image blur = 2"),
    ("person_light", ["dim"], "people with person light = dim"),
    ("country", ["Kenya"], "people from Kenya"),
    ("race (known)*sex (known)", ["Black", "Female"], "Black people labelled Female"),
    ("age*race*sex", ["3-9", "Black", "F"], "Black people labelled F aged 3-9"),
    ("race*lighting", ["Black", "dim"], "Black people in images with lighting = dim"),
    ("lighting*blur", ["dim", "2"], "images with lighting = dim and blur = 2"),
    ("race*hat*age", ["unknown", "{unit}", "unknown"],
     "people with hat = {unit} of unknown race and of unknown age"),
]  # fmt: skip


@pytest.mark.parametrize(("attribute", "values", "phrase"), PEOPLE)
def test_a_group_is_people_or_images(attribute: str, values: list[str], phrase: str) -> None:
    assert GroupPhrases().describe_group(attribute, values) == phrase


def test_what_the_loader_declares_names_rows_units_and_whose_labels() -> None:
    photos = GroupPhrases(
        terms={"income": "household income, US dollars a month, adjusted", "gender": "perceived"
               " gender presentation"},
        units={"income": "US dollars a month"}, noun="photos", label_source="perceived",
    )  # fmt: skip
    income = photos.describe_group("income", ["0–100"])
    assert income == "photos from households with an income of 0–100 US dollars a month"
    assert photos.describe_group("income", ["unknown"]) == "photos of unknown household income"
    assert photos.describe_group("gender", ["unknown"]).endswith("perceived gender presentation")
    tone = {"perceived_skin": "perceived skin type (Fitzpatrick)"}
    faces = GroupPhrases(terms=tone, noun="faces")
    assert faces.describe_group("perceived_skin", ["IV"]) == "people with skin type IV"
    assert faces.describe_group("perceived_skin", ["unknown"]) == (
        "people of unknown perceived skin type"
    )
    # The size of a box is nobody's label, and a face's blur is not its image's.
    assert GroupPhrases(noun="faces").describe_group("blur", ["2"]) == "faces with blur = 2"
    own = GroupPhrases(label_source="self-reported", terms={"gender": "self-reported gender"})
    assert own.describe_group("gender", ["woman"]) == "people with self-reported gender = woman"
    frames = GroupPhrases(noun="objects", image_attributes={"weather"})
    assert frames.describe_group("weather", ["rainy"]) == "images with weather = rainy"


@pytest.mark.parametrize(
    ("attribute", "values", "phrase"),
    [
        ("race", ["{value}"], "people labelled {value}"),
        ("race*sex", ["Black", "Female"], "people labelled Black and Female"),
        ("role*sex", ["nurse", "Female"], "staff ({title} nurse) among people labelled Female"),
        ("role*race", ["unknown", "Black"], "people labelled Black of unknown role"),
    ],
)
def test_a_template_is_replaced_literally(attribute: str, values: list[str], phrase: str) -> None:
    templates = {"race": "people labelled {value}", "role": "staff ({title} {value})"}
    assert GroupPhrases(templates=templates).describe_group(attribute, values) == phrase


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["rac=people labelled {value}"], "'rac', which is not audited"),
        (["race=Black people"], "where the value of 'race' stands"),
        (["race={value}", "race={value} people"], "names 'race' twice"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_group_templates(texts, ["race"])


def test_a_run_keeps_what_its_groups_are_called() -> None:
    rows = pl.DataFrame({"id": [str(i) for i in range(400)], "race": ["a b", "C"] * 200,
                         "light": ["dim"] * 200 + ["even"] * 200, "truth": "yes",
                         "answer": ["yes", "no", "yes"] * 133 + ["yes"]})  # fmt: skip
    settings = {"id": "id", "target": "truth", "prediction_column": "answer", "replicates": 200}
    told = isolux.audit(rows, by=["race", "race*light"], describe_as="race=people called {value}",
                        **settings)  # fmt: skip
    phrases = read_group_phrases(told.run)
    assert phrases.describe_table_group("race", "a b") == "people called a b"
    assert (
        phrases.describe_table_group("race*light", "C × dim")
        == "people called C in images with light = dim"
    )
    assert phrases.describe_table_group(None, "overall") == "overall"
    with pytest.raises(SpecError, match="not audited"):
        isolux.audit(rows, by="race", describe_as="light={value}", **settings)
