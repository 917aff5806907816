"""The worst misses of each group as pictures: a page of its own, never part of the report.

Off unless asked for. Pictures of people may be shown only where the dataset's licence says so, or
where the user states that they may; and a person who withdraws their consent must
not live on in a report: the page is one file that can be deleted, says whom it shows, and is made
from the dataset as it is now, so that people who have left it are not shown.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.core.containers import Dataset, Run
from isolux.core.errors import FileError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.spec import read_recorded_spec
from isolux.core.tables import INSTANCES
from isolux.groups import build_membership, read_groupings
from isolux.groups.unknown_values import UNKNOWN
from isolux.io import write_text
from isolux.io.images import read_image
from isolux.io.paths import resolve_inside
from isolux.io.record_paths import make_paths_relative
from isolux.report.html import render_run_page
from isolux.report.summary import summarise_run_record
from isolux.statements.metric_lines import MetricLine

if TYPE_CHECKING:
    from PIL.Image import Image

THUMBNAIL_PX = 240
"""The longer side of a picture in the gallery."""

_OPEN = re.compile(r"(CC0|CC BY|public domain)(?![- ]*(NC|ND))(?!.*;)", re.IGNORECASE)
_BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")
_MARGIN_RATIO = 0.75  # of the box's longer side, on each side of it
_MIN_MARGIN_PX = 24


@dataclass(frozen=True, slots=True)
class GalleryImage:
    """One person: who, how they fared, the picture as a data address or why there is none."""

    unit_id: str
    value: float
    data_url: str
    missing_reason: str = ""


@dataclass(frozen=True, slots=True)
class GroupPictures:
    """The worst misses of one group, the worst first."""

    attribute: str
    group: str
    n_missed: int
    pictures: tuple[GalleryImage, ...]


@dataclass(frozen=True, slots=True)
class Gallery:
    """What was written: where, how many people it shows, and what was left out."""

    path: Path
    n_shown: int
    notes: tuple[str, ...]


def write_error_gallery(
    run: Run,
    dataset: Dataset,
    path: str | Path,
    *,
    images: str | Path,
    per_group: int,
    may_show: bool = False,
) -> Gallery:
    """Write the pictures of those who fared worst in each group, with their boxes."""
    if per_group < 1:
        raise SpecError(
            "a gallery without people", expected="1 or more a group", found=str(per_group)
        )
    check_image_permission(dataset.info, may_show=may_show)
    root = Path(images).expanduser()
    if not root.is_dir():
        raise FileError("there is no such folder of images", where=str(root))
    base, context = summarise_run_record(run)
    if not context.lines:
        raise SpecError("nothing was scored, so there are no people to show", expected="a metric")
    key, line = next(iter(context.lines.items()))
    worst = _list_worst_people_by_group(
        run, dataset, dict(zip(("model", "task", "metric"), key, strict=False)), line
    )
    gallery_images = _GalleryImages(root)
    groups = [
        GroupPictures(
            attribute=context.format_attribute_title(str(attribute)),
            group=str(group),
            n_missed=group_rows.height,
            pictures=tuple(
                gallery_images.load_or_reuse(row)
                for row in group_rows.head(per_group).iter_rows(named=True)
            ),
        )
        for (attribute, group), group_rows in worst.group_by(
            "attribute", "group", maintain_order=True
        )
    ]
    notes = (*_describe_dataset_change(run, dataset), *_describe_missing_images(gallery_images))
    text = render_run_page(
        "gallery.html.j2",
        title=f"Worst misses: {base.title}",
        answer="",
        summary=replace(base, answer=""),
        groups=[group for group in groups if group.pictures],
        line=line,
        info=dataset.info,
        notes=notes,
        people=sorted(unit for unit, picture in gallery_images.known.items() if picture.data_url),
    )
    return Gallery(
        write_text(path, text),
        len(gallery_images.known) - len(gallery_images.missing_images),
        notes,
    )


def check_image_permission(info: DatasetInfo, *, may_show: bool) -> None:
    """Refuse to show pictures, unless the licence or the user says that they may be shown."""
    if may_show or _OPEN.match(info.licence):
        return
    licence_text = f"{info.title}: {info.licence}"
    raise SpecError(
        "this dataset's licence does not say that its pictures may be shown",
        expected="a licence such as CC BY, or your own statement that you may show them",
        found=f"{licence_text}; {info.withdrawal}" if info.withdrawal else licence_text,
        hint="if you may, say so with --confirm-image-rights; delete the page when a person "
        "withdraws",
    )


def _list_worst_people_by_group(
    run: Run, dataset: Dataset, score_filters: dict[str, Any], line: MetricLine
) -> pl.DataFrame:
    """List each group's people who fared less than best, the worst first, with their image."""
    scores = run.scores.filter(
        *(pl.col(name) == key_value for name, key_value in score_filters.items()),
        pl.col("label").eq_missing(pl.lit(line.label, pl.String)),
        pl.col("threshold").eq_missing(pl.lit(line.threshold, pl.Float64)),
        pl.col("value").is_not_null(),
    ).select("unit_id", "value")
    lower_is_better = line.direction == "lower"
    if line.unit == "fraction":
        scores = scores.filter(pl.col("value") > 0 if lower_is_better else pl.col("value") < 1)
    people = _read_image_paths_and_boxes(dataset)
    settings = read_recorded_spec(run.record).groups
    units = scores["unit_id"].unique(maintain_order=True)
    members = build_membership(
        run.attributes, settings.by, read_groupings(settings, run.attributes), units=units
    ).frame.filter(pl.col("values").list.contains(UNKNOWN).not_())
    return (
        members.select("attribute", "group", "unit_id")
        .join(scores, on="unit_id", maintain_order="left")
        # A person who has left the dataset since is in no picture, no count and no list of ids.
        .join(people, on="unit_id", how="inner", maintain_order="left")
        .with_columns(_sense=pl.col("value") if not lower_is_better else -pl.col("value"))
        .with_row_index("_row")
        .with_columns(_group=pl.col("_row").min().over("attribute", "group"))
        .sort("_group", "_sense", "_area", "unit_id", descending=[False, False, True, False])
    )


