"""``isolux describe``: what one or several datasets hold, before any model is judged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl

__all__ = ["describe"]


def describe(
    data: Annotated[
        list[str], typer.Argument(help="NAME:PATH, such as table:people.csv; several: side by side")
    ],
    *,
    by: Annotated[
        list[str] | None,
        typer.Option(help='attribute or intersection, "race*gender"; none: every attribute'),
    ] = None,
    derive: Annotated[
        list[str] | None, typer.Option(help="also count by a computed attribute (box_size)")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help='whom to count: "age>=20"')] = None,
    withdrawn: Annotated[
        str | None, typer.Option(help="file with the ids of people who withdrew: never counted")
    ] = None,
    allow_unmatched: Annotated[
        bool,
        typer.Option("--allow-unmatched", help="go on where an id of --withdrawn names no one"),
    ] = False,
    images: Annotated[
        str | None, typer.Option(help="the folder of the pictures, for --derive luminance and ita")
    ] = None,
    bins: Annotated[
        list[str] | None, typer.Option(help='"age=edges:18,30,45" or "income=quantile:4"')
    ] = None,
    votes: Annotated[
        str, typer.Option(help="any, any+unknown, majority, top, top-or-none, at-least:K")
    ] = "any",
    group: Annotated[
        list[str] | None, typer.Option(help='unite values: "gender:Female=Female,woman"')
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(help="OLD=NEW: call an attribute as other datasets do, side by side"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="table of attribute, value, share to hold the groups against"),
    ] = None,
    embeddings: Annotated[
        list[str] | None,
        typer.Option(help="vectors of people or images, one file a dataset: adds diversity"),
    ] = None,
    embedding_option: Annotated[
        list[str] | None, typer.Option(help="how to read them: ids=FILE, id=COLUMN, column=COLUMN")
    ] = None,
    captions: Annotated[
        list[str] | None,
        typer.Option(help="captions of images, one file a dataset: adds approximate geography"),
    ] = None,
    data_option: Annotated[
        list[str] | None, typer.Option(help="a setting of the dataset's own, NAME=VALUE")
    ] = None,
    id: Annotated[str | None, typer.Option(help="the column that identifies a row")] = None,  # noqa: A002
    cluster: Annotated[
        str | None, typer.Option(help="what was sampled independently (subject); none: rows")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="parts several values in one cell")] = None,
    seed: Annotated[int, typer.Option(help="of pairs, subjects and the map, where drawn")] = 0,
    out: Annotated[Path | None, typer.Option(help="an HTML page to write, with figures")] = None,
) -> None:
    """Count people, images and subjects by attribute, intersection, size and crowding.

    People are the dataset's instances; of a set of objects --only chooses who is a person
    (--only category=pedestrian). Several datasets stand side by side, with sampling intervals.
    """
    from isolux.cli._people import groupings_over, load_only, renamed, show_wide
    from isolux.report.description import write_description
    from isolux.verbs.describe import describe as described
    from isolux.verbs.describe.balance import read_target
    from isolux.vocabulary.spec import parse_spec

    held = None if target is None else read_target(target)
    said = {
        "by": by or (), "derive": derive or (), "bins": bins or (), "votes": votes,
        "group": group or (), "data_option": data_option or (), "id": id, "cluster": cluster,
        "separator": separator, "withdrawn": withdrawn, "allow_unmatched": allow_unmatched,
        "images": images,
    }  # fmt: skip
    specs = {name: parse_spec({"data": text, **said}) for name, text in _names(data).items()}
    texts = _one_each(captions, list(specs), "--captions")
    files = _one_each(embeddings, list(specs), "--embeddings")
    datasets = {name: load_only(spec, only or [], texts.get(name)) for name, spec in specs.items()}
    datasets = renamed(datasets, rename or [])
    vectors = {name: _vectors(path, embedding_option or []) for name, path in files.items()}
    first = next(iter(specs.values()))
    places = ["caption_country", "caption_region"] if texts else []
    by_all = [*(by or []), *([*(derive or []), *places] if by else [])]
    found = described(
        datasets, by_all, groupings_over(first, datasets, by_all),
        target=held, embeddings=vectors, seed=seed,
    )  # fmt: skip
    for caption, table in found.tables.items():
        show_wide(caption, table)
    typer.echo("")
    for note in found.notes:
        typer.echo(f"note: {note}")
    if out is not None:
        infos = {name: dataset.info for name, dataset in datasets.items()}
        typer.echo(f"page: {write_description(out, found.tables, infos, found.notes, found.drawn)}")


def _names(data: list[str]) -> dict[str, str]:
    """Name each dataset by its loader where that tells them apart, else by its file."""
    loaders = [text.partition(":")[0] for text in data]
    files = [Path(text.partition(":")[2]).name for text in data]
    both = [f"{loader}:{file}" for loader, file in zip(loaders, files, strict=True)]
    for names in (loaders, files, both, data):
        if len(set(names)) == len(data):
            return dict(zip(names, data, strict=True))
    from isolux.vocabulary.errors import SpecError

    twice = next(text for text, n in Counter(data).items() if n > 1)
    raise SpecError("a dataset is named twice", expected="each once", found=repr(twice))


def _one_each(files: list[str] | None, names: list[str], flag: str) -> dict[str, str]:
    """Give each dataset its file: as many as there are datasets, in their order."""
    if not files:
        return {}
    if len(files) != len(names):
        from isolux.vocabulary.errors import SpecError

        raise SpecError(
            f"{flag} does not name a file for each dataset",
            expected=f"{len(names)}, in the order of the datasets",
            found=f"{len(files)}",
        )
    return dict(zip(names, files, strict=True))


def _vectors(path: str, options: list[str]) -> pl.DataFrame:
    from isolux.predictions import read_outputs
    from isolux.vocabulary import registry
    from isolux.vocabulary.plugin_options import read_options

    settings = read_options(
        registry.load("predictions", "embeddings").read, options,
        owner="the format embeddings", flag="--embedding-option", hidden=("model",),
    )  # fmt: skip
    return read_outputs(path, format="embeddings", **settings)
