"""Labels in an Excel workbook (.xlsx, .xlsm, .xlsb, .xls): a row a judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import polars as pl

from isolux.core.info import FormatInfo, Reference
from isolux.io.frames import FORMATS
from isolux.predictions._labels.reading import LabelOptions, read_label_file

INFO = FormatInfo(
    title="Excel workbook",
    summary="A sheet with a row of column names, then one row per answer.",
    references=(
        Reference(
            key="ecma376",
            citation="ECMA International. (2021). Office Open XML file formats. ECMA-376, 5th"
            " edition.",
            location="part 1, SpreadsheetML",
            url="https://ecma-international.org/publications-and-standards/standards/ecma-376/",
        ),
    ),
    assumptions=("formulas give the values that were saved",),
    suffixes=FORMATS["xlsx"],
)


def read(path: str | Path, **options: Unpack[LabelOptions]) -> pl.DataFrame:
    """Read a model's answers; options and result as in ``isolux.predictions.read_predictions``.

    ``sheet`` names the sheet, where several hold something.

    Examples
    --------
    A sheet with the columns ``id``, ``label`` and ``score`` is read as a CSV file of them is.

    >>> read("absent.xlsx", column="label", sheet="answers")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    isolux.core.errors.FileError: there is no such file
    ...
    """
    return read_label_file(path, "xlsx", options)