def _read_image_paths_and_boxes(dataset: Dataset) -> pl.DataFrame:
    """List each person's image path and box; the image's name where it has no path."""
    people = INSTANCES.conform(dataset.instances)
    missing_columns = [
        pl.lit(None, pl.Float64).alias(c) for c in _BOX_COLUMNS if c not in people.columns
    ]
    people = people.with_columns(missing_columns).select(
        "image_id", *_BOX_COLUMNS, unit_id="instance_id"
    )
    if "uri" in dataset.images.columns:
        paths = dataset.images.select("image_id", "uri")
        people = people.join(paths, on="image_id", how="left", maintain_order="left")
    else:
        people = people.with_columns(uri=pl.lit(None, pl.String))
    area = (pl.col("box_w") * pl.col("box_h")).fill_null(0.0).fill_nan(0.0)
    return people.with_columns(pl.coalesce("uri", "image_id").alias("uri"), _area=area)


class _GalleryImages:
    """Pictures as they are read, each person once, and why some are missing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.known: dict[str, GalleryImage] = {}

    @property
    def missing_images(self) -> list[GalleryImage]:
        return [picture for picture in self.known.values() if not picture.data_url]

    def load_or_reuse(self, person_row: dict[str, Any]) -> GalleryImage:
        unit = person_row["unit_id"]
        if unit not in self.known:
            self.known[unit] = self._load_image(person_row)
        return self.known[unit]

    def _load_image(self, person_row: dict[str, Any]) -> GalleryImage:
        unit, score, uri = person_row["unit_id"], person_row["value"], person_row["uri"]
        if uri is None:
            return GalleryImage(unit, score, "", "no path to a picture")
        try:
            pixels = read_image(resolve_inside(self.root, uri))
        except FileError as error:
            return GalleryImage(unit, score, "", str(error).splitlines()[0])
        box = [person_row[box_column] for box_column in _BOX_COLUMNS]
        return GalleryImage(unit, score, _to_jpeg_data_url(_crop_person_thumbnail(pixels, box)))


def _crop_person_thumbnail(pixels: Any, box_xywh: Sequence[float | None]) -> Image:
    """Cut out the person with some of what is around, and draw the box: white next to black."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(pixels)
    box_values = [edge for edge in box_xywh if edge is not None]
    if len(box_values) < len(box_xywh) or not all(
        abs(edge) < 1e9 for edge in box_values
    ):  # NaN is not below
        image.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX))
        return image
    x, y, w, h = box_values
    around = max(_MARGIN_RATIO * max(w, h), _MIN_MARGIN_PX)
    left_px, top = max(0, int(x - around)), max(0, int(y - around))
    right, bottom = min(image.width, int(x + w + around)), min(image.height, int(y + h + around))
    if right <= left_px or bottom <= top:  # a box outside its picture
        left_px, top, right, bottom = 0, 0, image.width, image.height
    cut = image.crop((left_px, top, right, bottom))
    scale = THUMBNAIL_PX / max(cut.size)
    cut = cut.resize((max(1, round(cut.width * scale)), max(1, round(cut.height * scale))))
    draw = ImageDraw.Draw(cut)
    corners = [
        (x - left_px) * scale,
        (y - top) * scale,
        (x + w - left_px) * scale,
        (y + h - top) * scale,
    ]
    if corners[2] >= corners[0] and corners[3] >= corners[1]:
        draw.rectangle(corners, outline=(255, 255, 255), width=3)
        draw.rectangle(
            [corners[0] - 1, corners[1] - 1, corners[2] + 1, corners[3] + 1], outline=(0, 0, 0)
        )
    return cut


def _to_jpeg_data_url(image: Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=80)  # written anew: EXIF and its places stay behind
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def _describe_dataset_change(run: Run, dataset: Dataset) -> list[str]:
    recorded_hashes = dict(run.record.get("inputs") or {})
    current_hashes = {
        **make_paths_relative(dict(dataset.inputs)),
        **dataset.inputs,
    }  # as either kind of record names it
    if any(recorded_hashes.get(file, digest) != digest for file, digest in current_hashes.items()):
        return ["The dataset has changed since the audit; people who have left it are not shown."]
    return []


def _describe_missing_images(gallery_images: _GalleryImages) -> list[str]:
    reasons = pl.Series(
        [picture.missing_reason for picture in gallery_images.missing_images], dtype=pl.String
    )
    counts = reasons.value_counts().sort(reasons.name)
    return [
        f"{n:,} {'picture was' if n == 1 else 'pictures were'} left out: {reason}."
        for reason, n in counts.iter_rows()
    ]
