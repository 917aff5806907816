"""An inbox as files: photos with Exif as cameras write it, the sheets, and the truth beside them.

::

    photos/                 what was sent in
    photos.csv, subjects.csv, devices.csv, granted.txt     what `isolux curate` is given
    truth/photos.csv        each photo's fault and where it should leave
    truth/people.csv        everyone in the photos: box, outline, class, every attribute
    truth/subjects.csv      each person's fault
    later.txt               someone without a fault, who withdraws once all is published
    truth/world.json        how many photos were drawn from which seed
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.atomic import staged_directory, write_text
from isolux.io.csv_text import to_safe_csv
from isolux_worlds.drawing import measure_visible_people, render_photos
from isolux_worlds.marker import write_folder_marker
from isolux_worlds.rehearsal.fault_assignment import FAULTS
from isolux_worlds.rehearsal.inbox import DEVICES, OLD, Inbox

__all__ = ["MARKS", "SERIAL", "write_inbox"]

Pixels = npt.NDArray[np.uint8]
MARKS = ("photos.csv", "truth/world.json")
"""The files that make a folder an inbox; one without them is never replaced."""
SERIAL = "SN-48151623"
"""Stands in every photo's Exif, beside a name and a position: none of it may be published."""
_MAKE, _MODEL, _SOFTWARE, _ARTIST = 0x010F, 0x0110, 0x0131, 0x013B
_EXIF_TAKEN_AT, _EXIF_SERIAL, _EXIF_WIDTH, _EXIF_HEIGHT = 0x9003, 0xA431, 0xA002, 0xA003
_ZOOM, _RENDERED, _EXIF_IFD, _GPS_IFD = 0xA404, 0xA401, 0x8769, 0x8825
_INNER: Mapping[str, Mapping[int, Any]] = {
    "zoomed": {_ZOOM: 2.5},
    "panorama": {_RENDERED: 6},
    "portrait mode": {_RENDERED: 8},
    "cropped": {_EXIF_WIDTH: 4000, _EXIF_HEIGHT: 3000},
}
_SIZES = {"too few pixels": (160, 120), "too long": (640, 240)}
_SEPIA = np.array([[0.39, 0.77, 0.19], [0.35, 0.69, 0.17], [0.27, 0.53, 0.13]])
_QUALITY, _RESAVED_QUALITY = 90, 70


def write_inbox(inbox: Inbox, folder: str | Path, *, overwrite: bool = False) -> pl.DataFrame:
    """Paint the photos and write the sheets and the truth."""
    target = Path(folder).expanduser()
    with staged_directory(target, overwrite=overwrite, marks=MARKS, folder_kind="inbox") as stage:
        (stage / "photos").mkdir()
        (stage / "truth").mkdir()
        people = _paint_photos(inbox, stage / "photos")
        write_folder_marker(stage / "photos", "`isolux rehearse`")
        for name, table in _build_sheets(inbox, people).items():
            write_text(stage / name, to_safe_csv(table))
        granted = inbox.subjects.filter("consent")["subject_id"]
        write_text(stage / "granted.txt", "\n".join(granted) + "\n")
        withdrawn_ids = inbox.subjects.filter(fault="withdrawn")["subject_id"]
        write_text(stage / "withdrawn.txt", "\n".join(withdrawn_ids) + "\n")
        write_text(stage / "later.txt", f"{_choose_later_withdrawal(inbox)}\n")
        world_record = {"seed": inbox.world.seed, "photos": inbox.photos.height}
        write_text(stage / "truth" / "world.json", json.dumps(world_record))
    return people


def _choose_later_withdrawal(inbox: Inbox) -> str:
    """Choose who withdraws later: the person with most photos, none of which has a fault."""
    faults = inbox.photos.select("image_id", "fault")
    fault = inbox.people.filter("stands").join(faults, on="image_id")
    by_subject = fault.group_by("subject_id").agg(n=pl.len(), whole=pl.col("fault").is_null().all())
    ordered = by_subject.filter("whole").sort("n", "subject_id", descending=[True, False])
    return str(ordered["subject_id"][0])


