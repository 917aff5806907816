"""Where FACET's pictures lie: three folders, and the table names a picture without its folder."""

from __future__ import annotations

from pathlib import Path

import polars as pl

__all__ = ["with_folders"]

_FOLDERS = "imgs_*"


def with_folders(images: pl.DataFrame, annotations: Path) -> pl.DataFrame:
    """Give images the path below FACET's folder as ``uri``, where their picture is found."""
    for root in (annotations, annotations.parent):
        folders = sorted(folder for folder in root.glob(_FOLDERS) if folder.is_dir())
        if folders:
            break
    else:
        return images
    listed = [
        (file.name, f"{folder.name}/{file.name}") for folder in folders for file in folder.iterdir()
    ]
    found = pl.DataFrame(listed, schema={"uri": pl.String, "_path": pl.String}, orient="row")
    found = found.unique("uri", keep="first", maintain_order=True)
    joined = images.join(found, on="uri", how="left", maintain_order="left")
    return joined.with_columns(uri=pl.coalesce("_path", "uri")).drop("_path")
