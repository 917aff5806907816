"""``isolux convert``: a model's output in any format to Parquet, which then loads at once."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from isolux.cli import document
from isolux.cli.streams import say

__all__ = ["convert"]


def convert(
    path: str,
    *,
    out: Path,
    format: str | None = None,  # noqa: A002  (the flag is called --format)
    model: str | None = None,
    kind: Literal["boxes", "masks", "keypoints"] | None = None,
    categories: str | None = None,
    ids: str | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    column: str | None = None,
    score: str | None = None,
    scale: float | None = None,
    overwrite: bool = False,
) -> None:
    """Write a model's boxes, masks, keypoints, embeddings or labels as Parquet.

    Parameters
    ----------
    path : str
        A file or folder of model output.
    out : Path
        The Parquet file to write.
    format : str, optional
        One of `isolux list formats`; default: recognised.
    model : str, optional
        The model's name; default: the name in the file, or else the file's name.
    kind : {"boxes", "masks", "keypoints"}, optional
        For detections: what they are.
    categories : str, optional
        COCO annotations that name the categories.
    ids : str, optional
        For a NumPy array of embeddings: the file of their ids.
    id : str, optional
        For a table: the column of ids.
    column : str, optional
        For a table: the column of answers or vectors.
    score : str, optional
        For a table of labels: the column of scores.
    scale : float, optional
        For a table of labels: scores run from 0 to this.
    overwrite : bool
        Replace the file.
    """
    from isolux.cli._flags import given
    from isolux.io.atomic import write_parquet
    from isolux.predictions import read_predictions

    _refuse_out(out, path, overwrite=overwrite)
    options = given(
        {
            "kind": kind,
            "categories": categories,
            "ids": ids,
            "id": id,
            "column": column,
            "score": score,
            "scale": scale,
        }
    )
    frame = read_predictions(path, format=format, model=model, **options)
    target = write_parquet(out, frame)
    units = "image_id" if "image_id" in frame.columns else "instance_id"
    models = ", ".join(frame["model"].unique(maintain_order=True).to_list()[:5])
    what = "images" if units == "image_id" else "units"
    say(
        f"{frame.height:,} rows of {frame[units].n_unique():,} {what}"
        + (f", {models}" if models else "")
    )
    document.wrote("predictions", target)


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
