"""Pascal VOC's results: a text file for each class, a line for each box with its image's name."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, TableError, format_location
from isolux.core.info import FormatInfo, Reference
from isolux.predictions._detections import build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe
from isolux.predictions._text_files import is_single_file, iterate_lines, read_first_line

INFO = FormatInfo(
    title="Pascal VOC results",
    summary="A text file for each class (comp3_det_test_person.txt): image, confidence, left, top,"
    " right, bottom.",
    references=(
        Reference(
            key="voc-devkit",
            citation="Everingham, M., & Winn, J. (2012). The PASCAL visual object classes challenge"
            " 2012 (VOC2012) development kit.",
            location="section 4.2.2, detection: results file format",
            url="http://host.robots.ox.ac.uk/pascal/VOC/voc2012/htmldoc/devkit_doc.html",
        ),
    ),
    assumptions=(
        "the class is the file's name, less comp3_det_ and the set (train, val, trainval, test)",
        "a box is right − left pixels wide; --pixel-inclusive counts the last pixel, as VOC does",
    ),
    suffixes=(".txt",),
    folders=True,
)
_FILE_NAME = re.compile(r"comp\d+_det_(?:(?:trainval|train|val|test)\w*?_)?(.+)", re.IGNORECASE)
_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(rb"\s*\S+((?:\s+" + _NUMBER + rb"){5})\s*")
_MAX_SHARE = 1.5  # a box none of whose sides is beyond it is one of shares


def read(path: str | Path, *, model: str | None = None) -> pl.DataFrame:
    r"""Read detections.

    Parameters
    ----------
    path : str or Path
        One class's file, or the folder of all classes'.
    model : str, optional
        The model's name; not given: the folder's, or the file's.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``; ``label`` the class.

    Raises
    ------
    FileError, TableError
        No such file; a line that is no detection, or whose corners are turned over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "comp3_det_val_person.txt"
    ...     _ = file.write_text("000004 0.75 4 5 24 35\n")
    ...     read(file, model="net").row(0)
    ('net', '000004', 'person', 4.0, 5.0, 20.0, 30.0, 0.75)
    """
    root = Path(path).expanduser()
    rows: list[tuple[str, str, float, float, float, float, float]] = []
    for file in _list_files(root):
        label = _class_from_name(file.stem)
        for k, line in iterate_lines(file):
            image, score, x_min, y_min, x_max, y_max = _parse_line(line, str(file), k)
            rows.append((image, label, x_min, y_min, x_max - x_min, y_max - y_min, score))
    number_schema = dict.fromkeys(("box_x", "box_y", "box_w", "box_h", "score"), pl.Float64)
    schema = {"image_id": pl.String, "label": pl.String, **number_schema}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return build_detections(
        frame, str(root), detection_kind="boxes", model=model or model_name_from_path(root)
    )


def _class_from_name(stem: str) -> str:
    """Take the class from a file's name."""
    name_match = _FILE_NAME.fullmatch(stem)
    return name_match[1] if name_match else stem


def _list_files(root: Path) -> list[Path]:
    if is_single_file(root):
        return [root]
    files = sorted(root.glob("*.txt")) if root.is_dir() else []
    if not files:
        raise FileError(
            "there are no text files of results",
            expected="comp3_det_test_person.txt",
            where=str(root),
        )
    return files


def _parse_line(
    line: str, source: str, row_number: int
) -> tuple[str, float, float, float, float, float]:
    cells = line.split()
    try:
        score, x_min, y_min, x_max, y_max = map(float, cells[1:])
    except ValueError as error:
        raise TableError(
            "a line is not a result in Pascal VOC's format",
            expected="image, confidence, left, top, right, bottom",
            found=repr(line[:60]),
            where=format_location(source, row_number),
        ) from error
    if x_max < x_min or y_max < y_min:
        raise TableError(
            "a box is turned over",
            expected="left, top, right, bottom",
            found=repr(line[:60]),
            where=format_location(source, row_number),
        )
    return cells[0], score, x_min, y_min, x_max, y_max


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are not Pascal VOC's results, or return None where they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("comp3_det_val_dog.txt"), "file", b"000004 0.75 4 5 24 35"))
    >>> mismatch(FileProbe(Path("7.txt"), "file", b"0 0.5 0.5 0.5 0.25 0.9"))
    'its first line is not an image, a confidence and corners'
    """
    line_match = _LINE.fullmatch(read_first_line(probe))
    if line_match is not None:
        _, x_min, y_min, x_max, y_max = map(float, line_match[1].split())
        if x_min <= x_max and y_min <= y_max and max(x_max, y_max) > _MAX_SHARE:
            return None
    return "its first line is not an image, a confidence and corners"
