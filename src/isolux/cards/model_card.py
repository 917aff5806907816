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

from isolux.cards._content import CardContent
from isolux.cards._document import Card, CardSection
from isolux.cards._facts import CardFacts, build_fact_fields
from isolux.cards._hub import (
    format_validated_front_matter,
    import_huggingface_hub,
    to_hub_licence_fields,
)
from isolux.cards._run_source import (
    RunSource,
    choose_overall_tables,
    format_value_interval_n,
    strip_absolute_folders,
)
from isolux.core.info import CardInfo, Reference
from isolux.report.document import Estimate
from isolux.statements.metric_lines import MetricLine

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
    facts=build_fact_fields(
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

_HUB_TASKS = {
    "classification": "image-classification",
    "detection": "object-detection",
    "face_detection": "object-detection",
    "segmentation": "image-segmentation",
    "keypoints": "keypoint-detection",
    "face_parsing": "image-segmentation",
}
"""The Hub's words for our tasks; others go by their own name."""


def card(source: RunSource, facts: CardFacts) -> Card:
    """Fill a model card.

    Parameters
    ----------
    source : RunSource
        A finished run.
    facts : CardFacts
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
    >>> [ask.key for ask in INFO.facts][:2]
    ['developers', 'model_description']
    """
    content = CardContent("model_card", source, facts)
    stated_facts, hub = content.stated_facts, import_huggingface_hub("a model card")
    details = stated_facts("model_description", "developers", "model_version", "licence", "contact")
    licence = () if content.licence else stated_facts("data_licence")
    main_metadata = _build_model_card_metadata(
        content, hub, _build_first_page_results(content, hub)
    )
    return content.build_card(
        *content.build_first_page_sections(),
        CardSection("Model details", details),
        CardSection("Uses", stated_facts("intended_use", "out_of_scope")),
        CardSection(
            "Bias, risks and limitations",
            (content.build_findings_block(), *stated_facts("recommendations")),
        ),
        CardSection("Training", stated_facts("training_data", "training_procedure")),
        CardSection("Evaluation: data and people", (content.build_data_paragraph(), *licence)),
        CardSection("Evaluation: metrics", (content.build_metric_definition_table(),)),
        CardSection(
            "Evaluation: results", (content.build_overall_table(), *content.build_group_tables())
        ),
        CardSection("Environmental impact", stated_facts("environmental_impact")),
        metadata=format_validated_front_matter(main_metadata, hub.ModelCard),
        data=_build_model_card_metadata(content, hub, _build_all_results(content, hub)).to_dict(),
    )


def _build_model_card_metadata(content: CardContent, hub: Any, results: Iterable[Any]) -> Any:
    result_list = list(results)
    return hub.ModelCardData(
        model_name=strip_absolute_folders(content.summary.audited.model) if result_list else None,
        eval_results=result_list or None,
        metrics=sorted({hub_result.metric_type for hub_result in result_list}) or None,
        tags=["isolux", "results-by-group"],
        **to_hub_licence_fields(content.facts.joined_text("licence")),
    )


def _build_first_page_results(content: CardContent, hub: Any) -> Iterator[Any]:
    """Give the first page's values: everyone's, and those of groups on the main metric alone."""
    sections, lines, max_rows = content.choose_first_page_content()
    shown_values = [
        ("", "", line, estimate) for line, estimate in content.summary.overall if line in lines
    ]
    shown_values += [
        (section.attribute, f", {section.attribute} = {row.group}", section.main.line, row.estimate)
        for section in sections
        for row in section.main.rows[:max_rows]
    ]
    for attribute, words, line, estimate in shown_values:
        for hub_result in _build_hub_results(content, hub, line, estimate):
            hub_result.dataset_config = attribute or None
            hub_result.metric_name += f"{words}: {format_value_interval_n(estimate, line.unit)}"
            hub_result.metric_args = None
            yield hub_result


def _build_all_results(content: CardContent, hub: Any) -> Iterator[Any]:
    """Give every value that stands: everyone's first, then each attribute's groups."""
    for line, estimate in content.summary.overall:
        yield from _build_hub_results(content, hub, line, estimate)
    for section in content.summary.sections:
        for table in choose_overall_tables(section):
            for row in table.rows:
                group = section.attribute, row.group
                yield from _build_hub_results(content, hub, table.line, row.estimate, group)


def _build_hub_results(
    content: CardContent,
    hub: Any,
    line: MetricLine,
    estimate: Estimate,
    group: tuple[str, str] | None = None,
) -> Iterator[Any]:
    if estimate.value is None:
        return
    audited = content.summary.audited
    data_name = strip_absolute_folders(audited.dataset) or "unnamed"
    arguments = {
        "n_units": estimate.n_units,
        "n_clusters": estimate.n_clusters,
        "low": estimate.low,
        "high": estimate.high,
        "level": audited.level,
        "status": estimate.status,
        "label": line.label,
        "threshold": line.threshold,
    }
    group_arguments = (
        {}
        if group is None
        else {
            "dataset_config": "=".join(group),
            "dataset_args": dict(zip(("attribute", "group"), group, strict=True)),
        }
    )
    yield hub.EvalResult(
        task_type=_HUB_TASKS.get(audited.task, audited.task.replace("_", "-") or "other"),
        task_name=audited.task or None,
        dataset_type=re.sub(r"[^A-Za-z0-9._-]+", "-", data_name).strip("-") or "unnamed",
        dataset_name=data_name if group is None else f"{data_name}, {group[0]} = {group[1]}",
        metric_type=line.metric,
        metric_name=line.title,
        metric_value=estimate.value,
        metric_args={key: argument for key, argument in arguments.items() if argument is not None},
        **group_arguments,
    )
