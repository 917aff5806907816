"""Datasets: one file each, with ``INFO`` and ``load(path, ...) -> Dataset``.

The first room of an audit: from files to the tables instances, attributes and images.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import polars as pl

from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.inputs import is_table_like
from isolux.datasets._clusters import cluster_by_requested_column, format_proposed_cluster_note
from isolux.datasets._image_frames import correct_turned_sizes, describe_unturned_images
from isolux.datasets._licence_terms import (
    TERMS_FILE,
    TERMS_FORMAT,
    check_training_is_licensed,
    replace_licence_terms_from_neighbours,
)
from isolux.io.paths import resolve_inside, to_path

__all__ = [
    "TERMS_FILE",
    "TERMS_FORMAT",
    "Purpose",
    "check_training_is_licensed",
    "cluster_by_requested_column",
    "describe_unturned_images",
    "format_proposed_cluster_note",
    "list_loader_options",
    "load",
    "load_with_open_clusters",
]

_TABLE_DATASET = "table"  # the one dataset that may be in memory
Purpose = Literal["evaluation", "training"]
"""What a dataset is loaded for."""


def load(
    name: str,
    path: str | Path | object,
    *,
    cluster: str | None = None,
    purpose: Purpose = "evaluation",
    images: str | Path | None = None,
    **settings: Any,
) -> Dataset:
    r"""Load a dataset by its name.

    Parameters
    ----------
    name : str
        One of ``isolux list datasets``, such as ``"table"`` or ``"fairface"``.
    path : str, Path or table
        The dataset's file or folder, as its loader says. ``"table"`` takes a table in memory too:
        a frame of polars, pandas, pyarrow or ``datasets``, or a mapping of names to columns.
    cluster : str, optional
        What was sampled independently: a word that the loader knows (``subject``, ``image``), a
        column of its instances or table, or an attribute. Not given: the loader's own choice.
    purpose : {"evaluation", "training"}
        What it is for. A dataset for evaluation alone is not loaded for training.
    images : str or Path, optional
        The folder that its pictures' paths start from. Default: looked for near the files that
        the loader reads and in three folders above them; no picture is opened here.
    **settings
        The loader's options (see ``list_loader_options``). One that is None is left to the loader.

    Returns
    -------
    Dataset
        Tables instances, attributes and images; what the loader decided stands in ``notes``;
        ``root`` is the pictures' folder, where one is found.

    Raises
    ------
    UnknownNameError
        When no dataset has that name.
    SpecError
        When the loader has no such option.
    FileError
        When there is no such folder of pictures; and whatever the loader finds wrong.
    LicenceError
        When it is loaded for training and its licence does not allow that.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,race\n1,Black\n2,White\n")
    ...     load("table", file).instances["instance_id"].to_list()
    ['1', '2']
    """
    dataset = load_with_open_clusters(name, path, purpose=purpose, images=images, **settings)
    return cluster_by_requested_column(dataset, cluster)


def load_with_open_clusters(
    name: str,
    path: str | Path | object,
    *,
    purpose: Purpose = "evaluation",
    images: str | Path | None = None,
    **settings: Any,
) -> Dataset:
    """Load a dataset as ``load`` does, whose clusters are still to be chosen."""
    if name != _TABLE_DATASET or not is_table_like(path):
        to_path(
            path,
            "a dataset's file or folder",
            hint='isolux.load("table", frame) takes a table'
            " in memory; isolux.audit(frame, by=…, target=…, prediction_column=…) audits one",
        )
    if purpose == "training":
        check_training_is_licensed(cast("DatasetInfo", registry.load_info("datasets", name)))
    given_settings = {key: setting for key, setting in settings.items() if setting is not None}
    option_names = list_loader_options(name)
    for key in given_settings:
        if key not in option_names:
            common_options = ("cluster", "purpose", "images")
            near = difflib.get_close_matches(key, [*option_names, *common_options], n=1, cutoff=0.5)
            raise SpecError(
                f"the dataset {name!r} has no option {key!r}",
                expected="one of " + ", ".join(option_names),
                hint=f"did you mean {near[0]!r}?" if near else None,
            )
    if images is not None and "pictures" in option_names:  # frames of videos, found by their names
        given_settings.setdefault("pictures", images)
    loaded = cast("Dataset", registry.load("datasets", name).load(path, **given_settings))
    terms = replace_licence_terms_from_neighbours(loaded.info, loaded.inputs)
    dataset = replace(loaded, info=terms)
    if purpose == "training":
        check_training_is_licensed(dataset.info)
    root_setting = given_settings.get("root")  # a table's, to whom it need not exist
    requested_root = (
        root_setting
        if images is None and root_setting is not None and Path(root_setting).is_dir()
        else images
    )
    root = find_image_root(dataset.images, dataset.inputs, requested_root)
    return correct_turned_sizes(replace(dataset, root=root))


def list_loader_options(dataset_name: str) -> tuple[str, ...]:
    """List the options that a dataset's loader takes in addition to its path.

    Examples
    --------
    >>> list_loader_options("fairface")
    ('id', 'repair_ages')
    """
    parameters = list(inspect.signature(registry.load("datasets", dataset_name).load).parameters)
    return tuple(parameters[1:])


# The folder that pictures' paths start from: the one that was named, or found near the labels.

_MAX_PARENT_LEVELS = 4  # FHIBE's table lies three folders below the release's root
_N_PROBED_IMAGES = 5  # pictures looked for: enough to know the folder, and quick on a network disk
_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"


def find_image_root(
    images: pl.DataFrame, inputs: Mapping[str, str], requested_root: str | Path | None
) -> str | None:
    """Find the folder of a dataset's pictures."""
    if requested_root is not None:
        base = Path(requested_root).expanduser()
        if not base.is_dir():
            raise FileError(
                "there is no such folder of pictures",
                expected="the folder that the pictures' paths start from",
                where=str(base),
            )
        return str(base.resolve())
    path_columns = [pl.col(c) for c in ("uri", "image_id") if c in images.columns]
    paths = (
        images.head(_N_PROBED_IMAGES).select(path=pl.coalesce(path_columns))["path"].drop_nulls()
    )
    paths = paths.filter(~paths.str.contains(_ADDRESS))
    for base in _iterate_candidate_image_roots(inputs):
        if any(_is_file_inside(base, path) for path in paths):
            return str(base)
    return None


def _iterate_candidate_image_roots(inputs: Mapping[str, str]) -> Iterator[Path]:
    listed_roots: set[Path] = set()
    for name in inputs:
        path = Path(name).expanduser().resolve()
        for base in (
            [path, *path.parents[:_MAX_PARENT_LEVELS]]
            if path.is_dir()
            else path.parents[:_MAX_PARENT_LEVELS]
        ):
            if base not in listed_roots:
                listed_roots.add(base)
                yield base


def _is_file_inside(folder: Path, path: str) -> bool:
    try:
        return resolve_inside(folder, path).is_file()
    except (FileError, OSError):
        return False
