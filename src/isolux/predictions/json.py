"""Labels in JSON: a list of objects, or an object of them by id, as services and tools write it."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core import citations
from isolux.core.info import FormatInfo
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="JSON",
    summary="A list of objects, or an object of them by id; an answer may be an object of scores.",
    references=(citations.JSON,),
    assumptions=(
        "a field of a field is a column: face.age",
        "each face of a picture is a row",
    ),
    suffixes=FORMATS["json"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    """Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.json"
    ...     _ = file.write_text('{"007": {"pronoun": {"his": 0.25, "her": 0.5}}}')
    ...     read(file, column="pronoun").select("instance_id", "label", "score", "rank").rows()
    [('007', 'her', 0.5, 1), ('007', 'his', 0.25, 2)]
    """
    return read_label_file(path, "json", options)
