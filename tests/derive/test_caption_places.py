"""Places that captions name: which words are one, and which only look like it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.derive import add_missing_derived_attributes
from isolux.derive._captions import add_captions_from_file
from isolux.derive.caption_places import derive
from isolux.derive.caption_places.gazetteer import COUNTRIES_BY_REGION, load_place_tables

INFO = DatasetInfo(title="Made", summary="Made up.", references=())


def captioned(*texts):
    ids = [str(i) for i in range(len(texts))]
    return Dataset(
        "made",
        INFO,
        pl.DataFrame({"instance_id": ids, "image_id": ids}),
        images=pl.DataFrame({"image_id": ids, "caption": list(texts)}),
    )


def countries(text):
    found = derive(captioned(text)).filter(attribute="caption_country")["value"]
    return found.drop_nulls().to_list()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a nurse in Nairobi", ["Kenya"]),
        ("two KOREANS on a stage", ["South Korea"]),
        ("a Peruvian farmer's field", ["Peru"]),
        ("a Kenyan runner in Paris", ["France", "Kenya"]),
        ("a market in São Paulo", ["Brazil"]),
        ("footballers of Côte d’Ivoire", ["Cote d'Ivoire"]),
        ("the Ivory  Coast", ["Cote d'Ivoire"]),
        ("U.S. soldiers", ["United States"]),
        ("a street of New Mexico", ["United States"]),  # not Mexico
        ("in papua new guinea", ["Papua New Guinea"]),  # not Guinea
        ("South Sudan", ["South Sudan"]),  # not Sudan
        ("a road in Congo", ["Democratic Republic of the Congo"]),
        ("the Republic of the Congo", ["Republic of the Congo"]),
        ("a lake in Kashmir", []),  # disputed: a region and no country
        ("Istanbul, Turkey", ["Turkey"]),
        ("a roast turkey", []),
        ("give it to us", []),
        ("a man polishing a car", []),
        ("a woman eating french fries", []),
        ("a guinea pig", []),
        ("a German shepherd barks", []),
        ("Indianapolis", []),  # no part of a word
        ("a man in a street", []),
    ],
)
def test_a_caption_tells_its_countries(text, found):
    assert countries(text) == found


def test_a_region_alone_has_no_country():
    found = derive(captioned("West African drums")).select("attribute", "value").rows()
    assert found == [("caption_country", None), ("caption_region", "Sub-Saharan Africa")]


def test_every_person_of_an_image_has_its_captions_places():
    data = Dataset(
        "made",
        INFO,
        pl.DataFrame({"instance_id": ["a", "b", "c"], "image_id": ["1", "1", "2"]}),
        pl.DataFrame({"unit_kind": "image", "unit_id": ["1", "1"], "attribute": "caption",
                      "value": ["a bride in Delhi", "an Indian bride"]}),
    )  # fmt: skip
    found = add_missing_derived_attributes(data, ["caption_region"]).attributes.filter(
        attribute="caption_region"
    )
    assert found.select("unit_id", "value").rows() == [
        ("a", "Central and Southern Asia"),
        ("b", "Central and Southern Asia"),
        ("c", None),
    ]


def test_the_list_holds_no_name_twice():
    anyhow, exact = load_place_tables()
    assert not set(anyhow) & set(exact)
    written = [
        name.strip().lstrip("^").lower()
        for lines in COUNTRIES_BY_REGION.values()
        for line in lines.replace("\n  ", " ").strip().splitlines()
        for name in line.replace(";", ",").split(",")
    ]
    assert len(written) == len(set(written)) > 850
    assert len({country for country, _ in (anyhow | exact).values() if country}) > 195


def test_without_captions_it_is_refused():
    with pytest.raises(SpecError, match=r"(?s)places in captions cannot.*--captions FILE"):
        derive(Dataset("made", INFO, captioned("x").instances))


@pytest.fixture
def bare():
    return Dataset("made", INFO, captioned("x", "y").instances)


def test_captions_come_from_a_table(bare, tmp_path):
    file = tmp_path / "captions.csv"
    file.write_text("image_id,caption\n0,a Thai dancer\n0,Bangkok\n7,Paris\n")
    found = derive(add_captions_from_file(bare, file)).filter(attribute="caption_country")
    assert found.select("unit_id", "value").rows() == [("0", "Thailand"), ("1", None)]


def test_captions_come_from_cocos_file(bare, tmp_path):
    file = tmp_path / "captions_val.json"
    rows = [{"id": 5, "image_id": 1, "caption": "a bus in London"}]
    file.write_text(json.dumps({"images": [], "annotations": rows}))
    found = derive(add_captions_from_file(bare, file)).filter(attribute="caption_country")
    assert found["value"].to_list() == [None, "United Kingdom"]


@pytest.mark.parametrize(
    ("name", "text", "error", "words"),
    [
        ("c.csv", "image_id,text\n0,x\n", UnknownNameError, "no column named 'caption'"),
        ("c.csv", "caption\nx\n", SpecError, "no column says whose caption"),
        ("c.csv", "image_id,caption\n,x\n", TableError, "have no id"),
        ("c.csv", "image_id,caption\n9,x\n", JoinError, r"(?s)no caption is of.*'0'.*'9'"),
        ("c.json", "[" * 10_000, TableError, "does not hold what it should"),
        (
            "c.json",
            '{"annotations": [{"image_id": 1}]}',
            TableError,
            "missing required field `caption`",
        ),
        ("c.json", '{"annotations": []}', JoinError, "no caption"),
    ],
)
def test_a_bad_file_says_what_is_wrong(bare, tmp_path, name, text, error, words):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(error, match=words):
        add_captions_from_file(bare, file)


def test_a_file_that_may_not_be_read(bare, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "c.json").write_text('{"annotations": []}')
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(FileError, match=r"(?s)the file cannot be read.*Permission denied"):
        add_captions_from_file(bare, tmp_path / "c.json")


def test_a_file_that_is_not_there(bare, tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        add_captions_from_file(bare, tmp_path / "absent.json")
