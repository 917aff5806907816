"""A file of facts: what it may say, what is refused, and whence each fact comes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from isolux.cards import build_facts_json_schema, load_all_fact_fields, read_facts
from isolux.core import registry
from isolux.core.errors import FileError, IsoluxError, SpecError, UnknownNameError

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = {"attribute": "light", "group": "night", "harm": "is not let in"}


def test_a_fact_has_its_source_and_lists_stay_lists(tmp_path):
    path = tmp_path / "facts.yaml"
    path.write_text(
        "facts: 1\ncontact: a@b.org\nout_of_scope: [police, hiring]\n"
        "developers: {says: Example Lab, source: the contract}\nmodel_version: 2.10\n"
    )
    facts = read_facts(path)
    assert facts.texts["out_of_scope"] == ("police", "hiring")
    assert facts.describe_source("contact") == "stated by the user in facts.yaml"
    assert (
        facts.describe_source("developers") == "stated by the user in facts.yaml, from the contract"
    )
    assert len(facts.sha256) == 64
    assert str(tmp_path) not in facts.describe_source("contact")


def test_nothing_is_said_where_nothing_stands():
    facts = read_facts({"facts": 1, "contact": None, "developers": "  ", "out_of_scope": []})
    blanks = [
        facts.stated_fact(load_all_fact_fields()[key])
        for key in ("contact", "developers", "out_of_scope")
    ]
    assert [one.texts for one in blanks] == [(), (), ()]
    assert read_facts(None).texts == {}


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"contact": "x"}, SpecError, r"by which version(.|\n)*`facts: 1`"),
        ({"facts": True}, SpecError, "by which version"),
        ({"facts": 1, "contct": "x"}, UnknownNameError, "contct(.|\n)*contact"),
        ({"facts": 1, "contact": {"say": "x"}}, UnknownNameError, "say(.|\n)*says"),
        ({"facts": 1, "contact": True}, SpecError, "contact is not text(.|\n)*quotes"),
        ({"facts": 1, "contact": [["x"]]}, SpecError, "contact is not text"),
        ({"facts": 1, "scenarios": "x"}, SpecError, "scenarios is not a list"),
        ({"facts": 1, "scenarios": ["x"]}, SpecError, "a scenario is not a mapping"),
        ({"facts": 1, "scenarios": [{"group": "x"}]}, SpecError, "names no attribute"),
        ({"facts": 1, "scenarios": [{"harms": "x"}]}, UnknownNameError, "harms(.|\n)*harm"),
    ],
)
def test_what_is_no_fact_is_refused(said, error, words):
    with pytest.raises(error, match=words):
        read_facts(said)


def test_a_text_that_no_card_can_hold_is_refused_with_its_place(tmp_path):
    file = tmp_path / "facts.yaml"
    file.write_text(f"facts: 1\ncontact: [short, {'a' * 20_001}]\n")
    with pytest.raises(SpecError, match="contact is too long for a card") as caught:
        read_facts(file)
    assert "found: 20,001" in str(caught.value)
    assert f"where: {file}" in str(caught.value)


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "facts.yaml"
    path.write_text("facts: 1\ncontact: a\ncontact: b\n")
    with pytest.raises(SpecError, match=r"'contact' occurs twice(.|\n)*line 3"):
        read_facts(path)
    with pytest.raises(FileError, match="no such file"):
        read_facts(tmp_path / "none.yaml")


def test_the_published_schema_is_what_cards_ask_for(tmp_path):
    published = json.loads((ROOT / "docs" / "schemas" / "card-facts-1.json").read_text("utf-8"))
    assert published == build_facts_json_schema(), "write it again: docs/how_to/cards.md says how"
    jsonschema.Draft202012Validator.check_schema(published)
    good = {"facts": 1, "contact": {"says": ["a"], "source": "b"}, "scenarios": [SCENARIO]}
    jsonschema.validate(good, published)
    read_facts(good)
    for bad in ({"facts": 2}, {"facts": 1, "contct": "x"}, {"facts": 1, "contact": True}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, published)
        with pytest.raises(IsoluxError):
            read_facts(bad)


def test_one_key_asks_one_thing_of_all_kinds():
    """A file may hold the facts of several kinds: a key means the same in each."""
    for kind in registry.names("cards"):
        keys = [ask.key for ask in registry.load_info("cards", kind).facts]
        assert len(keys) == len(set(keys))
