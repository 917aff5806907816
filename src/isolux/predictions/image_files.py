"""Pictures that a model made: a folder, a tar archive or a table of files, named by their subject.

What face reconstruction and super-resolution give. Files are listed here and opened only by the
task that compares them with the originals.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.core.errors import FileError, format_location
from isolux.core.info import FormatInfo
from isolux.core.tables import check
from isolux.io.frames import read_table, refuse_unless_file
from isolux.io.ids import choose_id_column, read_ids
from isolux.io.image_tables import ARCHIVE_SEPARATOR, FHIBE_API, IMAGE_FILES, has_image_columns
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.paths import list_files_below, resolve_inside
from isolux.io.refusals import require_columns
from isolux.io.tar import is_tar, read_tar_files
from isolux.predictions._detections import add_model_column
from isolux.predictions._face_parts import are_mostly_part_masks
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="Pictures",
    summary="A folder or tar archive of pictures, named by the person or image that each is of, or"
    " a table with their ids and paths.",
    references=(
        replace(
            FHIBE_API, location="docs/task_specifics.md, face encoding and face super resolution"
        ),
    ),
    assumptions=("a person without a file was given no picture",),
    folders=True,
    columns=True,
)


def read(
    path: str | Path,
    *,
    model: str | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    root: str | None = None,
) -> pl.DataFrame:
    """List pictures; none is opened.

    Parameters
    ----------
    path : str or Path
        A folder, searched to its bottom; a tar archive (plain, gzip, bzip2 or xz); or a table with
        ``uri`` and a column of ids.
    model : str, optional
        The model's name; not given: a table's column ``model``, else the folder's or file's name.
    id : str, optional
        A table's column of ids; default: the first one present among ``id``, ``instance_id``,
        ``image_id``, ``file``, ``filename``, ``path``.
    root : str, optional
        The folder that a table's paths must be in; default: the table's own.

    Returns
    -------
    polars.DataFrame
        Table ``IMAGE_FILES``: model, instance_id (the path below the folder, ``val/1.png``; the
        task tells people from images, with or without folder and suffix), uri. By id.

    Raises
    ------
    FileError
        Nothing there, no picture in it; a link; a path that leads out of its folder; an archive
        that is damaged or a bomb.
    UnknownNameError, TableError
        A table without ``uri`` or ids, or with one id twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("7.png", "notes.txt"):
    ...         (Path(folder) / name).touch()
    ...     read(folder, model="net").select("model", "instance_id").rows()
    [('net', '7.png')]
    """
    source = Path(path).expanduser()
    source_text = str(source)
    if not source.is_dir():
        refuse_unless_file(source)
    if source.is_dir():
        frame = _build_file_table(_list_folder_images(source), source_text)
    elif source.stat().st_size == 0:
        raise FileError("the file is empty", expected="pictures", where=source_text)
    elif is_tar(source):
        frame = _build_file_table(_list_archive_images(source), source_text)
    else:
        frame = _read_file_table(source, id, root)
    frame = add_model_column(frame, model, source).sort("instance_id", "model")
    return check(frame.select(IMAGE_FILES.schema.keys()), IMAGE_FILES, source=source_text)


def _build_file_table(files: Iterator[tuple[str, str]], source: str) -> pl.DataFrame:
    pairs = list(files)
    if not pairs:
        raise FileError(
            "there is no picture in it",
            expected="files that end in " + ", ".join(IMAGE_SUFFIXES),
            where=source,
        )
    return pl.DataFrame(pairs, schema={"instance_id": pl.String, "uri": pl.String}, orient="row")


def _list_folder_images(root: Path) -> Iterator[tuple[str, str]]:
    """Walk the folder; a link is refused, for a picture of elsewhere is not the model's."""
    for file in list_files_below(root, ""):
        if file.is_symlink():
            raise FileError(
                "there is a link among the pictures",
                expected="plain files and folders",
                found=str(file.relative_to(root)),
                where=str(root),
                hint="put the file itself there",
            )
        if file.name.lower().endswith(IMAGE_SUFFIXES):
            yield file.relative_to(root).as_posix(), str(file)


def _list_archive_images(path: Path) -> Iterator[tuple[str, str]]:
    """Name the pictures in an archive; unpacking them all finds bombs and links at once."""
    for name, _ in read_tar_files(path):
        if name.lower().endswith(IMAGE_SUFFIXES):
            yield name.removeprefix("./"), f"{path}{ARCHIVE_SEPARATOR}{name}"


def _read_file_table(path: Path, column: str | None, root: str | None) -> pl.DataFrame:
    source = str(path)
    try:
        frame = read_table(path)
    except FileError:
        if tarfile.is_tarfile(path):
            raise FileError(
                "this archive's name does not end as an archive's", where=source, hint="add .tar"
            ) from None
        raise
    require_columns(frame, ("uri",), source)
    id_column_name = choose_id_column(frame, column, source, description="a picture")
    base = Path(root).expanduser() if root is not None else path.parent
    paths = read_ids(frame, "uri", source).to_list()
    files = []
    for row, uri in enumerate(paths, start=1):
        archive, separator, member = uri.partition(ARCHIVE_SEPARATOR)
        try:
            resolved = resolve_inside(base, archive)
        except FileError as error:
            raise FileError(
                error.problem,
                expected=error.expected,
                found=error.found,
                where=format_location(source, row, "uri"),
                hint="name the folder that holds the pictures (root=…)",
            ) from error
        files.append(f"{resolved}{separator}{member}")
    model_columns = [frame["model"]] if "model" in frame.columns else []
    return pl.DataFrame(
        [read_ids(frame, id_column_name, source), pl.Series("uri", files), *model_columns]
    )


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are no pictures of people; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net"), "folder", names=("7.png", "8.png")))
    >>> mismatch(FileProbe(Path("net"), "folder", names=("7_hair.png", "notes.txt")))
    'most of its pictures are named after parts of a face'
    """
    if probe.kind == "table":
        return None if has_image_columns(probe.columns) else "it has no columns of ids and 'uri'"
    if not probe.image_names:
        return "it holds no pictures"
    is_part_folder = are_mostly_part_masks(probe.image_names)
    return "most of its pictures are named after parts of a face" if is_part_folder else None
