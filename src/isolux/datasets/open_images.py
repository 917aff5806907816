"""Open Images' boxes: a CSV with a row a box, sides as shares of pictures of unknown size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.datasets._drawn import dataset_of_boxes
from isolux.datasets._files import Inputs, file_in, optional_file
from isolux.datasets._image_sizes import with_sizes
from isolux.datasets._refusals import require_columns
from isolux.datasets._tables import left_join
from isolux.io.cells import as_numbers, as_text, row_of
from isolux.io.ids import ids_of
from isolux.io.text import decodable
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import TableError, place
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.notes import Caution

INFO = DatasetInfo(
    title="Open Images",
    summary="Boxes of 600 classes in pictures of Flickr; MIAP adds perceived gender and age.",
    references=(
        Reference(
            key="open-images",
            citation="Kuznetsova, A., Rom, H., Alldrin, N., Uijlings, J., Krasin, I., Pont-Tuset,"
            " J., et al. (2020). The Open Images dataset V4. International Journal of Computer"
            " Vision, 128(7), 1956–1981.",
            place="section 3",
            url="https://doi.org/10.1007/s11263-020-01316-z",
        ),
    ),
    licence="annotations CC BY 4.0; images CC BY 2.0",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    judgement="perceived",
    noun="objects",
    assumptions=(
        "images are independent of one another, those in one image are not",
        "a box around a group finds no single one",
    ),
)
_NO_SIZES = (
    "The pictures' sizes are not known, so boxes have no place in pixels; sizes (a table, or the"
    " folder of the pictures) gives them."
)
_SIDES = ("XMin", "XMax", "YMin", "YMax")
_FLAGS = ("IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside")


def load(
    path: str | Path, *, sizes: str | Path | None = None, names: str | Path | None = None
) -> Dataset:
    r"""Load boxes.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The CSV (``validation-annotations-bbox.csv``), or the folder that holds one.
    sizes : str or Path, optional
        Where the pictures' sizes come from: the folder of pictures, whose headers are read, or a
        table with ``image_id``, ``width`` and ``height``. Not given: boxes are null.
    names : str or Path, optional
        ``class-descriptions-boxable.csv``: a label and its name a line. Default: looked for beside
        the boxes; without it classes are called by their labels (``/m/01g317``).

    Returns
    -------
    Dataset
        ``instances``: the box in pixels, ``classes``, ``is_crowd`` (groups). ``attributes``:
        ``category`` and the flags, ``true`` or ``false``, null where they are -1.
        ``categories``: the classes' labels.

    Raises
    ------
    FileError, TableError, UnknownNameError
        No such file or column; a side outside 0 to 1, or sides that are turned over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = Path(folder)
    ...     _ = (root / "boxes.csv").write_text("ImageID,LabelName,XMin,XMax,YMin,YMax\n"
    ...                                         "7,/m/01g317,0.25,0.75,0,0.5\n")
    ...     _ = (root / "sizes.csv").write_text("image_id,width,height\n7,40,40\n")
    ...     load(root / "boxes.csv", sizes=root / "sizes.csv").instances.select(
    ...         "classes", "box_x", "box_y", "box_w", "box_h").row(0)
    (['/m/01g317'], 10.0, 0.0, 20.0, 20.0)
    """
    patterns = ("*annotations-bbox.csv", "*bbox*.csv")
    file = file_in(path, patterns, "boxes (CSV)")
    where, inputs = str(file), Inputs()
    table = inputs.read_table(file)
    require_columns(table, ("ImageID", "LabelName", *_SIDES), where)
    sides = {name: _share(table[name], where) for name in _SIDES}
    for low, high in (("XMin", "XMax"), ("YMin", "YMax")):
        _refuse(sides[high] < sides[low], f"{low} above {high}", where, low)
    ids = ids_of(table, "ImageID", where).alias("image_id")
    images = pl.DataFrame({"image_id": ids.unique(maintain_order=True)})
    images = with_sizes(images, sizes, inputs)
    unsized = images["image_id"].filter(images["width"].is_null())
    notes = (_NO_SIZES,) if sizes is None else _on_unsized(images["image_id"], unsized)
    named = _names(file.parent, names, inputs)
    labels = as_text(table["LabelName"])
    placed = left_join(pl.DataFrame([ids]), images, "image_id")
    wide, high_ = placed["width"], placed["height"]
    group = as_text(table["IsGroupOf"]) == "1" if "IsGroupOf" in table.columns else None
    crowd = pl.repeat(value=False, n=len(ids), eager=True) if group is None else group
    rows = pl.DataFrame(
        {
            "image_id": ids, "category": labels.replace(named), "box_x": sides["XMin"] * wide,
            "box_y": sides["YMin"] * high_, "box_w": (sides["XMax"] - sides["XMin"]) * wide,
            "box_h": (sides["YMax"] - sides["YMin"]) * high_,
            "ignore": crowd.fill_null(value=False), "is_crowd": crowd.fill_null(value=False),
        }
    )  # fmt: skip
    flags = [name for name in _FLAGS if name in table.columns]
    words = {"1": "true", "0": "false"}
    marks = [dict(zip(flags, row, strict=True)) for row in table.select(
        as_text(table[f]).replace_strict(words, default=None).alias(f) for f in flags).iter_rows()
    ] if flags else [{}] * len(ids)  # fmt: skip
    dataset = dataset_of_boxes(
        "open_images", INFO, rows, images.select("image_id", "uri", "width", "height"), marks,
        inputs, where, notes,
    )  # fmt: skip
    return replace(dataset, categories=named)


def _on_unsized(images: pl.Series, unsized: pl.Series) -> tuple[str, ...]:
    if not len(unsized):
        return ()
    shown = ", ".join(map(repr, unsized[:3])) + (", …" if len(unsized) > 3 else "")
    return (
        Caution(
            f"The sizes of {len(unsized):,} of {len(images):,} pictures are not known ({shown}): "
            "nobody in them has a box in pixels, so they are not judged."
        ),
    )


def _share(cells: pl.Series, where: str) -> pl.Series:
    numbers = as_numbers(cells, where=where, column=cells.name)
    _refuse(~((numbers >= 0) & (numbers <= 1 + 1e-6)), "a side outside 0 to 1", where, cells.name)
    return numbers


def _refuse(wrong: pl.Series, problem: str, where: str, column: str) -> None:
    wrong = wrong.fill_null(value=True)
    if wrong.any():
        row = row_of(wrong)
        raise TableError(f"{problem} ({wrong.sum():,} in all)", expected="shares of the picture",
                         where=place(where, row + 1, column))  # fmt: skip


def _names(folder: Path, given: str | Path | None, inputs: Inputs) -> dict[str, str]:
    file = Path(given).expanduser() if given is not None else optional_file(
        folder, ("*class-descriptions*.csv",))  # fmt: skip
    if file is None:
        return {}
    data = inputs.read(file)
    lines = decodable(data, str(file)).decode("utf-8").splitlines()
    pairs = [line.split(",", 1) for line in lines if "," in line]
    named = {label.strip(): name.strip().strip('"') for label, name in pairs}
    named.pop("LabelName", None)
    return named
