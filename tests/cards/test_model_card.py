"""The model card: its metadata is read back by the Hub's own classes, number for number."""

from __future__ import annotations

import pytest

import isolux
from isolux.vocabulary.errors import SpecError
from tests.cards._cards import HOSTILE, run_of_people, traced, with_hub


@with_hub
def test_the_hub_reads_back_every_value():
    from huggingface_hub import ModelCard

    run = run_of_people()
    card = ModelCard(isolux.card(run, kind="model-card").markdown())
    read = {(one.dataset_config, one.metric_type): one for one in card.data.eval_results}
    rows = run.group_metrics.filter(run.group_metrics["value"].is_not_null())
    assert len(read) == rows.height
    for row in rows.iter_rows(named=True):
        config = row["attribute"] and f"{row['attribute']}={row['group']}"
        one = read[config, row["metric"]]
        assert one.metric_value == row["value"]
        assert one.metric_args["n_units"] == row["n_units"]
        assert one.metric_args["low"] == row["low"]
    assert card.data.model_name == "m"
    assert "license" not in card.data.to_dict()  # not stated, so not there


@with_hub
def test_a_hostile_name_survives_the_metadata():
    from huggingface_hub import ModelCard

    card = ModelCard(isolux.card(run_of_people(HOSTILE), kind="model-card").markdown())
    assert f"light={HOSTILE}" in {one.dataset_config for one in card.data.eval_results}


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
