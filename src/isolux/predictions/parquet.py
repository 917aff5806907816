"""Labels in Parquet: typed columns, a row a judgement, lists for several answers."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="Parquet",
    summary="Apache Parquet: typed columns, lists for several answers of one judgement.",
    references=(
        Reference(
            key="parquet",
            citation="The Apache Software Foundation. Apache Parquet: file format.",
            url="https://parquet.apache.org/docs/file-format/",
        ),
    ),
    assumptions=("a list of scores runs in parallel to the list of answers",),
    suffixes=FORMATS["parquet"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    """Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.parquet"
    ...     frame = pl.DataFrame({"id": ["007"], "label": [["nurse"]], "score": [[0.5]]})
    ...     frame.write_parquet(file)
    ...     read(file).select("instance_id", "label", "score", "rank").rows()
    [('007', 'nurse', 0.5, 1)]
    """
    return read_label_file(path, "parquet", options)
