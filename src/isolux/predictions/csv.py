"""Labels in CSV: comma-separated text, a row a judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="CSV",
    summary="Comma-separated text in UTF-8, plain or gzipped: a line of column names, then one "
    "row per answer.",
    references=(
        Reference(
            key="rfc4180",
            citation="Shafranovich, Y. (2005). Common format and MIME type for comma-separated"
            " values (CSV) files. RFC 4180.",
            location="section 2",
            url="https://www.rfc-editor.org/rfc/rfc4180",
        ),
    ),
    assumptions=("every cell is text until a score is needed",),
    suffixes=FORMATS["csv"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    r"""Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("id,label,score\n007,nurse,0.5\n")
    ...     read(file).select("instance_id", "label", "score", "rank").rows()
    [('007', 'nurse', 0.5, 1)]
    """
    return read_label_file(path, "csv", options)
