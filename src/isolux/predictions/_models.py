"""One long table of several models: which there are, and the one that is to be judged."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.io.cells import as_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import SpecError, UnknownNameError


def models_in(
    path: str | Path,
    column: str,
    *,
    format: str | None = None,  # noqa: A002
    sheet: str | None = None,
) -> tuple[str, ...]:
    r"""Name the models that a table holds, in the order in which they first stand there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "answers.csv"
    ...     _ = file.write_text("id,net,label\na,vit,x\na,cnn,y\n")
    ...     models_in(file, "net")
    ('vit', 'cnn')
    """
    frame = read_table(path, format=format, sheet=sheet)
    if column not in frame.columns:
        raise UnknownNameError("column", column, frame.columns, where=str(path))
    names = as_text(frame[column])
    if names.null_count():
        raise SpecError(
            f"{names.null_count():,} row(s) name no model",
            expected=f"a name in every row of the column {column!r}",
            found="empty cells",
            where=str(path),
        )
    return tuple(names.unique(maintain_order=True))


def of_model(predictions: pl.DataFrame, model: str) -> pl.DataFrame:
    """Keep one model's predictions.

    Examples
    --------
    >>> rows = pl.DataFrame({"model": ["vit", "cnn"], "instance_id": ["a", "a"]})
    >>> of_model(rows, "cnn")["model"].to_list()
    ['cnn']
    """
    known = predictions["model"].unique(maintain_order=True).to_list()
    if model not in known:
        raise UnknownNameError("model", model, known, where="--model-name")
    return predictions.filter(pl.col("model") == model)
