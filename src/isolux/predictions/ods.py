"""Labels in an OpenDocument spreadsheet (.ods): a row a judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="OpenDocument spreadsheet",
    summary="A sheet with a row of column names, then one row per answer.",
    references=(
        Reference(
            key="opendocument",
            citation="OASIS. (2021). Open Document Format for Office Applications (OpenDocument)"
            " version 1.3.",
            location="part 3, spreadsheets",
            url="https://docs.oasis-open.org/office/OpenDocument/v1.3/",
        ),
    ),
    assumptions=("formulas give the values that were saved",),
    suffixes=FORMATS["ods"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    """Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    ``sheet`` names the sheet, where several hold something.

    Examples
    --------
    A sheet with the columns ``id``, ``label`` and ``score`` is read as a CSV file of them is.

    >>> read("absent.ods", column="label", sheet="answers")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    isolux.core.errors.FileError: there is no such file
    ...
    """
    return read_label_file(path, "ods", options)
