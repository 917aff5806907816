"""What a data set's papers ask for, and what a run knows of it."""

from __future__ import annotations

from collections.abc import Iterator

from isolux.cards._facts import Facts
from isolux.cards._measured import licence_of_data
from isolux.cards._source import Source, without_folders
from isolux.groups.unknown import KNOWN_SUFFIX
from isolux.statements.numbers import count
from isolux.statements.words import words_of
from isolux.vocabulary.info import Ask
from isolux.vocabulary.spec import crossed

__all__ = ["ASKS", "data_name", "licence_text", "representation", "sensitive", "unknown_values"]

ASKS = {
    "dataset_name": Ask("dataset_name", "the name of the data set"),
    "dataset_description": Ask("dataset_description", "what the data set is"),
    "dataset_url": Ask("dataset_url", "where the data set is described"),
    "dataset_persons": Ask("dataset_persons", "persons who made the data set"),
    "dataset_organisations": Ask("dataset_organisations", "organisations that made the data set"),
    "dataset_published": Ask("dataset_published", "the day it was published, as 2026-11-22"),
    "dataset_version": Ask("dataset_version", "the version of the data set"),
    "data_licence": Ask("data_licence", "the licence of the data it was tested on"),
    "dataset_citation": Ask("dataset_citation", "how to cite the data set"),
    "collection": Ask("collection", "how the data were collected"),
    "preprocessing": Ask("preprocessing", "how the data were cleaned and changed"),
    "annotation": Ask("annotation", "how people and pictures were annotated"),
    "annotators": Ask("annotators", "who the annotators are"),
    "consent": Ask("consent", "whether the people agreed, and how they withdraw"),
    "sensitive_information": Ask("sensitive_information", "which personal or sensitive "
                                 "information the data hold"),
    "dataset_biases": Ask("dataset_biases", "known biases of the data"),
    "known_limitations": Ask("known_limitations", "known limitations of the data"),
    "dataset_uses": Ask("dataset_uses", "what the data are meant for"),
    "social_impact": Ask("social_impact", "what the data may do to people"),
    "maintenance": Ask("maintenance", "how the data are maintained"),
}  # fmt: skip
_MOST = 20


def data_name(source: Source, facts: Facts) -> str:
    """Call the data as the user does, or as the run does."""
    return facts.text("dataset_name") or without_folders(source.summary.audited.dataset)


def licence_text(source: Source, facts: Facts) -> str:
    """Return the licence that the user states, or that the loader declares; empty: neither."""
    return facts.text("data_licence") or licence_of_data(source)


def representation(source: Source) -> Iterator[str]:
    """Say how many people of each group were judged: a sentence for each single attribute."""
    for section in source.summary.sections:
        main = section.main
        if section.is_intersection or main.overall is None or not main.overall.n_units:
            continue
        total = main.overall.n_units
        shown = [
            f"{row.group} {count(row.estimate.n_units)} "
            f"({100 * row.estimate.n_units / total:.1f} %)"
            for row in main.rows[:_MOST]
        ]
        left = len(main.rows) - len(shown)
        more = f", and {left:,} more groups" if left else ""
        yield (
            f"Representation by {section.title}, of {count(total)} judged: "
            f"{', '.join(shown)}{more}."
        )


def unknown_values(source: Source) -> Iterator[str]:
    """Say of how many people a value is not known."""
    for section in source.summary.sections:
        for row in section.main.rows:
            if row.is_unknown and not section.is_intersection and row.estimate.n_units:
                yield f"{section.title}: not known of {count(row.estimate.n_units)}."


def sensitive(source: Source) -> Iterator[str]:
    """Name each attribute that was audited, also in an intersection alone, and who judged it."""
    judgement = source.summary.audited.judgement or "judgement not recorded"
    asked = (source.run.record.get("spec") or {}).get("by") or ()
    audited = [*asked, *(section.attribute for section in source.summary.sections)]
    words = words_of(source.run)
    names = (name.removesuffix(KNOWN_SUFFIX) for by in audited for name in crossed(by))
    for name in dict.fromkeys(names):
        yield f"{words.title(name)} ({judgement})"
