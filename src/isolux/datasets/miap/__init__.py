"""Open Images MIAP: every person in 100,000 images, with perceived gender and age presentation.

Schumann et al. (2021). Reads ``open_images_extended_miap_boxes_<split>.csv``, whose sides are parts
of the image, or the list in pixels that Fairness Indicators' code makes of it. Sizes of images are
not published with it: they come from a table or the pictures' headers (``sizes``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.datasets._attribute_rows import attribute_rows
from isolux.datasets._boxes import box_notes, checked_boxes
from isolux.datasets._clusters import clustered_as
from isolux.datasets._columns import BOX
from isolux.datasets._files import file_in, optional_file, read_file, sha256_bytes
from isolux.datasets._image_sizes import read_sizes
from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets.miap.files import FLAGS, read_json, read_rows
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.text import decodable
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import DatasetInfo, Reference
from isolux.vocabulary.tables import IMAGES, INSTANCES, check

__all__ = ["INFO", "load"]

_UNKNOWN = "Unknown"
_ATTRIBUTES = ("gender_presentation", "age_presentation")

INFO = DatasetInfo(
    title="Open Images MIAP",
    summary="454,000 boxes of people in 100,000 images; perceived gender and age presentation.",
    references=(
        Reference(
            key="miap",
            citation="Schumann, C., Ricco, S., Prabhu, U., Ferrari, V., & Pantofaru, C. (2021). A"
            " step toward more inclusive people annotations for fairness. In Proceedings of the"
            " AAAI/ACM Conference on AI, Ethics, and Society (AIES) (pp. 916–925).",
            url="https://storage.googleapis.com/openimages/web/extended.html",
        ),
    ),
    licence="annotations CC BY 4.0; images CC BY 2.0",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    judgement="perceived",
    terms=(
        ("gender_presentation", "perceived gender presentation"),
        ("age_presentation", "perceived age presentation"),
        ("is_occluded", "marked as occluded"),
        ("is_truncated", "marked as cut off by the image's edge"),
        ("is_group_of", "marked as a box around a group"),
        ("is_depiction_of", "marked as a drawing or a statue"),
        ("is_inside_of", "marked as seen from inside"),
    ),
    assumptions=(
        "images are independent of one another, people in one image are not",
        "the groups come from annotators' judgements, not from what people say about themselves",
        "everyone in an image is annotated, or covered by a box around a group",
    ),
)


def load(
    path: str | Path,
    *,
    split: Literal["train", "val", "test"] = "test",
    sizes: str | Path | None = None,
    min_side: float = 0.0,
    unknown: Literal["keep", "leave out"] = "keep",
    young: Literal["keep", "leave out"] = "keep",
    leave_out_by: Literal["box", "image"] = "box",
    left_out: Literal["go", "stay"] = "go",
) -> Dataset:
    r"""Load MIAP.

    Fairness Indicators (appendix B.2) takes ``min_side=100`` of the test split. FHIBE's comparison
    takes ``unknown="leave out", young="leave out"`` of it.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The CSV (or Fairness Indicators' JSON list), or the folder that holds the CSV and perhaps
        ``open_images_extended_miap_images_<split>.lst``.
    split : {"train", "val", "test"}
        The part of the release, as in the files' names.
    sizes : str or Path, optional
        Where image sizes come from: a table with ``image_id``, ``width`` and ``height``, or the
        folder of the images, whose headers are read. Not given: boxes are null, as sides are
        published as parts of the image. The JSON list holds pixels and needs none.
    min_side : float
        Leave out boxes of which a side is shorter, in pixels; needs ``sizes``.
    unknown : {"keep", "leave out"}
        Leave out people of whom annotators could not tell gender or age presentation.
    young : {"keep", "leave out"}
        Leave out people who are perceived as young.
    leave_out_by : {"box", "image"}
        Leave out the person alone, or everyone in an image in which one of them is left out
        (FHIBE's text speaks of images, its counts could be either).
    left_out : {"go", "stay"}
        Who is left out is not loaded; or stays, not ``judged``, to take part in matching.

    Returns
    -------
    Dataset
        ``instances``: a box, ``<image>#<place among the image's boxes from 0>``, in pixels where
        sizes are known; ``is_crowd`` and ``ignore`` for a group; ``judged``. ``attributes``:
        ``gender_presentation``, ``age_presentation`` (``Unknown`` is a value), ``is_occluded``,
        ``is_truncated``, ``is_group_of``, ``is_depiction_of``, ``is_inside_of`` (null: not known).

    Raises
    ------
    FileError, TableError, UnknownNameError
        A damaged file, a side outside the image, sides that are swapped, a word or flag that MIAP
        does not have; with the row.
    SpecError
        ``min_side`` without sizes.

    Examples
    --------
    >>> import tempfile
    >>> columns = "ImageID,XMin,XMax,YMin,YMax,GenderPresentation,AgePresentation"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     root = Path(folder)
    ...     _ = (root / "boxes.csv").write_text(f"{columns}\na1,0.5,0.75,0,1,Unknown,Older\n")
    ...     _ = (root / "sizes.csv").write_text("image_id,width,height\na1,400,300\n")
    ...     people = load(root / "boxes.csv", sizes=root / "sizes.csv").instances
    >>> people.select("instance_id", "box_x", "box_y", "box_w", "box_h").row(0)
    ('a1#0', 200.0, 0.0, 100.0, 300.0)
    """
    rule = _Rule(min_side, unknown, young, leave_out_by, left_out)
    rule.check(split)
    name = f"open_images_extended_miap_boxes_{split}.csv"
    file = file_in(Path(path).expanduser(), (name, f"**/{name}"), "MIAP boxes")
    where = str(file)
    read = _read(file, split, sizes)
    if min_side > 0 and read.boxes["box_w"].is_null().all() and read.boxes.height:
        raise SpecError(
            "boxes cannot be told apart by pixels, because no image has a known size",
            expected="sizes, a table of image_id, width and height or the folder of the images",
            found=f"min_side={min_side:g}",
            where=where,
            hint="name them with --data-option sizes=PATH (sizes=PATH)",
        )
    kept = _kept(read.boxes, rule)
    instances = check(_instances(kept.boxes), INSTANCES, where=where)
    images = check(read.images, IMAGES, where=where)
    dataset = Dataset(
        name="miap",
        info=INFO,
        instances=instances,
        attributes=attribute_rows(kept.boxes, "instance_id", (*_ATTRIBUTES, *FLAGS)),
        images=images,
        inputs=read.inputs,
        notes=(*read.notes, *kept.notes, *box_notes(instances, images)),
    )
    names = {"image": "image_id", "row": None}
    return clustered_as(dataset, default="image", names=names)


@dataclass(frozen=True, slots=True)
class _Rule:
    min_side: float
    unknown: str
    young: str
    by: str
    left_out: str

    def check(self, split: str) -> None:
        for name, value, known in (
            ("split", split, ("train", "val", "test")),
            ("unknown", self.unknown, ("keep", "leave out")),
            ("young", self.young, ("keep", "leave out")),
            ("leave_out_by", self.by, ("box", "image")),
            ("left_out", self.left_out, ("go", "stay")),
        ):
            if value not in known:
                raise SpecError(
                    f"{name} cannot be set to that", expected=" or ".join(known), found=repr(value)
                )


@dataclass(frozen=True, slots=True)
class _Read:
    boxes: pl.DataFrame
    images: pl.DataFrame
    inputs: dict[str, str]
    notes: tuple[str, ...]


def _read(file: Path, split: str, sizes: str | Path | None) -> _Read:
    """Read boxes, image ids and sizes, and bring the boxes to pixels."""
    where = str(file)
    pixels = file.suffix.lower() == ".json"
    if pixels:
        data = read_file(file)
        rows, inputs = read_json(data, where), {where: sha256_bytes(data)}
    else:
        rows, inputs = read_rows(read_table(file), where), {where: sha256_file(file)}
    refuse_outside(rows["image_id"], where, "ImageID")
    images = rows.select("image_id").unique(maintain_order=True)
    listed = optional_file(file.parent, (f"open_images_extended_miap_images_{split}.lst",))
    if listed is not None and not pixels:
        data = read_file(listed)
        inputs[str(listed)] = sha256_bytes(data)
        lines = decodable(data, str(listed)).decode("utf-8").split()
        images = pl.concat([images, pl.DataFrame({"image_id": lines})]).unique(maintain_order=True)
    known = pl.DataFrame(
        schema={"image_id": pl.String, "width": pl.Int64, "height": pl.Int64, "uri": pl.String}
    )
    if sizes is not None:
        found = read_sizes(sizes, images["image_id"])
        known, inputs = found.frame, inputs | found.inputs
    images = images.join(known, on="image_id", how="left", maintain_order="left").with_columns(
        pl.col("uri").fill_null(pl.format("{}.jpg", "image_id"))
    )
    boxes = _in_pixels(rows, images, pixels=pixels)
    return _Read(checked_boxes(boxes, where), images, inputs, _size_notes(boxes, images))


def _in_pixels(rows: pl.DataFrame, images: pl.DataFrame, *, pixels: bool) -> pl.DataFrame:
    sized = rows.join(
        images.select("image_id", "width", "height"),
        on="image_id",
        how="left",
        maintain_order="left",
    )
    wide, high = (pl.lit(1.0), pl.lit(1.0)) if pixels else (pl.col("width"), pl.col("height"))
    number = pl.int_range(pl.len()).over("image_id")
    return sized.with_columns(
        instance_id=pl.format("{}#{}", "image_id", number),
        box_x=pl.col("left") * wide,
        box_y=pl.col("top") * high,
        box_w=(pl.col("right") - pl.col("left")) * wide,
        box_h=(pl.col("bottom") - pl.col("top")) * high,
    )


def _size_notes(boxes: pl.DataFrame, images: pl.DataFrame) -> tuple[str, ...]:
    without = boxes["box_w"].null_count()
    if not without:
        return ()
    n = images.filter(pl.col("width").is_null()).height
    note = (
        f"The sizes of {n:,} of {images.height:,} images are not known, so {without:,} boxes have"
        " no place in pixels; sizes (a table, or the folder of the images) gives them."
    )
    return (note,)


@dataclass(frozen=True, slots=True)
class _Kept:
    boxes: pl.DataFrame
    notes: tuple[str, ...]


def _kept(boxes: pl.DataFrame, rule: _Rule) -> _Kept:
    """Mark who is judged; drop the others unless they stay to be matched."""
    short = (pl.col("box_w") < rule.min_side) | (pl.col("box_h") < rule.min_side)
    reasons = {
        f"a side is shorter than {rule.min_side:g} pixels": short & (rule.min_side > 0),
        "its image's size is not known": pl.col("box_w").is_null() & (rule.min_side > 0),
        "gender or age presentation is unknown": pl.any_horizontal(
            pl.col(name).is_null() | (pl.col(name) == _UNKNOWN) for name in _ATTRIBUTES
        )
        & (rule.unknown == "leave out"),
        "age presentation is young": (pl.col("age_presentation") == "Young")
        & (rule.young == "leave out"),
    }
    flags = boxes.select(
        flag.fill_null(value=False).alias(reason) for reason, flag in reasons.items()
    )
    out = flags.select(out=pl.any_horizontal(pl.all()))["out"]
    marked = boxes.with_columns(out=out)
    if rule.by == "image":
        marked = marked.with_columns(pl.col("out").any().over("image_id"))
    marked = marked.with_columns(judged=~pl.col("out")).drop("out")
    left = marked.height - int(marked["judged"].sum())
    if not left:
        return _Kept(marked, ())
    counts = ", ".join(
        f"{n:,} as {reason}" for reason, n in flags.sum().row(0, named=True).items() if n
    )
    says = "are left out" if rule.left_out == "go" else "take part in matching and are not judged"
    whole = ", with everyone in their images" if rule.by == "image" else ""
    note = f"{left:,} of {marked.height:,} boxes {says}: {counts} (a box may have several){whole}."
    return _Kept(marked.filter("judged") if rule.left_out == "go" else marked, (note,))


def _instances(boxes: pl.DataFrame) -> pl.DataFrame:
    crowd = pl.col("is_group_of").fill_null(value=False)
    return boxes.select(
        "instance_id",
        "image_id",
        pl.lit(["person"]).alias("classes"),
        *BOX,
        (pl.col("box_w") * pl.col("box_h")).alias("area"),
        crowd.alias("is_crowd"),
        crowd.alias("ignore"),
        "judged",
    )
