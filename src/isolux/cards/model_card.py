"""A Hugging Face model card: facts of the user, results by group, and metadata that the Hub reads.

The metadata is made by ``huggingface_hub``'s own classes and read back by them. As it stands before
the first sentence, it is short: everyone, and the first page's groups on the main metric. The JSON
beside the card holds every result, that of a group under a data set configuration
``ATTRIBUTE=GROUP``. Sections as in the Hub's annotated model card, after Mitchell et al. (2019).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from isolux.cards._document import Card, Paragraph, Part
from isolux.cards._facts import Facts
from isolux.cards._hub import LICENCES, front_matter, licence_of
from isolux.cards._measured import (
    cell_text,
    data_text,
    findings,
    first_page,
    group_tables,
    licence_of_data,
    lines_shown,
    metric_table,
    overall_table,
    shown_first,
)
from isolux.cards._source import Source, card_of, without_folders
from isolux.report.document import AttributeSection, Estimate, Line
from isolux.vocabulary.extras import needed
from isolux.vocabulary.info import Ask, CardInfo, Reference

__all__ = ["INFO", "card"]

_ASKS = {
    "developers": Ask("developers", "who developed the model"),
    "model_description": Ask("model_description", "what the model is, and what it answers"),
    "model_version": Ask("model_version", "which version of the model was audited"),
    "licence": Ask("licence", "the licence of the model"),
    "intended_use": Ask("intended_use", "what the model is meant for"),
    "out_of_scope": Ask("out_of_scope", "what the model is not meant for"),
    "training_data": Ask("training_data", "which data the model was trained on"),
    "training_procedure": Ask("training_procedure", "how the model was trained"),
    "recommendations": Ask("recommendations", "what users should do about these limits"),
    "environmental_impact": Ask("environmental_impact", "what training cost in energy and carbon"),
    "data_licence": Ask("data_licence", "the licence of the data it was tested on"),
    "contact": Ask("contact", "whom to write to"),
}

INFO = CardInfo(
    title="Model card",
    summary="A Hugging Face model card with results by group, and metadata that the Hub reads.",
    references=(
        Reference(
            "model-cards",
            "Mitchell, M., Wu, S., Zaldivar, A., et al. (2019). Model cards for model reporting. "
            "FAT* '19, 220–229.",
            "sections 4.1 to 4.9",
            "https://arxiv.org/abs/1810.03993",
        ),
        Reference(
            "annotated-model-card",
            "Hugging Face. Annotated model card, and the metadata of a model card.",
            "",
            "https://huggingface.co/docs/hub/model-card-annotated",
        ),
    ),
    asks=tuple(_ASKS.values()),
    statement=(
        "This card reports an audit: disparities between groups for these metrics, on these "
        "people, with these labels. It is not a certificate, and a difference that was not found "
        "may still exist."
    ),
)

_TASKS = {
    "classification": "image-classification",
    "detection": "object-detection",
    "face_detection": "object-detection",
    "segmentation": "image-segmentation",
    "keypoints": "keypoint-detection",
    "face_parsing": "image-segmentation",
}
"""The Hub's words for our tasks; others go by their own name."""


def card(source: Source, facts: Facts) -> Card:
    """Fill a model card.

    Parameters
    ----------
    source : Source
        A finished run.
    facts : Facts
        What the user says.

    Returns
    -------
    Card
        Its ``metadata`` holds the values of everyone, and of the groups of single attributes on
        the main metric; its ``data`` those of every group on the metrics of everyone. A value that
        is withheld is in the tables alone, with its status.

    Raises
    ------
    SpecError
        ``huggingface_hub`` is not installed.

    Examples
    --------
    >>> [ask.key for ask in INFO.asks][:2]
    ['developers', 'model_description']
    """
    said = facts.answers_to(_ASKS)
    licence = () if licence_of_data(source) else said("data_licence")
    parts = [
        *first_page(source),
        Part("Model details", said("model_description", "developers", "model_version", "licence",
                                   "contact")),
        Part("Uses", said("intended_use", "out_of_scope")),
        Part("Bias, risks and limitations", (*findings(source), *said("recommendations"))),
        Part("Training", said("training_data", "training_procedure")),
        Part("Evaluation: data and people",
             (Paragraph(data_text(source)), *licence)),
        Part("Evaluation: metrics", (metric_table(source),)),
        Part("Evaluation: results", (overall_table(source), *group_tables(source))),
        Part("Environmental impact", said("environmental_impact")),
    ]  # fmt: skip
    hub = needed(
        "huggingface_hub", package="huggingface_hub", extra="cards", purpose="a model card"
    )
    short, every = (_described(source, facts, hub, list(results(source, hub)))
                    for results in (_main_results, _results))  # fmt: skip
    return card_of(INFO, "model_card", source, facts, parts,
                   metadata=front_matter(short, hub.ModelCard), data=every.to_dict())  # fmt: skip


def _described(source: Source, facts: Facts, hub: Any, results: list[Any]) -> Any:
    licence = facts.text("licence")
    more = licence_of(licence, LICENCES) if licence else {}
    return hub.ModelCardData(
        model_name=without_folders(source.summary.audited.model) if results else None,
        eval_results=results or None,
        metrics=sorted({one.metric_type for one in results}) or None,
        tags=["isolux", "results-by-group"], **more,
    )  # fmt: skip


def _main_results(source: Source, hub: Any) -> Iterator[Any]:
    """Give the first page's values: everyone's, and those of groups on the main metric alone."""
    sections, lines, most = shown_first(source)
    shown = [("", "", line, found) for line, found in source.summary.overall if line in lines]
    shown += [
        (one.attribute, f", {one.attribute} = {row.group}", one.main.line, row.estimate)
        for one in sections for row in one.main.rows[:most]
    ]  # fmt: skip
    for attribute, words, line, found in shown:
        for result in _result(source, hub, line, found):
            result.dataset_config = attribute or None
            result.metric_name += f"{words}: {cell_text(found, line.unit)}"
            result.metric_args = None
            yield result


def _results(source: Source, hub: Any) -> Iterator[Any]:
    """Give every value that stands: everyone's first, then each attribute's groups."""
    for line, found in source.summary.overall:
        yield from _result(source, hub, line, found)
    for section in source.summary.sections:
        for table in lines_shown(section):
            for row in table.rows:
                yield from _result(source, hub, table.line, row.estimate, section, row.group)


def _result(
    source: Source, hub: Any, line: Line, found: Estimate,
    section: AttributeSection | None = None, group: str = "",
) -> Iterator[Any]:  # fmt: skip
    if found.value is None:
        return
    audited = source.summary.audited
    data = without_folders(audited.dataset) or "unnamed"
    args = {"n_units": found.n_units, "n_clusters": found.n_clusters, "low": found.low,
            "high": found.high, "level": audited.level, "status": found.status, "label": line.label,
            "threshold": line.threshold}  # fmt: skip
    where = {} if section is None else {"attribute": section.attribute, "group": group}
    yield hub.EvalResult(
        task_type=_TASKS.get(audited.task, audited.task.replace("_", "-") or "other"),
        task_name=audited.task or None,
        dataset_type=re.sub(r"[^A-Za-z0-9._-]+", "-", data).strip("-") or "unnamed",
        dataset_name=data if section is None else f"{data}, {section.attribute} = {group}",
        dataset_config=None if section is None else f"{section.attribute}={group}",
        dataset_args=where or None,
        metric_type=line.metric,
        metric_name=line.title,
        metric_value=found.value,
        metric_args={key: value for key, value in args.items() if value is not None},
    )
