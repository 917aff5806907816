"""Labels in TSV: tab-separated text, a row a judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="TSV",
    summary="Tab-separated text in UTF-8, plain or gzipped: a line of column names, then one row "
    "per answer.",
    references=(
        Reference(
            key="iana_tsv",
            citation="Lindner, P. (1993). Definition of tab-separated-values (tsv). IANA media"
            " types: text/tab-separated-values.",
            url="https://www.iana.org/assignments/media-types/text/tab-separated-values",
        ),
    ),
    assumptions=(
        "every cell is text until a score is needed",
        "a cell that holds a tab is quoted as in CSV",
    ),
    suffixes=FORMATS["tsv"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    r"""Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.tsv"
    ...     _ = file.write_text("id\tlabel\tscore\n007\tnurse\t0.5\n")
    ...     read(file).select("instance_id", "label", "score", "rank").rows()
    [('007', 'nurse', 0.5, 1)]
    """
    return read_label_file(path, "tsv", options)
