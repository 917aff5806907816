"""A Hugging Face model card: facts of the user, results by group, and metadata that the Hub reads.

The metadata is made by ``huggingface_hub``'s own classes and read back by them. As it stands before
the first sentence, it is short: everyone, and the first page's groups on the main metric. The JSON
beside the card holds every result, that of a group under a data set configuration
``ATTRIBUTE=GROUP``. Sections as in the Hub's annotated model card, after Mitchell et al. (2019).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from isolux.cards._content import Content
from isolux.cards._document import Card, Part
from isolux.cards._facts import Facts, asks_of
from isolux.cards._hub import front_matter, hub_classes, licence_of
from isolux.cards._source import Source, cell_text, lines_shown, without_folders
from isolux.report.document import Estimate
from isolux.statements.lines import Line
from isolux.vocabulary.info import CardInfo, Reference

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
    asks=asks_of(
        developers="who developed the model",
        model_description="what the model is, and what it answers",
        model_version="which version of the model was audited",
        licence="the licence of the model",
        intended_use="what the model is meant for",
        out_of_scope="what the model is not meant for",
        training_data="which data the model was trained on",
        training_procedure="how the model was trained",
        recommendations="what users should do about these limits",
        environmental_impact="what training cost in energy and carbon",
        data_licence="the licence of the data it was tested on",
        contact="whom to write to",
    ),
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
    content = Content("model_card", source, facts)
    said, hub = content.said, hub_classes("a model card")
    details = said("model_description", "developers", "model_version", "licence", "contact")
    licence = () if content.licence else said("data_licence")
    short = _describe(content, hub, _main_results(content, hub))
    return content.card(
        *content.first_page(),
        Part("Model details", details),
        Part("Uses", said("intended_use", "out_of_scope")),
        Part("Bias, risks and limitations", (content.findings(), *said("recommendations"))),
        Part("Training", said("training_data", "training_procedure")),
        Part("Evaluation: data and people", (content.data_text(), *licence)),
        Part("Evaluation: metrics", (content.metric_table(),)),
        Part("Evaluation: results", (content.overall_table(), *content.group_tables())),
        Part("Environmental impact", said("environmental_impact")),
        metadata=front_matter(short, hub.ModelCard),
        data=_describe(content, hub, _all_results(content, hub)).to_dict(),
    )


def _describe(content: Content, hub: Any, results: Iterable[Any]) -> Any:
    listed = list(results)
    return hub.ModelCardData(
        model_name=without_folders(content.summary.audited.model) if listed else None,
        eval_results=listed or None,
        metrics=sorted({one.metric_type for one in listed}) or None,
        tags=["isolux", "results-by-group"],
        **licence_of(content.facts.text("licence")),
    )


def _main_results(content: Content, hub: Any) -> Iterator[Any]:
    """Give the first page's values: everyone's, and those of groups on the main metric alone."""
    sections, lines, most = content.shown_first()
    shown = [("", "", line, found) for line, found in content.summary.overall if line in lines]
    shown += [
        (one.attribute, f", {one.attribute} = {row.group}", one.main.line, row.estimate)
        for one in sections
        for row in one.main.rows[:most]
    ]
    for attribute, words, line, found in shown:
        for result in _result(content, hub, line, found):
            result.dataset_config = attribute or None
            result.metric_name += f"{words}: {cell_text(found, line.unit)}"
            result.metric_args = None
            yield result


def _all_results(content: Content, hub: Any) -> Iterator[Any]:
    """Give every value that stands: everyone's first, then each attribute's groups."""
    for line, found in content.summary.overall:
        yield from _result(content, hub, line, found)
    for section in content.summary.sections:
        for table in lines_shown(section):
            for row in table.rows:
                group = section.attribute, row.group
                yield from _result(content, hub, table.line, row.estimate, group)


def _result(
    content: Content, hub: Any, line: Line, found: Estimate, group: tuple[str, str] | None = None
) -> Iterator[Any]:
    if found.value is None:
        return
    audited = content.summary.audited
    data = without_folders(audited.dataset) or "unnamed"
    args = {
        "n_units": found.n_units,
        "n_clusters": found.n_clusters,
        "low": found.low,
        "high": found.high,
        "level": audited.level,
        "status": found.status,
        "label": line.label,
        "threshold": line.threshold,
    }
    of_group = (
        {}
        if group is None
        else {
            "dataset_config": "=".join(group),
            "dataset_args": dict(zip(("attribute", "group"), group, strict=True)),
        }
    )
    yield hub.EvalResult(
        task_type=_TASKS.get(audited.task, audited.task.replace("_", "-") or "other"),
        task_name=audited.task or None,
        dataset_type=re.sub(r"[^A-Za-z0-9._-]+", "-", data).strip("-") or "unnamed",
        dataset_name=data if group is None else f"{data}, {group[0]} = {group[1]}",
        metric_type=line.metric,
        metric_name=line.title,
        metric_value=found.value,
        metric_args={key: value for key, value in args.items() if value is not None},
        **of_group,
    )
