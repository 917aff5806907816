"""A family of models of another package: a box where a picture is brighter than a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import FileError
from isolux.core.info import ModelInfo, Reference

INFO = ModelInfo(
    title="Brightest",
    summary="Draws a box around what is brighter than a limit.",
    references=(Reference(key="brightest", citation="Made for a test of isolux."),),
    predicts="boxes",
)

_SCHEMA = {"picture": pl.Int64, "label": pl.String, "box_x": pl.Float64, "box_y": pl.Float64,
           "box_w": pl.Float64, "box_h": pl.Float64, "score": pl.Float64}  # fmt: skip


@dataclass(frozen=True)
class Brightest:
    """The loaded model: its limit, 0 to 255."""

    limit: float

    def __call__(self, pictures: Sequence[npt.NDArray[np.uint8]]) -> pl.DataFrame:
        """Answer with at most one box a picture."""
        rows = []
        for k, picture in enumerate(pictures):
            y, x = np.nonzero(picture.mean(axis=2) > self.limit)
            if len(x):
                sides = x.min(), y.min(), np.ptp(x) + 1, np.ptp(y) + 1
                rows.append((k, None, *map(float, sides), float(picture.max()) / 255))
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def load(spec: str) -> Brightest:
    """Load a limit from a file of one number.

    Parameters
    ----------
    spec : str
        The file.

    Returns
    -------
    Brightest

    Raises
    ------
    FileError
        No such file, or no number in it.

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
        ...
    isolux.core.errors.FileError: there is no such file of a limit
      where: nowhere
    """
    path = Path(spec).expanduser()
    if not path.is_file():
        raise FileError("there is no such file of a limit", where=spec)
    return Brightest(float(path.read_text(encoding="utf-8")))
