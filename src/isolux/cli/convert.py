"""``isolux convert``: a model's output in any format to Parquet, which then loads at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isolux.cli._flags import given

__all__ = ["convert"]


def convert(
    path: Annotated[str, typer.Argument(metavar="IN", help="a file or folder of model output")],
    *,
    out: Annotated[Path, typer.Option(help="the Parquet file to write")],
    format: Annotated[  # noqa: A002  (the flag is called --format)
        str | None, typer.Option(help="one of `isolux list formats`; found out where not given")
    ] = None,
    model: Annotated[str | None, typer.Option(help="the model's name; else the file's")] = None,
    kind: Annotated[
        str | None, typer.Option(help="of detections: boxes, masks or keypoints")
    ] = None,
    categories: Annotated[
        str | None, typer.Option(help="COCO annotations that name the categories")
    ] = None,
    pixel_inclusive: Annotated[
        bool | None,
        typer.Option("--pixel-inclusive", help="Scalabel's x2, y2 are the last pixel of the box"),
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="of a NumPy array of embeddings: the file of their ids")
    ] = None,
    id: Annotated[str | None, typer.Option(help="of a table: the column of ids")] = None,  # noqa: A002
    column: Annotated[
        str | None, typer.Option(help="of a table: the column of answers or vectors")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="of a table of labels: the column of scores")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="of a table of labels: scores run from 0 to this")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the file")] = False,
) -> None:
    """Write a model's boxes, masks, keypoints, embeddings or labels as Parquet."""
    from isolux.io.atomic import write_parquet
    from isolux.predictions import read_outputs

    _refuse_out(out, path, overwrite=overwrite)
    options: dict[str, Any] = given(
        {
            "kind": kind,
            "categories": categories,
            "pixel_inclusive": pixel_inclusive,
            "ids": ids,
            "id": id,
            "column": column,
            "score": score,
            "scale": scale,
        }
    )
    frame = read_outputs(path, format=format, model=model, **options)
    target = write_parquet(out, frame)
    units = "image_id" if "image_id" in frame.columns else "instance_id"
    models = ", ".join(frame["model"].unique(maintain_order=True).to_list()[:5])
    what = "images" if units == "image_id" else "units"
    typer.echo(
        f"{frame.height:,} rows of {frame[units].n_unique():,} {what}"
        + (f", {models}" if models else "")
    )
    typer.echo(f"predictions: {target}")


def _refuse_out(out: Path, source: str, *, overwrite: bool) -> None:
    """Refuse a place that could not be written, before minutes of reading."""
    from isolux.io.frames import FORMATS
    from isolux.vocabulary.errors import OutputError

    target = out.expanduser()
    if not target.name.lower().endswith(FORMATS["parquet"]):
        raise OutputError(
            "only Parquet is written",
            expected="a name that ends in .parquet",
            found=repr(out.name),
        )
    if target.is_dir():
        raise OutputError("this path is a folder", expected="a file's path", where=str(target))
    if target.exists() and not overwrite:
        raise OutputError(
            "this file exists already",
            expected="a path where nothing is",
            where=str(target),
            hint="choose another path, or replace it with --overwrite",
        )
    read = Path(source).expanduser()
    if target.exists() and read.exists() and target.samefile(read):
        raise OutputError(
            "this is the file that is to be read", where=str(target), hint="choose another path"
        )
    if not target.parent.is_dir():
        raise OutputError(
            "the folder to write to does not exist", where=str(target), hint="make it first"
        )
