"""``isolux.describe``: what one or several datasets hold, before any model is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from isolux.api.describe.balance import read_target
from isolux.api.describe.counts import Description, describe_datasets
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.plugin_options import parse_option_assignments
from isolux.core.spec import split_intersection
from isolux.people.sources import (
    build_groupings_over,
    load_people_or_take_dataset,
    rename_attributes,
)
from isolux.predictions import read_outputs

_LOCATION_ATTRIBUTES = ("caption_country", "caption_region")
DataSource = Dataset | str | Path


def describe(
    data: DataSource | Sequence[DataSource] | Mapping[str, DataSource],
    *,
    by: Sequence[str] = (),
    derive: Sequence[str] = (),
    only: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    images: str | None = None,
    bins: Sequence[str] = (),
    votes: str = "any",
    group: Sequence[str] = (),
    rename: Sequence[str] = (),
    target: str | None = None,
    embeddings: Sequence[str] = (),
    embedding_option: Sequence[str] = (),
    captions: Sequence[str] = (),
    data_option: Sequence[str] = (),
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    cluster: str | None = None,
    separator: str | None = None,
    seed: int = 0,
) -> Description:
    r"""Count people, images and subjects by attribute, intersection, size and crowding.

    People are the dataset's instances; of a set of objects ``only`` chooses who is a person
    (``category=pedestrian``). Several datasets stand side by side, with sampling intervals.

    Parameters
    ----------
    data : Dataset, str, or several of them
        Datasets, or NAME:PATH (``table:people.csv``); as a mapping, with the names to call them.
    by : sequence of str
        Attribute or intersection, ``"race*gender"``; default: every attribute (for a table with
        more than 50 columns, the first 50).
    derive : sequence of str
        Also count by a computed attribute (``box_size``).
    only : sequence of str
        Who is counted: ``"age>=20"``.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are never counted.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    images : str, optional
        The folder of the pictures, for ``luminance`` and ``ita`` of ``derive``.
    bins : sequence of str
        How to group many values into bins: ``"age=edges:18,30,45"``, ``"income=quantile:4"`` or
        ``"city=top:50"``.
    votes : str
        Which of several values counts: any, any+unknown, majority, top, top-or-none, at-least:K.
    group : sequence of str
        Merge values: ``"gender:Female=Female,woman"``.
    rename : sequence of str
        OLD=NEW: rename an attribute, to match other datasets shown side by side.
    target : str, optional
        Table of attribute, value and share to compare the groups with.
    embeddings : sequence of str
        Vectors of people or images, one file per dataset: adds diversity.
    embedding_option : sequence of str
        How to read them: ids=FILE, id=COLUMN, column=COLUMN.
    captions : sequence of str
        Captions of images, one file per dataset: adds approximate geography.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    id : str, optional
        The column that identifies a row.
    cluster : str, optional
        What was sampled independently (``subject``); default: the dataset's own, or each row.
    separator : str, optional
        What separates several values in one cell.
    seed : int
        Seed for pairs, subjects and the map, if they are drawn at random.

    Returns
    -------
    Description
        ``.tables`` by caption, ``.notes``, ``.report(out)`` for a page with figures.

    Raises
    ------
    IsoluxError
        What is wrong with the files or the settings, named.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id,light\n1,day\n2,day\n3,night\n")
    ...     describe(f"table:{file}", by=["light"]).tables["By light"]["people"].to_list()
    [2, 1]
    """
    target_shares = None if target is None else read_target(target)
    sources = _name_datasets(data)
    if images is not None and not derive:
        raise _build_unused_setting_error("images", "--derive")
    if cluster is not None and withdrawn is None and len(sources) == 1:
        raise _build_unused_setting_error("cluster", "several datasets, or with --withdrawn")
    texts = _assign_files_to_datasets(captions, list(sources), "--captions")
    files = _assign_files_to_datasets(embeddings, list(sources), "--embeddings")
    shares = [] if target_shares is None else [*target_shares.shares]
    mentioned = [text.partition("=")[0].partition(":")[0] for text in (*bins, *group, *rename)]
    first_attributes = [
        attribute for text in (*mentioned, *shares) for attribute in split_intersection(text)
    ]
    datasets = {
        name: load_people_or_take_dataset(
            source,
            by,
            captions=texts.get(name),
            derive=derive,
            only=only,
            withdrawn=withdrawn,
            allow_unmatched=allow_unmatched,
            images=images,
            data_option=data_option,
            id=id,
            cluster=cluster,
            separator=separator,
            required_columns=first_attributes,
        )
        for name, source in sources.items()
    }
    datasets = rename_attributes(datasets, rename)
    vectors = {name: _read_embeddings(path, embedding_option) for name, path in files.items()}
    locations = _LOCATION_ATTRIBUTES if texts else ()
    by_all = [*by, *((*derive, *locations) if by else ())]
    groupings = build_groupings_over(
        datasets, by_all, bins=tuple(bins), votes=votes, group=tuple(group)
    )
    return describe_datasets(
        datasets, by_all, groupings, target=target_shares, embeddings=vectors, seed=seed
    )


def _build_unused_setting_error(setting: str, required_flags: str) -> SpecError:
    return SpecError(
        f"--{setting} would do nothing",
        expected=f"it with {required_flags}",
        found=f"--{setting} without",
    )


def _name_datasets(
    sources: DataSource | Sequence[DataSource] | Mapping[str, DataSource],
) -> dict[str, DataSource]:
    """Name each dataset by its loader if that is unique, else by its file."""
    if isinstance(sources, Mapping):
        return dict(sources)
    source_list: list[DataSource] = (
        [sources] if isinstance(sources, Dataset | str | Path) else list(sources)
    )
    texts = [source.name if isinstance(source, Dataset) else str(source) for source in source_list]
    loaders = [text.partition(":")[0] for text in texts]
    files = [Path(text.partition(":")[2]).name for text in texts]
    loaders_and_files = [f"{loader}:{file}" for loader, file in zip(loaders, files, strict=True)]
    for names in (loaders, files, loaders_and_files, texts):
        if len(set(names)) == len(source_list):
            return dict(zip(names, source_list, strict=True))
    duplicate = next(text for text, n in Counter(texts).items() if n > 1)
    raise SpecError("a dataset is named twice", expected="each once", found=repr(duplicate))


def _assign_files_to_datasets(
    files: Sequence[str], names: Sequence[str], flag: str
) -> dict[str, str]:
    """Give each dataset its file: as many as there are datasets, in their order."""
    if files and len(files) != len(names):
        raise SpecError(
            f"{flag} does not name a file for each dataset",
            expected=f"{len(names)}, in the order of the datasets",
            found=f"{len(files)}",
        )
    return dict(zip(names, files, strict=True)) if files else {}


def _read_embeddings(path: str, options: Sequence[str]) -> pl.DataFrame:
    settings = parse_option_assignments(
        registry.load("predictions", "embeddings").read,
        options,
        owner="the format embeddings",
        flag="--embedding-option",
        hidden=("model",),
    )
    return read_outputs(path, format="embeddings", **settings)
