"""WIDER FACE's text of detections: what its evaluation code takes, a folder, a tar or one file.

A file for each image in a folder for each event: the image's name, how many faces, then
``x y width height score`` line by line. Yang et al. (2016).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core import citations
from isolux.core.errors import FileError, TableError
from isolux.core.info import FormatInfo
from isolux.io.frames import open_bytes
from isolux.io.paths import resolve_inside
from isolux.io.tar import is_tar, read_tar_files
from isolux.io.text import check_utf8
from isolux.predictions._detections import build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="WIDER FACE text",
    summary="A text file for each image, in a folder or a tar archive: the image's name, how many"
    " faces, then x y width height score.",
    references=(citations.WIDER_FACE,),
    assumptions=(
        "x y width height in pixels; whether the last pixel is inside is for the overlap to say",
    ),
    suffixes=(".txt", ".txt.gz"),
    folders=True,
)


def read(path: str | Path, *, model: str | None = None) -> pl.DataFrame:
    r"""Read detections of faces.

    Parameters
    ----------
    path : str or Path
        A folder with ``<event>/<image>.txt``, a tar archive of one (``.tar``, ``.tar.gz``, …), or
        a single text file with any number of images, also gzipped.
    model : str, optional
        The model's name; not given: that of the folder or file.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``: ``image_id`` as WIDER FACE has it
        (``31--Waiter/31_Waiter_276.jpg``), ``label`` null, box in pixels, score as in the file
        (higher is surer). Files in the order of their names (of an archive: of the archive).

    Raises
    ------
    FileError
        Nothing there; a damaged archive, or one with links, ``../`` or far too much in it.
    TableError
        With file and line: another number of boxes than announced, a line that is not five finite
        numbers, an image that occurs twice, a negative side.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "0--Parade").mkdir()
    ...     file = Path(folder) / "0--Parade" / "a.txt"
    ...     _ = file.write_text("a\n1\n4 5 20 30 0.9\n")
    ...     read(folder, model="net").row(0)
    ('net', '0--Parade/a.jpg', None, 4.0, 5.0, 20.0, 30.0, 0.9)
    """
    path = Path(path).expanduser()
    with closing(_iterate_files(path)) as files:
        frame = read_texts(files, str(path))
    return build_detections(
        frame, str(path), detection_kind="boxes", model=model or model_name_from_path(path)
    )


def _iterate_files(path: Path) -> Generator[tuple[str, bytes]]:
    if is_tar(path):
        yield from read_tar_files(path, ".txt")
    elif path.is_dir():
        for file in sorted(path.rglob("*.txt")):
            if file.is_file():
                with open_bytes(resolve_inside(path, file.relative_to(path))) as stream:
                    yield file.relative_to(path).as_posix(), stream.read()
    elif path.suffix.lower() == ".zip":
        raise FileError(
            "zip archives are not read", where=str(path), hint="unpack it and name the folder"
        )
    else:
        with open_bytes(path) as stream:
            yield "", stream.read()


FloatArray = npt.NDArray[np.float64]
_IMAGE_SUFFIX = re.compile(r"\.(jpe?g|png|bmp|webp)$", re.IGNORECASE)
_BOX_COUNT = re.compile(r"[0-9]{1,9}")
_BOX_LINE = "x y width height score"


def read_texts(files: Iterable[tuple[str, bytes]], root: str) -> pl.DataFrame:
    """Read the images of files, each with its name in the folder, empty for a file alone."""
    sources: dict[str, str] = {}
    counts: list[int] = []
    boxes = [np.empty((0, 5))]
    for name, content in files:
        source = f"{root}: {name}" if name else root
        n_before = len(counts)
        for image, of_image in _parse_images(check_utf8(content, source).decode(), name, source):
            if image in sources:
                raise TableError(
                    "two lists of detections are of the same image",
                    expected="one list for each image",
                    found=f"{image!r}, also in {sources[image]}",
                    where=source,
                )
            sources[image] = source
            counts.append(len(of_image))
            boxes.append(of_image)
        if len(counts) == n_before:
            expected = "an image's name, a count, boxes"
            raise FileError("the file is empty", expected=expected, where=source)
    if not sources:
        raise FileError("there is no file of detections", expected="*.txt", where=root)
    images = pl.Series(list(sources), dtype=pl.String)
    numbers = pl.DataFrame(
        np.concatenate(boxes), schema=["box_x", "box_y", "box_w", "box_h", "score"]
    )
    ids = images.gather(np.repeat(np.arange(len(images)), counts))
    return pl.DataFrame([ids.alias("image_id"), *numbers.get_columns()])


def _parse_images(text: str, file: str, source: str) -> Iterator[tuple[str, FloatArray]]:
    """Yield each image's id and its boxes [n, 5]."""
    lines = [line.strip() for line in text.split("\n")]
    line_index = 0
    while line_index < len(lines):
        if not lines[line_index]:
            line_index += 1
            continue
        _refuse_missing_name(lines, line_index, source)
        if _BOX_COUNT.fullmatch(lines[line_index + 1]) is None:
            raise FileError(
                "the number of boxes is missing",
                expected="a whole number in the line after the image's name",
                found=repr(lines[line_index + 1][:60]),
                where=f"{source}, line {line_index + 2}",
            )
        n = int(lines[line_index + 1])
        image_lines = lines[line_index + 2 : line_index + 2 + n]
        boxes = _parse_boxes(image_lines)
        if boxes is None or len(boxes) < n:
            _refuse_invalid_boxes(image_lines, n, line_index + 3, source)
        else:
            yield _build_image_id(lines[line_index], file), boxes
        line_index += 2 + n
        # Some write a line of zeros for an image without boxes.
        if not n and line_index < len(lines) and not lines[line_index].strip("0 "):
            line_index += 1


