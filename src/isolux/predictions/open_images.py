"""Detections as Open Images' challenge takes them: a CSV with sides as shares of the picture."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.io.cells import as_numbers, as_text
from isolux.io.frames import read_table
from isolux.io.ids import ids_of
from isolux.predictions._detections import detections, model_name
from isolux.predictions._seen import Seen
from isolux.predictions._shares import SizesOf, in_pixels
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.info import FormatInfo, Reference

INFO = FormatInfo(
    title="Open Images detections",
    summary="A CSV with ImageID, LabelName, Score and XMin, XMax, YMin, YMax as shares.",
    references=(
        Reference(
            key="open-images",
            citation="Kuznetsova, A., Rom, H., Alldrin, N., Uijlings, J., Krasin, I., Pont-Tuset,"
            " J., et al. (2020). The Open Images dataset V4. International Journal of Computer"
            " Vision, 128(7), 1956–1981.",
            place="the challenge's evaluation: https://storage.googleapis.com/openimages/web/"
            "evaluation.html",
            url="https://doi.org/10.1007/s11263-020-01316-z",
        ),
    ),
    assumptions=("sides are shares of the picture, 0 to 1",),
    columns=True,
)
_SIDES = {"left": "XMin", "top": "YMin", "right": "XMax", "bottom": "YMax"}
_IDS, _LABELS = ("ImageID", "ImageId", "image_id"), ("LabelName", "Label", "label")
_SCORES = ("Score", "Conf", "Confidence", "score")


def read(path: str | Path, *, model: str | None = None, sizes: SizesOf = None) -> pl.DataFrame:
    r"""Read detections.

    Parameters
    ----------
    path : str or Path
    model : str, optional
        The model's name; not given: the file's.
    sizes : str, Path or mapping, optional
        The pictures' sizes in pixels: a table with ``image_id``, ``width``, ``height``. Default:
        those of the dataset in an audit, or else ``NAME.sizes.csv`` beside the boxes.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``; ``label`` as in the file (``/m/01g317``).

    Raises
    ------
    FileError, TableError, UnknownNameError
        As for any table; a column that is not there.
    SpecError, JoinError
        No sizes, or none of these pictures.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n"
    ...                         "7,/m/01g317,0.9,0.25,0.75,0,0.5\n")
    ...     read(file, sizes={"7": (40, 40)}).row(0)
    ('net', '7', '/m/01g317', 10.0, 0.0, 20.0, 20.0, 0.9)
    """
    frame, where = read_table(path), str(path)
    named = [_column(frame, names, where) for names in (_IDS, _LABELS, _SCORES)]
    sides = {name: as_numbers(frame[_column(frame, (c,), where)], where=where, column=c)
             for name, c in _SIDES.items()}  # fmt: skip
    boxes = pl.DataFrame(
        {
            "image_id": ids_of(frame, named[0], where),
            "label": as_text(frame[named[1]]),
            "score": as_numbers(frame[named[2]], where=where, column=named[2]),
            **sides,
        }
    )
    found = in_pixels(boxes, sizes, where)
    return detections(found, where, kind="boxes", unsized=True, model=model or model_name(path))


def _column(frame: pl.DataFrame, names: tuple[str, ...], where: str) -> str:
    found = next((name for name in names if name in frame.columns), None)
    if found is None:
        raise UnknownNameError("column", names[0], frame.columns, where=where)
    return found


def misfit(seen: Seen) -> str | None:
    """Say why a table's columns are not those of Open Images, or return None where they are.

    Examples
    --------
    >>> names = ("ImageID", "LabelName", "Score", "XMin", "XMax", "YMin", "YMax")
    >>> misfit(Seen(Path("net.csv"), "table", columns=names))
    >>> misfit(Seen(Path("net.csv"), "table", columns=("id", "label")))
    'it has no sides XMin, YMin, XMax and YMax with a score'
    """
    sides = set(_SIDES.values()) <= set(seen.columns)
    return (
        None
        if sides and set(_SCORES) & set(seen.columns)
        else ("it has no sides XMin, YMin, XMax and YMax with a score")
    )