def _paint_photos(inbox: Inbox, folder: Path) -> pl.DataFrame:
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in inbox.photos.iter_rows(named=True):
        rows.setdefault(row["source"], []).append(row)
    tables = []
    for picture in render_photos(inbox.world, rows):
        photo_rows = rows[picture.image_id]
        for row in photo_rows:
            original = photo_rows[0] if row["fault"] in ("sent twice", "sent by another") else row
            (folder / row["file"]).write_bytes(_encode_photo(original, picture.pixels))
        people = measure_visible_people(inbox.world, picture)
        tables.append(people.select("image_id", "person_id", *_BOX, "mask_counts"))
    boxes = pl.concat(tables).rename({"image_id": "source"})
    unpainted_people = inbox.people.drop(*_BOX, "joints_x", "joints_y", "layer")
    return unpainted_people.join(
        boxes, on=["source", "person_id"], how="left", maintain_order="left"
    )


_BOX = ("box_x", "box_y", "box_w", "box_h")


def _build_sheets(inbox: Inbox, people: pl.DataFrame) -> dict[str, pl.DataFrame]:
    photos = inbox.photos
    subject_rows = people.filter("stands").select("image_id", "subject_id")
    sheet_columns = photos.select("image_id", "file", "copyright", "place", taken_in="country_seen")
    fault_rules = pl.DataFrame(
        [(f.name, f.finder, f.step, f.rule) for f in FAULTS],
        schema=["fault", "finder", "step", "rule"],
        orient="row",
    )
    fault_rows = photos.select(
        "image_id", "source", "fault", "of", "country", "country_seen", "place"
    )
    devices = pl.DataFrame([*DEVICES, OLD], schema=["make", "model", "year"], orient="row")
    return {
        "photos.csv": sheet_columns.join(subject_rows, on="image_id", maintain_order="left"),
        "subjects.csv": inbox.subjects.drop("consent", "fault"),
        "devices.csv": devices,
        "truth/photos.csv": fault_rows.join(
            fault_rules, on="fault", how="left", maintain_order="left"
        ),
        "truth/people.csv": people,
        "truth/subjects.csv": inbox.subjects.select("subject_id", "fault"),
    }


def _encode_photo(row: Mapping[str, Any], pixels: Pixels) -> bytes:
    """Encode one photo, with its fault."""
    from PIL import Image

    fault = row["fault"]
    if fault == "hidden filter":
        pixels = np.clip(pixels @ _SEPIA.T, 0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels)
    if fault in _SIZES:
        picture = picture.resize(_SIZES[fault])
    if fault == "logo":
        _paint_logo_in_corner(picture)
    exif = Image.Exif()
    if fault != "no Exif":
        _write_exif_tags(exif, row, picture.size)
    file = io.BytesIO()
    image_format = "PNG" if fault == "PNG named JPEG" else "JPEG"
    quality = _RESAVED_QUALITY if fault == "saved anew" else _QUALITY
    picture.save(
        file, image_format, exif=exif, **({"quality": quality} if image_format == "JPEG" else {})
    )
    content = file.getvalue()
    return content[: len(content) // 3] if fault == "damaged file" else content


def _paint_logo_in_corner(picture: Any) -> None:
    """Paint a maker's sign into a corner."""
    from PIL import ImageDraw

    pen = ImageDraw.Draw(picture)
    width, height = picture.size
    pen.rectangle((width - 70, height - 34, width - 6, height - 6), fill=(204, 0, 0))
    pen.text((width - 58, height - 28), "ACME (R)", fill="white")


def _write_exif_tags(exif: Any, row: Mapping[str, Any], size: Sequence[int]) -> None:
    exif[_MAKE], exif[_MODEL], exif[_ARTIST] = row["make"], row["model"], f"home {row['source']}"
    exif[_SOFTWARE] = "Adobe Photoshop 26" if row["fault"] == "editor named" else "1.4.2"
    inner: dict[int, Any] = {
        _EXIF_TAKEN_AT: row["taken"].strftime("%Y:%m:%d %H:%M:%S"),
        _EXIF_SERIAL: SERIAL,
    }
    inner |= {_EXIF_WIDTH: size[0], _EXIF_HEIGHT: size[1]} | dict(
        _INNER.get(row["fault"] or "", {})
    )
    exif.get_ifd(_EXIF_IFD).update(inner)
    exif.get_ifd(_GPS_IFD).update({1: "N", 2: (48.0, 12.0, 7.0), 3: "E", 4: (16.0, 22.0, 3.0)})
