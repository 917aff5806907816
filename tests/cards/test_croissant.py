"""Croissant: read back by mlcroissant, without a value that was not stated."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import isolux
from isolux.core.errors import SpecError
from tests.cards._cards import run_of_people, with_croissant

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its parser of JSON-LD
FACTS = {
    "facts": 1, "dataset_name": "Lights", "dataset_description": "People under lamps.",
    "data_licence": "https://creativecommons.org/licenses/by/4.0/", "dataset_version": "1.2.0",
    "dataset_published": "2026-11-22", "dataset_url": "https://example.org/lights",
    "dataset_citation": "Doe, J. Lights.", "dataset_persons": ["J. Doe"],
    "dataset_organisations": ["Lamp Lab"], "collection": "By hand.", "annotation": ["Two people"],
    "dataset_biases": "Few at dusk.", "social_impact": "None known.",
}  # fmt: skip


def with_file():
    run = run_of_people()
    return replace(run, record={**run.record, "inputs": {"/data/x/people.csv": "a" * 64}})


@with_croissant
def test_mlcroissant_reads_back_the_counts_and_what_was_stated():
    import mlcroissant

    made = isolux.card(with_file(), kind="croissant", facts=FACTS)
    read = mlcroissant.Dataset(jsonld=json.loads(made.json()))
    meta = read.metadata
    assert (meta.name, meta.version, meta.data_collection) == ("Lights", "1.2.0", "By hand.")
    assert sorted(type(one).__name__ for one in meta.creators) == ["Organization", "Person"]
    assert meta.ctx.issues.errors == set()
    assert meta.ctx.issues.warnings == set()
    rows = {(r["people_judged/attribute"], r["people_judged/group"]): r["people_judged/n_units"]
            for r in read.records("people_judged")}  # fmt: skip
    assert rows["light", "night"] == 200
    assert meta.data_biases[0] == "Few at dusk."
    assert "night 200 (33.3 %)" in meta.data_biases[1]


@with_croissant
def test_each_audited_attribute_is_named_as_sensitive_also_in_an_intersection_alone():
    run = run_of_people()
    crossed = run.group_metrics["attribute"].is_null() | (
        run.group_metrics["attribute"] == "light*region"
    )
    alone = replace(
        run, group_metrics=run.group_metrics.filter(crossed),
        disparities=run.disparities.filter(attribute="light*region"),
        record={**run.record, "spec": {**run.record["spec"], "by": ["light*region"]}},
    )  # fmt: skip
    for one in (run, alone):
        named = json.loads(isolux.card(one, kind="croissant").json())
        assert named["rai:personalSensitiveInformation"] == [
            "light (declared by the user)", "region (declared by the user)"]  # fmt: skip


@with_croissant
def test_files_are_named_without_their_folders():
    text = isolux.card(with_file(), kind="croissant").json()
    (file,) = json.loads(text)["distribution"]
    assert (file["contentUrl"], file["sha256"]) == ("people.csv", "a" * 64)
    assert "/data/x" not in text


@with_croissant
def test_what_was_not_stated_is_not_there():
    made = isolux.card(run_of_people(), kind="croissant")
    data = json.loads(made.json())
    assert not {"license", "creator", "datePublished", "url", "description"} & set(data)
    assert "data_licence" in [one.key for one in made.blanks]


@with_croissant
def test_what_is_no_day_is_refused():
    with pytest.raises(SpecError, match=r"not a date(.|\n)*May"):
        isolux.card(run_of_people(), kind="croissant",
                    facts={"facts": 1, "dataset_published": "in May"})  # fmt: skip


@with_croissant
def test_a_published_card_holds_no_small_group():
    text = isolux.card(run_of_people(), kind="croissant", publish_min=10).json()
    assert "dusk" not in text


def test_without_mlcroissant_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "mlcroissant", None)
    with pytest.raises(SpecError, match=r"isolux\[cards\]"):
        isolux.card(run_of_people(), kind="croissant")
