"""The model card: its metadata is read back by the Hub's own classes, number for number."""

from __future__ import annotations

import json

import pytest

import isolux
from isolux.core.errors import SpecError
from tests.cards._cards import HOSTILE, run_of_people, traced, with_hub


@with_hub
def test_the_hub_reads_back_every_value():
    from huggingface_hub import ModelCardData

    run = run_of_people()
    data = ModelCardData(**json.loads(isolux.card(run, kind="model-card").json()))
    read = {(one.dataset_config, one.metric_type): one for one in data.eval_results}
    rows = run.group_metrics.filter(run.group_metrics["value"].is_not_null())
    assert len(read) == rows.height
    for row in rows.iter_rows(named=True):
        config = row["attribute"] and f"{row['attribute']}={row['group']}"
        one = read[config, row["metric"]]
        assert one.metric_value == row["value"]
        assert one.metric_args["n_units"] == row["n_units"]
        assert one.metric_args["low"] == row["low"]
    assert data.model_name == "m"
    assert "license" not in data.to_dict()  # not stated, so not there


@with_hub
def test_the_metadata_before_the_first_sentence_is_short():
    """Everyone, two lights (one of them too small to judge is not there) and three regions."""
    from huggingface_hub import ModelCard

    text = isolux.card(run_of_people(), kind="model-card").markdown()
    results = ModelCard(text).data.eval_results
    assert [one.metric_name.partition(":")[0] for one in results] == [
        "Accuracy", "Accuracy, light = night", "Accuracy, light = day",
        "Accuracy, region = coast", "Accuracy, region = hills", "Accuracy, region = unknown",
    ]  # fmt: skip
    assert results[1].metric_value == 0.4
    assert results[1].metric_name.endswith("40.0 % (33.5 to 46.9; n = 200)")
    assert text.splitlines().index("# Model card: m on Own table") < 60


@with_hub
def test_a_hostile_name_survives_the_metadata():
    from huggingface_hub import ModelCard

    made = isolux.card(run_of_people(HOSTILE), kind="model-card")
    (named,) = [one.metric_name for one in ModelCard(made.markdown()).data.eval_results
                if one.dataset_config == "light" and "day" not in one.metric_name]  # fmt: skip
    assert f"light = {HOSTILE}:" in named
    assert f"light={HOSTILE}" in made.json()


@with_hub
@pytest.mark.parametrize(
    ("said", "licence", "name"), [("CC-BY 4.0", "cc-by-4.0", None), ("Ours", "other", "ours")]
)
def test_a_licence_is_one_of_the_hubs_words_or_other(said, licence, name):
    from huggingface_hub import ModelCard

    made = isolux.card(run_of_people(), kind="model_card", facts={"facts": 1, "licence": said})
    data = ModelCard(made.markdown()).data
    assert data.license == licence
    assert data.license_name == name


@with_hub
def test_every_number_is_the_runs():
    run = run_of_people()
    assert traced(isolux.card(run, kind="model_card"), run) == 3 + 3 + 7


def test_without_the_hubs_classes_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(SpecError, match=r"isolux\[cards\]"):
        isolux.card(run_of_people(), kind="model_card")