def _refuse_missing_name(lines: Sequence[str], line_index: int, source: str) -> None:
    location = f"{source}, line {line_index + 1}"
    cells = lines[line_index].split()
    if line_index + 1 == len(lines):
        raise FileError(
            "an image's name or its number of boxes is missing",
            expected="a line with the name, then a line with the number of boxes",
            found=repr(lines[line_index][:60]),
            where=location,
        )
    if len(cells) == 5 and all(re.match(r"[-+.\d]", cell) for cell in cells):
        raise TableError(
            "an image has more boxes than it says" if line_index else "the file begins with a box",
            expected="an image's name"
            + (" after as many boxes as were announced" if line_index else ""),
            found=repr(lines[line_index][:60]),
            where=location,
        )


def _refuse_invalid_boxes(
    lines: Sequence[str], n: int, first_line_number: int, source: str
) -> None:
    """Refuse the first line that is no box, or that would be one but is not there."""
    row, line = next(
        (row, line) for row, line in enumerate([*lines, ""]) if _parse_boxes([line]) is None
    )
    cells = line.split()
    is_absent = len(cells) < 2
    location = f"{source}, line {first_line_number + row}"
    if len(cells) == 5:
        bad = next(
            k for k, cell in enumerate(cells) if _parse_boxes([" ".join([cell] * 5)]) is None
        )
        location += f", column {_BOX_LINE.split()[bad]!r}"
    raise TableError(
        "an image has fewer boxes than it says" if is_absent else "a box cannot be read",
        expected=f"{n:,} lines: {_BOX_LINE}" if is_absent else f"five finite numbers: {_BOX_LINE}",
        found=f"{row:,}, then {line[:60]!r}" if is_absent else repr(line[:60]),
        where=location,
    )


def _parse_boxes(lines: Sequence[str]) -> FloatArray | None:
    """Parse lines of five finite numbers [n, 5]; None where one is something else."""
    cells = [line.split() for line in lines]
    is_plain_ascii = all(
        line.isascii() and "_" not in line for line in lines
    )  # float() takes ١ and 1_000
    if not is_plain_ascii or any(len(row) != 5 for row in cells):
        return None
    try:
        boxes = np.fromiter(map(float, chain.from_iterable(cells)), float).reshape(-1, 5)
    except ValueError:
        return None
    return boxes if np.isfinite(boxes).all() else None


def _build_image_id(name: str, file: str) -> str:
    event = PurePosixPath(file).parent.name
    if "/" not in name and event:
        name = f"{event}/{name}"
    return name if _IMAGE_SUFFIX.search(name) else f"{name}.jpg"


def mismatch(probe: FileProbe) -> str | None:
    r"""Say why this is not WIDER FACE's text; None: it is.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net.txt"), "file", b"0--Parade/a.jpg\n1\n4 5 20 30 0.9\n"))
    >>> mismatch(FileProbe(Path("a.txt"), "file", b"0 0.51 0.42 0.1 0.2\n"))
    'its first line is 5 numbers, where the name of an image should be'
    """
    if probe.kind != "file":
        if probe.image_names:
            return "it holds pictures"
        if not any(name.endswith(".txt") for name in probe.names):
            return "it holds no text files (*.txt)"
    first, second = [*probe.first_lines(2), "", ""][:2]
    numbers = first.split()
    if len(numbers) > 1 and all(map(_is_number, numbers)):
        return f"its first line is {len(numbers)} numbers, where the name of an image should be"
    if first and not second:
        return f"it ends after its first line, {first!r}"
    if first and not second.isdecimal():
        return f"its second line is {second!r}, where the number of faces should be"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
