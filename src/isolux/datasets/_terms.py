"""Terms that a dataset carries in a file of its own, beside whatever is read of it.

``isolux curate publish`` writes ``dataset.json``: what the dataset is called, its licence, and
whether a model may be trained on it. Every loader that reads a file of that folder is held to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import LicenceError, SpecError
from isolux.vocabulary.info import DatasetInfo

TERMS, FORMAT = "dataset.json", "isolux curated dataset"


def read_terms(path: Path) -> dict[str, Any]:
    """Read the terms of a published dataset."""
    told = read_mapping(path)
    if told.get("format") != FORMAT or not isinstance(told.get("training"), bool):
        raise SpecError(
            "this is not a dataset written by `isolux curate publish`",
            expected=f'"format": "{FORMAT}", and "training": true or false',
            found=repr(told.get("format")),
            where=str(path),
        )
    return told


def with_terms(info: DatasetInfo, told: dict[str, Any], path: Path) -> DatasetInfo:
    """Put a release's own name, licence and terms in place of its loader's."""
    return replace(
        info,
        title=str(told.get("name") or info.title),
        licence=str(told.get("licence") or f"stated in the dataset's own {TERMS}"),
        training_allowed=bool(told["training"]),
        training_terms=str(told.get("terms") or ""),
        terms_file=str(path),
    )


def with_terms_beside(info: DatasetInfo, files: Iterable[str]) -> DatasetInfo:
    """Hold any loader to the terms that lie beside a file that it read."""
    for folder in dict.fromkeys(Path(file).parent for file in files):
        path = folder / TERMS
        if path.is_file():
            try:
                told = read_terms(path)
            except SpecError:
                continue  # another file of that name
            if not told["training"]:
                return with_terms(info, told, path)
    return info


def refuse_training(info: DatasetInfo) -> None:
    """Refuse a dataset whose licence does not let a model be trained on it."""
    if info.training_allowed is not False:
        return
    said = [info.licence] + ([f'"{info.training_terms}"'] if info.training_terms else [])
    source = info.references[0] if info.references else None
    raise LicenceError(
        f"{info.title} may not be used to train a model",
        expected="a dataset whose licence allows training",
        found=": ".join(said),
        where=info.terms_file or (f"{source.citation} {source.url}".strip() if source else None),
        hint="evaluate with it, and train on other data",
    )
