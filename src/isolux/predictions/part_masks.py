"""Part masks as CelebAMask-HQ has them: a black and white picture for each part of each face.

``<image>_<part>.png`` in any folders below one, or ``<image>/<part>.png`` as FHIBE lays them out.
They are listed here and opened only by the task that compares them. Lee et al. (2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from isolux.core import citations
from isolux.core.errors import FileError, SpecError
from isolux.core.info import FormatInfo
from isolux.core.tables import PART_MASK_FILES, check
from isolux.io.paths import list_files_below, resolve_inside
from isolux.io.tar import is_tar
from isolux.predictions._detections import model_name_from_path
from isolux.predictions._face_parts import FACE_PARTS, are_mostly_part_masks
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="Part masks",
    summary="A folder of pictures <image>_<part>.png or <image>/<part>.png, white where the part"
    " is, as CelebAMask-HQ publishes and face parsers write them.",
    references=(citations.CELEBAMASK_HQ,),
    assumptions=("a part without a file is not in the image",),
    folders=True,
)

_LABEL_IMAGE_NAMES = ("background", "combined")
"""What FHIBE's folders hold in addition to the parts: what none covers, and all labels."""


def read(
    path: str | Path, *, model: str | None = None, parts: Sequence[str] = FACE_PARTS
) -> pl.DataFrame:
    """List part masks; no picture is opened.

    Parameters
    ----------
    path : str or Path
        The folder.
    model : str, optional
        The model's name; not given: the folder's.
    parts : sequence of str
        The names of parts, other than ``background`` and ``combined`` (a picture with the number of
        each pixel's part); the longest that a file's name ends in is the one.

    Returns
    -------
    polars.DataFrame
        Table ``PART_MASK_FILES``: model, image_id (the name without the part, ``00012``; of a file
        that is named as a part alone, its folder's name), part, uri (the whole path). By image,
        then in the order of ``parts``.

    Raises
    ------
    FileError
        No folder, no mask in it; a file whose name ends in no part; a link that leads out of the
        folder; a part of an image that occurs twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("00012_hair.png", "00012_l_eye.png"):
    ...         (Path(folder) / name).touch()
    ...     read(folder, model="net").select("image_id", "part").rows()
    [('00012', 'l_eye'), ('00012', 'hair')]
    """
    root = Path(path).expanduser()
    source = str(root)
    if not parts or not all(parts) or len(set(parts)) != len(parts):
        raise SpecError("the names of parts cannot be used", expected="names, none of them twice")
    if not root.is_dir():
        raise FileError(
            "there is no such folder" if not root.exists() else "part masks are a folder of files",
            expected="a folder of <image>_<part>.png",
            found=""
            if not root.exists()
            else "a file" + (", empty" if _is_empty_file(root) else ""),
            where=source,
            hint="unpack it first" if is_tar(root) else None,
        )
    files = pl.Series("uri", list(_list_mask_files(root)), dtype=pl.String)
    if files.is_empty():
        raise FileError("the folder is empty of masks", expected="<image>_<part>.png", where=source)
    names = tuple(dict.fromkeys([*parts, *_LABEL_IMAGE_NAMES]))
    frame = _split_names(files, names, root).with_columns(
        model=pl.lit(model or model_name_from_path(root)),
        order=pl.col("part").replace_strict({p: i for i, p in enumerate(names)}),
    )
    table = frame.sort("image_id", "order", maintain_order=True).select(
        PART_MASK_FILES.schema.keys()
    )
    return check(table, PART_MASK_FILES, source=source)


def _is_empty_file(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == 0


def _list_mask_files(root: Path) -> Iterator[str]:
    """Walk the folder; links are followed to files inside of it only."""
    for file in list_files_below(root, ".png"):
        if not file.is_dir():
            yield str(resolve_inside(root, file.absolute()) if file.is_symlink() else file)


def _split_names(files: pl.Series, part_names: Sequence[str], root: Path) -> pl.DataFrame:
    """Part each file's name into the image and the part."""
    stem = files.str.replace(r"(?s)^.*[/\\]", "").str.replace(r"(?i)\.png$", "")
    # The files straight in the folder have no folder of their own that could name an image.
    folders = files.str.head(files.str.len_chars().cast(pl.Int64) - stem.str.len_chars() - 4)
    folder_names = folders.str.strip_chars_end("/\\")
    owner = folder_names.str.extract(r"([^/\\]+)$", 1).set(
        folder_names.is_in([str(root), str(root.resolve())]), None
    )
    best = pl.lit(None, dtype=pl.String)
    for part_name in sorted(
        part_names, key=len
    ):  # a longer name that fits is taken instead of a shorter
        best = (
            pl.when(pl.col("stem").str.ends_with(f"_{part_name}"))
            .then(pl.lit(part_name))
            .otherwise(best)
        )
    frame = pl.DataFrame([files, stem.alias("stem"), owner.alias("owner")])
    is_part_name = pl.col("stem").is_in(list(part_names)) & pl.col("owner").is_not_null()
    frame = frame.with_columns(
        part=pl.when(is_part_name).then("stem").otherwise(best), alone=is_part_name
    )
    image_name = pl.col("stem").str.head(
        pl.col("stem").str.len_chars().cast(pl.Int64)
        - pl.col("part").str.len_chars().cast(pl.Int64)
        - 1
    )
    frame = frame.with_columns(image_id=pl.when("alone").then("owner").otherwise(image_name))
    unnamed_files = frame.filter(pl.col("part").is_null() | (pl.col("image_id") == ""))
    if unnamed_files.height:
        raise FileError(
            f"{unnamed_files.height:,} file(s) have names that end in no part",
            expected="<image>_<part>.png or <image>/<part>.png with a part of "
            + ", ".join(part_names),
            found=repr(unnamed_files["stem"][0] + ".png"),
            where=str(root),
            hint="name the parts (parts=…), or keep other pictures elsewhere",
        )
    return frame


def mismatch(probe: FileProbe) -> str | None:
    """Say why these are no masks of parts; None: they are.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net"), "folder", names=("7_hair.png", "notes.txt")))
    >>> mismatch(FileProbe(Path("net"), "folder", names=("7.png", "8.png")))
    'at most half of its pictures are named after parts of a face (_skin.png, …)'
    """
    if not probe.image_names:
        return "it holds no pictures"
    problem = "at most half of its pictures are named after parts of a face (_skin.png, …)"
    return None if are_mostly_part_masks(probe.image_names) else problem
