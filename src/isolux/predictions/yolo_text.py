"""YOLO's detections: a text file for each picture, in shares of it, with a confidence."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, TableError
from isolux.core.info import FormatInfo, Reference
from isolux.predictions._detections import build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe
from isolux.predictions._relative_boxes import ImageSizes, to_pixel_boxes
from isolux.predictions._text_files import is_single_file, iterate_lines, read_first_line

INFO = FormatInfo(
    title="YOLO detections",
    summary="A folder of text files, one a picture: class, centre, width, height, confidence.",
    references=(
        Reference(
            key="ultralytics",
            citation="Jocher, G., & Qiu, J. Ultralytics YOLO: prediction, save_txt and save_conf.",
            url="https://docs.ultralytics.com/modes/predict/",
        ),
    ),
    assumptions=("shares of the picture, 0 to 1", "a picture without a file has no detection"),
    suffixes=(".txt",),
    folders=True,
)
_LINE = re.compile(rb"\s*\d+(\s+-?[01]?\.\d+(e-?\d+)?|\s+[01]){5}\s*$", re.IGNORECASE)


def read(path: str | Path, *, model: str | None = None, sizes: ImageSizes = None) -> pl.DataFrame:
    r"""Read detections.

    Parameters
    ----------
    path : str or Path
        The folder of text files (or one that holds it as ``labels``), or one file.
    model : str, optional
        The model's name; not given: the folder's.
    sizes : str, Path or mapping, optional
        The pictures' sizes in pixels: a table with ``image_id``, ``width``, ``height``. Default:
        those of the dataset in an audit, or else ``NAME.sizes.csv`` beside the boxes.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``: images named by their file without its suffix, ``label`` the
        class's number.

    Raises
    ------
    FileError, TableError
        No such file; a line that is no detection: one without a confidence (save_conf=True).
    SpecError, JoinError
        No sizes, or none of these pictures.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "7.txt"
    ...     _ = file.write_text("0 0.5 0.5 0.5 0.25 0.9\n")
    ...     read(file, model="net", sizes={"7": (40, 40)}).row(0)
    ('net', '7', '0', 10.0, 15.0, 20.0, 10.0, 0.9)
    """
    root = Path(path).expanduser()
    rows: list[tuple[str, str, float, float, float, float, float]] = []
    for file in _list_files(root):
        rows += [
            (file.stem, *_parse_box(line, f"{file}, row {k}")) for k, line in iterate_lines(file)
        ]
    names = ("left", "top", "right", "bottom", "score")
    schema = {"image_id": pl.String, "label": pl.String, **dict.fromkeys(names, pl.Float64)}
    boxes = to_pixel_boxes(pl.DataFrame(rows, schema=schema, orient="row"), sizes, str(root))
    return build_detections(
        boxes,
        str(root),
        detection_kind="boxes",
        allows_missing_boxes=True,
        model=model or model_name_from_path(root),
    )


def _list_files(root: Path) -> list[Path]:
    if is_single_file(root):
        return [root]
    for folder in (root / "labels", root):
        files = sorted(folder.rglob("*.txt")) if folder.is_dir() else []
        if files:
            return files
    raise FileError("there are no text files of detections", expected="*.txt", where=str(root))


def _parse_box(line: str, source: str) -> tuple[str, float, float, float, float, float]:
    cells = line.split()
    try:
        x, y, w, h, score = map(float, cells[1:])
    except ValueError as error:
        raise TableError(
            "a line is not a detection",
            expected="class, centre x and y, width, height, confidence",
            found=repr(line[:60]),
            where=source,
            hint="save the confidences too: save_conf=True" if len(cells) == 5 else None,
        ) from error
    if not (all(-0.5 <= share <= 1.5 for share in (x, y, w, h)) and 0 <= score <= 1):
        raise TableError(
            "a box is not in shares of its picture",
            expected="0 to 1",
            found=repr(line[:60]),
            where=source,
        )
    return cells[0], x - w / 2, y - h / 2, x + w / 2, y + h / 2, score


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are not YOLO's detections, or return None where they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("7.txt"), "file", b"0 0.5 0.5 0.5 0.25 0.9"))
    >>> mismatch(FileProbe(Path("7.txt"), "file", b"0--Parade/a.jpg"))
    'its first line is not a class, four shares and a confidence'
    """
    line_match = _LINE.match(read_first_line(probe))
    return None if line_match else "its first line is not a class, four shares and a confidence"
