"""A format of another package: a line ``dots 1``, then ``picture x y w h score`` a line."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, TableError
from isolux.core.info import FormatInfo, Reference
from isolux.core.tables import BOX_PREDICTIONS, check
from isolux.predictions import FileProbe

INFO = FormatInfo(
    title="Dots",
    summary="A line 'dots 1', then a picture, a box and a score a line.",
    references=(Reference(key="dots", citation="Made for a test of isolux."),),
    suffixes=(".txt", ".dots"),
)

_HEAD = b"dots 1"


def mismatch(seen: FileProbe) -> str | None:
    r"""Say why these are no dots; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("a.dots"), "file", b"dots 1\n"))
    >>> mismatch(FileProbe(Path("a.txt"), "file", b"0 0.5 0.5 1 1\n"))
    "its first line is not 'dots 1'"
    """
    return None if seen.head.startswith(_HEAD) else "its first line is not 'dots 1'"


def read(path: str | Path, *, model: str | None = None) -> pl.DataFrame:
    r"""Read boxes.

    Parameters
    ----------
    path : str or Path
    model : str, optional
        The model's name; not given: the file's.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``; sides in pixels.

    Raises
    ------
    FileError, TableError
        Not such a file; a line that is not a picture and five numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.dots"
    ...     _ = file.write_text("dots 1\ni1 4 5 20 30 0.9\n")
    ...     read(file).row(0)
    ('net', 'i1', None, 4.0, 5.0, 20.0, 30.0, 0.9)
    """
    path = Path(path).expanduser()
    try:
        data = path.read_bytes() if path.is_file() else None
        lines = data.decode().splitlines() if data is not None else []
    except (OSError, ValueError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    if data is None:
        raise FileError("there is no such file", where=str(path))
    if not data.strip():
        raise FileError("the file is empty", expected="dots 1", where=str(path))
    if lines[0].strip() != _HEAD.decode():
        raise FileError(
            "these are no dots", expected="dots 1", found=lines[0][:60], where=str(path)
        )
    rows = [_row(line, f"{path}, line {k}") for k, line in enumerate(lines[1:], 2) if line.strip()]
    names = ("image_id", "box_x", "box_y", "box_w", "box_h", "score")
    table = pl.DataFrame(rows, schema=list(names), orient="row") if rows else pl.DataFrame()
    boxes = table.with_columns(model=pl.lit(model or path.stem), label=None)
    return check(BOX_PREDICTIONS.conform(boxes), BOX_PREDICTIONS, source=str(path))


def _row(line: str, where: str) -> tuple[str | float, ...]:
    picture, *words = line.split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 5 or not all(map(math.isfinite, numbers)) or min(numbers[2:4]) < 0:
        raise TableError(
            "a line is not a picture and a box", expected="picture x y w h score",
            found=line[:60], where=where,
        )  # fmt: skip
    return picture, *numbers
