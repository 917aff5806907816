"""Terms that a dataset carries in a file of its own, beside whatever is read of it.

``isolux curate publish`` writes ``dataset.json``: what the dataset is called, its licence, and
whether a model may be trained on it. Every loader that reads a file of that folder is held to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from isolux.core.errors import LicenceError, SpecError
from isolux.core.info import DatasetInfo
from isolux.io.settings_files import read_mapping

TERMS_FILE, TERMS_FORMAT = "dataset.json", "isolux curated dataset"


def read_licence_terms(path: Path) -> dict[str, Any]:
    """Read the terms of a published dataset."""
    terms = read_mapping(path)
    if terms.get("format") != TERMS_FORMAT or not isinstance(terms.get("training"), bool):
        raise SpecError(
            "this is not a dataset written by `isolux curate publish`",
            expected=f'"format": "{TERMS_FORMAT}", and "training": true or false',
            found=repr(terms.get("format")),
            where=str(path),
        )
    return terms


def replace_licence_terms(
    dataset_info: DatasetInfo, terms: dict[str, Any], path: Path
) -> DatasetInfo:
    """Put a release's own name, licence and terms in place of its loader's."""
    return replace(
        dataset_info,
        title=str(terms.get("name") or dataset_info.title),
        licence=str(terms.get("licence") or f"stated in the dataset's own {TERMS_FILE}"),
        training_allowed=bool(terms["training"]),
        training_terms=str(terms.get("terms") or ""),
        terms_file=str(path),
    )


def replace_licence_terms_from_neighbours(
    dataset_info: DatasetInfo, files: Iterable[str]
) -> DatasetInfo:
    """Apply the terms in a ``dataset.json`` next to any file that a loader read."""
    for folder in dict.fromkeys(Path(file).parent for file in files):
        path = folder / TERMS_FILE
        if path.is_file():
            try:
                terms = read_licence_terms(path)
            except SpecError:
                continue  # another file of that name
            if not terms["training"]:
                return replace_licence_terms(dataset_info, terms, path)
    return dataset_info


def check_training_is_licensed(dataset_info: DatasetInfo) -> None:
    """Refuse a dataset whose licence does not let a model be trained on it."""
    if dataset_info.training_allowed is not False:
        return
    licence_texts = [dataset_info.licence] + (
        [f'"{dataset_info.training_terms}"'] if dataset_info.training_terms else []
    )
    source = dataset_info.references[0] if dataset_info.references else None
    raise LicenceError(
        f"{dataset_info.title} may not be used to train a model",
        expected="a dataset whose licence allows training",
        found=": ".join(licence_texts),
        where=dataset_info.terms_file
        or (f"{source.citation} {source.url}".strip() if source else None),
        hint="evaluate with it, and train on other data",
    )
