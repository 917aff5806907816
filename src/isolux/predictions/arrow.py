"""Labels in Arrow IPC: files (also called Feather) and streams, as Hugging Face writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="Arrow",
    summary="Apache Arrow IPC, as a file (Feather) or a stream: typed columns and lists.",
    references=(
        Reference(
            key="arrow",
            citation="The Apache Software Foundation. Apache Arrow: columnar format.",
            location="serialization and interprocess communication (IPC)",
            url="https://arrow.apache.org/docs/format/Columnar.html",
        ),
    ),
    assumptions=("a list of scores runs in parallel to the list of answers",),
    suffixes=FORMATS["arrow"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    """Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.arrow"
    ...     frame = pl.DataFrame({"id": ["007"], "label": [["nurse"]], "score": [[0.5]]})
    ...     frame.write_ipc(file)
    ...     read(file).select("instance_id", "label", "score", "rank").rows()
    [('007', 'nurse', 0.5, 1)]
    """
    return read_label_file(path, "arrow", options)
