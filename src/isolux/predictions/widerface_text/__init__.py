"""WIDER FACE's text of detections: what its evaluation code takes, a folder, a tar or one file.

A file for each image in a folder for each event: the image's name, how many faces, then
``x y width height score`` line by line. Yang et al. (2016).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import IO

import polars as pl

from isolux.io.paths import inside
from isolux.io.tar import is_tar, tar_files
from isolux.predictions._detections import detections, model_name
from isolux.predictions._json_text import open_bytes
from isolux.predictions._seen import Seen
from isolux.predictions.widerface_text.text import read_texts
from isolux.vocabulary import works
from isolux.vocabulary.errors import FileError
from isolux.vocabulary.info import FormatInfo

INFO = FormatInfo(
    title="WIDER FACE text",
    summary="A text file for each image, in a folder or a tar archive: the image's name, how many"
    " faces, then x y width height score.",
    references=(works.WIDER_FACE,),
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
    with closing(_files(path)) as files:
        frame = read_texts(files, str(path))
    return detections(frame, str(path), kind="boxes", model=model or model_name(path))


def _files(path: Path) -> Generator[tuple[str, bytes | IO[bytes]]]:
    if is_tar(path):
        yield from tar_files(path, ".txt")
    elif path.is_dir():
        for file in sorted(path.rglob("*.txt")):
            if not file.is_file():
                continue
            with open_bytes(inside(path, file.relative_to(path))) as stream:
                yield file.relative_to(path).as_posix(), stream
    elif path.suffix.lower() == ".zip":
        raise FileError(
            "zip archives are not read", where=str(path), hint="unpack it and name the folder"
        )
    else:
        with open_bytes(path) as stream:
            yield "", stream


def misfit(seen: Seen) -> str | None:
    r"""Say why this is not WIDER FACE's text; None: it is.

    Examples
    --------
    >>> misfit(Seen(Path("net.txt"), "file", b"0--Parade/a.jpg\n1\n4 5 20 30 0.9\n"))
    >>> misfit(Seen(Path("a.txt"), "file", b"0 0.51 0.42 0.1 0.2\n"))
    'its first line is 5 numbers, where the name of an image should be'
    """
    if seen.kind != "file":
        if seen.pictures:
            return "it holds pictures"
        if not any(name.endswith(".txt") for name in seen.names):
            return "it holds no text files (*.txt)"
    first, second = [*seen.lines(2), "", ""][:2]
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
