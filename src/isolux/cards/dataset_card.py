"""A Hugging Face data set card: facts of the user, and who is in the data as an audit saw them.

Sections as in the Hub's template, after Pushkarna et al. (2022) and Gebru et al. (2021); the
metadata is made by ``huggingface_hub``'s own classes and read back by them.
"""

from __future__ import annotations

from isolux.cards._content import CardContent
from isolux.cards._croissant import DATASET_FACTS
from isolux.cards._document import Bullets, Card, CardFact, CardSection
from isolux.cards._facts import CardFacts
from isolux.cards._hub import (
    format_validated_front_matter,
    import_huggingface_hub,
    to_hub_licence_fields,
)
from isolux.cards._run_source import RunSource
from isolux.core.info import CardInfo, Reference

_FACT_KEYS = (
    "dataset_name",
    "dataset_description",
    "dataset_persons",
    "dataset_organisations",
    "dataset_url",
    "data_licence",
    "dataset_citation",
    "dataset_uses",
    "collection",
    "preprocessing",
    "annotation",
    "annotators",
    "sensitive_information",
    "consent",
    "dataset_biases",
    "known_limitations",
    "social_impact",
    "maintenance",
)

INFO = CardInfo(
    title="Data set card",
    summary="A Hugging Face data set card with who is in the data, by group.",
    references=(
        Reference(
            "data-cards",
            "Pushkarna, M., Zaldivar, A., & Kjartansson, O. (2022). Data cards: purposeful and "
            "transparent dataset documentation for responsible AI. FAccT '22, 1776–1826.",
            "",
            "https://doi.org/10.1145/3531146.3533231",
        ),
        Reference(
            "hub-dataset-card",
            "Hugging Face. Dataset cards, and their metadata.",
            "",
            "https://huggingface.co/docs/hub/datasets-cards",
        ),
    ),
    facts=tuple(DATASET_FACTS[key] for key in _FACT_KEYS),
    statement=(
        "This card describes the people whom one audit judged, by the attributes that it looked "
        "at. Who else is in the data, and who is missing from it, it cannot say."
    ),
)


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill a data set card.

    Parameters
    ----------
    source : RunSource
        A finished run.
    facts : CardFacts
        What the user says.

    Returns
    -------
    Card

    Raises
    ------
    SpecError
        ``huggingface_hub`` is not installed.

    Examples
    --------
    >>> INFO.facts[0].key
    'dataset_name'
    """
    content = CardContent("dataset_card", source, facts)
    stated_facts, unknown = content.stated_facts, tuple(content.describe_unknown_values())
    licence = stated_facts("data_licence")
    if content.licence and not licence[0].texts:
        text = (content.licence,)
        licence = (CardFact("the licence of the data", text, "declared by the loader"),)
    bullets = [Bullets(unknown)] if unknown else []
    description_facts = stated_facts(
        "dataset_name", "dataset_description", "dataset_persons", "dataset_organisations"
    )
    return content.build_card(
        CardSection(
            "Who is in the data",
            (content.build_data_paragraph(), *content.build_people_count_tables(), *bullets),
        ),
        CardSection(
            "Data set description",
            (*description_facts, *licence, *stated_facts("dataset_url", "dataset_citation")),
        ),
        CardSection("Uses", stated_facts("dataset_uses")),
        CardSection(
            "Creation", stated_facts("collection", "preprocessing", "annotation", "annotators")
        ),
        CardSection(
            "Personal and sensitive information", stated_facts("sensitive_information", "consent")
        ),
        CardSection(
            "Bias, risks and limitations",
            stated_facts("dataset_biases", "known_limitations", "social_impact"),
        ),
        CardSection("Maintenance", stated_facts("maintenance")),
        metadata=_build_hub_metadata(content),
        of_data=True,
    )


def _build_hub_metadata(content: CardContent) -> str:
    hub, n = import_huggingface_hub("a data set card"), content.summary.audited.n_units
    sizes = (
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
    )
    size = next((word for upper_limit, word in sizes if n < upper_limit), "n>1M")
    card_data = hub.DatasetCardData(
        pretty_name=content.data_name or None,
        size_categories=[size] if n else None,
        tags=["isolux"],
        **to_hub_licence_fields(content.stated_licence),
    )
    return format_validated_front_matter(card_data, hub.DatasetCard)
