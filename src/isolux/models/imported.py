"""Answers that are in a file already, or in what ``isolux predict`` wrote: ``imported:FILE``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.core.errors import FileError
from isolux.core.info import ModelInfo, Reference
from isolux.predictions import read_outputs

INFO = ModelInfo(
    title="Answers in a file",
    summary="Reads answers that were made elsewhere, in any format of `isolux list formats`.",
    references=(Reference(key="own-data", citation="The auditor's own file."),),
    licence="the auditor's own",
    assumptions=("the file's ids are the dataset's",),
    predicts="imported",
    needs="the file; --predictions FILE is the same",
)


def load(spec: str) -> pl.DataFrame:
    r"""Read the answers.

    Parameters
    ----------
    spec : str
        The file.

    Returns
    -------
    polars.DataFrame
        One of the tables of predictions.

    Raises
    ------
    FileError, TableError
        As ``isolux.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("id,label\na.jpg,day\n")
    ...     load(str(file)).select("instance_id", "label").rows()
    [('a.jpg', 'day')]
    """
    if not Path(spec).expanduser().exists():
        raise FileError("there is no such file of answers", where=spec)
    return read_outputs(spec)
