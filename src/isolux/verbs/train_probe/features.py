"""Whom a probe learns from, and their features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.predictions import read_outputs
from isolux.training import clusters_of, labels_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, JoinError, SpecError, TableError

Floats = npt.NDArray[np.float64]
_SHOWN = 8


def labelled(dataset: Dataset, target: str | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """List who has one label: ``instance_id, cluster, label``, and say who has not."""
    who, one = clusters_of(dataset), labels_of(dataset, target)
    rows = who.join(one, on="instance_id", how="inner", maintain_order="left")
    left = who.height - rows.height
    if not left:
        return rows, ()
    return rows, (f"{left:,} of {who.height:,} have no label, or several, and take no part.",)


def feature_file(path: str | Path) -> Path:
    """Return the file of features: of a directory that ``predict`` wrote its table."""
    given = Path(path).expanduser()
    found = given / "predictions.parquet" if given.is_dir() else given
    if not found.exists():
        raise FileError(
            "there are no such features",
            where=str(path),
            hint="isolux predict DATA --model FAMILY:NAME --out DIR writes them, of a model of"
            " embeddings",
        )
    return found


def read_features(path: str | Path) -> tuple[pl.DataFrame, int]:
    """Read features of one model: ``model, instance_id, embedding``, and how many rows have none.

    Raises
    ------
    FileError, TableError, SpecError
        No such file, no embeddings, those of several models.
    """
    file = feature_file(path)
    try:
        frame = read_outputs(file)
    except SpecError as error:  # a table of something else: what it lacks is no answer
        raise _no_features(path, str(error).splitlines()[0]) from error
    if "embedding" not in frame.columns:
        raise _no_features(path, "columns " + ", ".join(frame.columns))
    models = frame["model"].unique().sort().to_list()
    if len(models) != 1:
        raise SpecError(
            "a probe reads the features of one model",
            expected="one model in the file",
            found=", ".join(map(repr, models[:_SHOWN])) or "none",
            where=str(path),
        )
    there = frame.drop_nulls("embedding").select(
        "model",
        pl.col("instance_id").cast(pl.String),
        pl.col("embedding").cast(pl.List(pl.Float64)),
    )
    return there, frame.height - there.height


def _no_features(path: str | Path, found: str) -> TableError:
    return TableError(
        "these are not features",
        expected="embeddings: one vector a picture",
        found=found,
        where=str(path),
        hint="isolux predict DATA --model FAMILY:NAME --out DIR writes them, of a model of"
        " embeddings; DIR is given here",
    )


def matrix_of(vectors: pl.DataFrame, where: str) -> Floats:
    """Lay features out as ``[n, d]``; the reader refused those that differ in length."""
    width = len(vectors["embedding"][0]) if vectors.height else 0
    matrix = vectors["embedding"].list.to_array(width).to_numpy().astype(np.float64)
    if not np.isfinite(matrix).all():
        raise TableError("features are not finite", expected="finite numbers",
                         found="NaN or infinite", where=where)  # fmt: skip
    return np.asarray(matrix.reshape(len(vectors), width))


def joined(rows: pl.DataFrame, vectors: pl.DataFrame, where: str) -> tuple[Floats, pl.DataFrame]:
    """Keep those who have features, in one order."""
    met = rows.join(vectors, on="instance_id", how="inner", maintain_order="left")
    if rows.height and not met.height:
        raise JoinError(
            "the features belong to nobody who is labelled",
            expected="ids such as " + ", ".join(map(repr, rows["instance_id"].head(3))),
            found=", ".join(map(repr, vectors["instance_id"].head(3))),
            where=where,
        )
    return matrix_of(met, where), met.select(rows.columns)
