"""Labels in JSON lines: an object a line, arrays for several answers."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core import citations
from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="JSON lines",
    summary="A JSON object a line, arrays for several answers of one judgement.",
    references=(
        citations.JSON,
        Reference(
            key="jsonlines",
            citation="Ward, I. JSON Lines: documentation for the JSON Lines text file format.",
            url="https://jsonlines.org",
        ),
    ),
    assumptions=("a name holds lists in every line or in none",),
    suffixes=FORMATS["jsonlines"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    """Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.jsonl"
    ...     _ = file.write_text('{"id": "007", "label": ["nurse"], "score": [0.5]}')
    ...     read(file).select("instance_id", "label", "score", "rank").rows()
    [('007', 'nurse', 0.5, 1)]
    """
    return read_label_file(path, "jsonlines", options)
