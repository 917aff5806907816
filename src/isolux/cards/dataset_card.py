"""A Hugging Face data set card: facts of the user, and who is in the data as an audit saw them.

Sections as in the Hub's template, after Pushkarna et al. (2022) and Gebru et al. (2021); the
metadata is made by ``huggingface_hub``'s own classes and read back by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isolux.cards._data import ASKS, data_name, licence_text, unknown_values
from isolux.cards._document import Block, Bullets, Card, Paragraph, Part, Said
from isolux.cards._facts import Facts
from isolux.cards._hub import LICENCES, front_matter, licence_of
from isolux.cards._measured import data_text, licence_of_data, people_table
from isolux.cards._source import Source, card_of
from isolux.vocabulary.extras import needed
from isolux.vocabulary.info import CardInfo, Reference

__all__ = ["INFO", "card"]

_KEYS = (
    "dataset_name", "dataset_description", "dataset_persons", "dataset_organisations",
    "dataset_url", "data_licence", "dataset_citation", "dataset_uses", "collection",
    "preprocessing", "annotation", "annotators", "sensitive_information", "consent",
    "dataset_biases", "known_limitations", "social_impact", "maintenance",
)  # fmt: skip

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
    asks=tuple(ASKS[key] for key in _KEYS),
    statement=(
        "This card describes the people whom one audit judged, by the attributes that it looked "
        "at. Who else is in the data, and who is missing from it, it cannot say."
    ),
)


def card(source: Source, facts: Facts) -> Card:
    """Fill a data set card.

    Parameters
    ----------
    source : Source
        A finished run.
    facts : Facts
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
    >>> INFO.asks[0].key
    'dataset_name'
    """
    said = facts.answers_to(ASKS)
    loaded = licence_of_data(source)
    licence = (Said("the licence of the data", (loaded,), "declared by the loader"),) \
        if loaded and not facts.text("data_licence") else said("data_licence")  # fmt: skip
    parts = [
        Part("Who is in the data", tuple(_people(source))),
        Part("Data set description", (*said("dataset_name", "dataset_description",
                                            "dataset_persons", "dataset_organisations"),
                                      *licence, *said("dataset_url", "dataset_citation"))),
        Part("Uses", said("dataset_uses")),
        Part("Creation", said("collection", "preprocessing", "annotation", "annotators")),
        Part("Personal and sensitive information", said("sensitive_information", "consent")),
        Part("Bias, risks and limitations",
             said("dataset_biases", "known_limitations", "social_impact")),
        Part("Maintenance", said("maintenance")),
    ]  # fmt: skip
    return card_of(INFO, "dataset_card", source, facts, parts, metadata=_metadata(source, facts),
                   data_set=data_name(source, facts) or "unnamed")  # fmt: skip


def _people(source: Source) -> Iterator[Block]:
    yield Paragraph(data_text(source))
    yield from people_table(source)
    unknown = tuple(unknown_values(source))
    if unknown:
        yield Bullets(unknown)


def _metadata(source: Source, facts: Facts) -> str:
    hub = needed(
        "huggingface_hub", package="huggingface_hub", extra="cards", purpose="a data set card"
    )
    licence = licence_text(source, facts)
    more: dict[str, Any] = licence_of(licence, LICENCES) if licence else {}
    n = source.summary.audited.n_units
    sizes = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"),
             (1_000_000, "100K<n<1M"))  # fmt: skip
    size = next((word for most, word in sizes if n < most), "n>1M")
    data = hub.DatasetCardData(
        pretty_name=data_name(source, facts) or None, size_categories=[size] if n else None,
        tags=["isolux"], **more,
    )  # fmt: skip
    return front_matter(data, hub.DatasetCard)
