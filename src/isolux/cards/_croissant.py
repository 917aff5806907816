"""What data sets' papers ask for, and Croissant metadata, validated by ``mlcroissant``."""

from __future__ import annotations

import datetime as dt
import logging
import warnings
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from isolux.cards._facts import CardFacts, build_fact_fields
from isolux.core.errors import SpecError
from isolux.core.extras import import_optional

DATASET_FACTS = {
    ask.key: ask
    for ask in build_fact_fields(
        dataset_name="the name of the data set",
        dataset_description="what the data set is",
        dataset_url="where the data set is described",
        dataset_persons="persons who made the data set",
        dataset_organisations="organisations that made the data set",
        dataset_published="the day it was published, as 2026-11-22",
        dataset_version="the version of the data set",
        data_licence="the licence of the data it was tested on",
        dataset_citation="how to cite the data set",
        collection="how the data were collected",
        preprocessing="how the data were cleaned and changed",
        annotation="how people and pictures were annotated",
        annotators="who the annotators are",
        consent="whether the people agreed, and how they withdraw",
        sensitive_information="which personal or sensitive information the data hold",
        dataset_biases="known biases of the data",
        known_limitations="known limitations of the data",
        dataset_uses="what the data are meant for",
        social_impact="what the data may do to people",
        maintenance="how the data are maintained",
    )
}
"""What a data set's papers ask for."""
CONFORMS_TO = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".parquet": "application/vnd.apache.parquet",
    ".zip": "application/zip",
    ".tar": "application/x-tar",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".txt": "text/plain",
}
_RAI_TEXT_KEYS = {
    "data_collection": "collection",
    "data_social_impact": "social_impact",
    "data_release_maintenance_plan": "maintenance",
}
_RAI_LIST_KEYS = {
    "data_preprocessing_protocol": "preprocessing",
    "data_annotation_protocol": "annotation",
    "annotator_demographics": "annotators",
    "data_use_cases": "dataset_uses",
}


def build_rai_properties(facts: CardFacts) -> dict[str, Any]:
    """Give the properties of the RAI vocabulary that a user stated as facts."""
    return {
        **{name: facts.joined_text(key) for name, key in _RAI_TEXT_KEYS.items()},
        **{name: list(facts.texts.get(key, ())) for name, key in _RAI_LIST_KEYS.items()},
    }


def guess_media_type(file_name: str) -> str:
    """Give a file's media type by its suffix.

    Examples
    --------
    >>> guess_media_type("people.csv")
    'text/csv'
    """
    return _MEDIA_TYPES.get(PurePath(file_name).suffix.lower(), "application/octet-stream")


def parse_date_or_none(text: str) -> dt.datetime | None:
    """Read a day."""
    if not text:
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise SpecError(
            "dataset_published is not a date", expected="a day such as 2026-11-22", found=text
        ) from error


def build_validated_croissant_json(describe: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any]:
    """Make the JSON-LD of what a caller describes; it is read back and validated."""
    mlc = import_optional(
        "mlcroissant", package="mlcroissant", extra="cards", purpose="Croissant metadata"
    )
    absl_logger = logging.getLogger("absl")
    level = absl_logger.level
    absl_logger.setLevel(logging.ERROR)  # it prints what is only recommended; the card names that
    try:
        with warnings.catch_warnings():
            # Its parser of JSON-LD warns of itself.
            warnings.simplefilter("ignore", DeprecationWarning)
            properties = {
                key: property_value
                for key, property_value in describe(mlc).items()
                if property_value
            }
            json_ld = mlc.Metadata(**properties).to_json()
            mlc.Dataset(jsonld=json_ld)  # reads it back and validates it
    except (mlc.ValidationError, ValueError) as error:
        raise SpecError(
            "mlcroissant refuses this metadata",
            found=" ".join(str(error).split())[:300],
            hint="change the fact that it names",
        ) from error
    finally:
        absl_logger.setLevel(level)
    plain_json: dict[str, Any] = _to_json_types(json_ld)
    return plain_json


def _to_json_types(node: Any) -> Any:
    """Turn what mlcroissant gives into JSON's own types."""
    if isinstance(node, dict):
        return {str(key): _to_json_types(child) for key, child in node.items()}
    if isinstance(node, list | tuple):
        return [_to_json_types(child) for child in node]
    return node if isinstance(node, int | float | bool | None) else str(node)
