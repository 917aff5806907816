"""``isolux export``: people, their groups and scores in another program's format, to look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from isolux.vocabulary.containers import Dataset

__all__ = ["export"]

_LOOK = """to look at them:
  pip install fiftyone
  python -c 'import sys, fiftyone as fo
  seen = fo.Dataset.from_dir(sys.argv[1], fo.types.FiftyOneDataset)
  seen.add_dynamic_sample_fields(); fo.launch_app(seen).wait()' {folder}"""


def export(
    data: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="a run directory, whose scores come along; or NAME:PATH"
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="the folder to make")],
    to: Annotated[str, typer.Option(help="the format: fiftyone")] = "fiftyone",
    images: Annotated[
        Path | None, typer.Option(help="the folder of the pictures, which the export then names")
    ] = None,
    masks: Annotated[bool, typer.Option("--masks/--no-masks", help="write masks")] = True,
    data_option: Annotated[
        list[str] | None, typer.Option(help="of NAME:PATH: a setting of the dataset's, NAME=VALUE")
    ] = None,
) -> None:
    """Write people, with their groups and what a model scored on each, for FiftyOne to show.

    Of a run: everybody who was judged, their attributes (computed ones too), and each score as a
    field, so that one can sort by it and filter by group. Pictures stay where they are.
    """
    from isolux.io.atomic import refuse_existing

    saver = _saver(to)
    refuse_existing(out, overwrite=False)
    if Path(data).expanduser().is_dir():
        dataset, scores = _of_run(data, data_option or [])
    else:
        dataset, scores = _of_data(data, data_option or []), None
    folder = saver(dataset, out, images=images, scores=scores, masks=masks)
    people = dataset.instances
    made = f"{people.height:,} people of {people['image_id'].n_unique():,} images"
    if scores is not None:
        n = scores.select("model", "metric", "label", "threshold").n_unique()
        made += f", {n:,} score(s) each"
    typer.echo(made)
    typer.echo(f"{to}: {folder}")
    if to == "fiftyone":
        typer.echo(_LOOK.format(folder=folder))


def _saver(name: str) -> Any:
    from isolux.vocabulary import registry
    from isolux.vocabulary.errors import UnknownNameError

    if name not in registry.names("datasets") or name != "fiftyone":
        raise UnknownNameError("format to export to", name, ["fiftyone"])
    return registry.load("datasets", name).save


def _of_data(data: str, options: list[str]) -> Dataset:
    from isolux.people.loading import load_people
    from isolux.vocabulary.spec import parse_spec

    return load_people(parse_spec({"data": data, "data_option": options}).people)


def _of_run(path: str, options: list[str]) -> tuple[Dataset, pl.DataFrame]:
    """Load a run's people again, with its computed attributes, and its scores of people."""
    import polars as pl

    from isolux.io import run_directory
    from isolux.people.loading import judged_people
    from isolux.vocabulary.errors import SpecError
    from isolux.vocabulary.spec import recorded_spec

    if options:
        raise SpecError("a run says how its dataset is loaded", found="--data-option", where=path)
    run = run_directory.load(path)
    said = run.record.get("spec") or {}
    if ":" not in str(said.get("data") or ""):
        raise SpecError(
            "this run does not say which dataset it is about",
            expected="a run of `isolux audit NAME:PATH`",
            found=repr(said.get("data")),
            where=path,
        )
    dataset = judged_people(recorded_spec(run.record))
    scores = run.scores.filter(pl.col("unit_kind") == "instance")
    # Whoever has withdrawn is in none of a run's tables, and so is not in what is shown either.
    tables = [scores, *(t for t in run.evidence.values() if "unit_id" in t.columns)]
    judged = pl.concat([t.select("unit_id") for t in tables])["unit_id"].unique()
    people = dataset.instances.filter(pl.col("instance_id").is_in(judged.implode()))
    seen = people["image_id"].unique().implode()
    known = dataset.attributes["attribute"].unique().implode()
    computed = run.attributes.filter(~pl.col("attribute").is_in(known))
    shown = replace(
        dataset,
        instances=people,
        images=dataset.images.filter(pl.col("image_id").is_in(seen)),
        attributes=pl.concat([dataset.attributes, computed], how="diagonal_relaxed"),
    )
    return shown, scores
