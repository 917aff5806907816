"""The data set card: metadata that the Hub's class reads back, and who is in the data."""

from __future__ import annotations

import isolux
from tests.cards._cards import run_of_people, tables_of, with_hub


@with_hub
def test_the_hub_reads_back_what_was_stated():
    from huggingface_hub import DatasetCard

    facts = {"facts": 1, "dataset_name": "Lights: a set", "data_licence": "CC BY 4.0"}
    data = DatasetCard(isolux.card(run_of_people(), kind="dataset-card", facts=facts).markdown()
                       ).data.to_dict()  # fmt: skip
    assert data["pretty_name"] == "Lights: a set"
    assert data["license"] == "cc-by-4.0"
    assert data["size_categories"] == ["n<1K"]


@with_hub
def test_groups_are_counted_and_unknown_is_named():
    """Of 601 people 200 are of night, 400 of day, 1 of dusk."""
    made = isolux.card(run_of_people(), kind="dataset-card")
    (light,) = [t for t in tables_of(made) if t.caption == "People judged, by light"]
    assert {row[0]: row[1] for row in light.rows} == {"day": "400", "dusk": "1", "night": "200"}
    region = run_of_people().group_metrics.filter(attribute="region", group="unknown")
    assert f"region: not known of {region['n_units'][0]}." in made.markdown()
