"""CVAT's own XML (for images 1.1, for video 1.1): boxes and polygons of all images in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl

from isolux.datasets._drawn import dataset_of_boxes, number_in, parsed
from isolux.datasets._files import Inputs, file_in
from isolux.io.ids import reduced
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.info import DatasetInfo, Reference

INFO = DatasetInfo(
    title="CVAT XML",
    summary="Boxes and polygons with attributes, as CVAT exports them for images and videos.",
    references=(
        Reference(
            key="cvat",
            citation="CVAT.ai Corporation. Computer Vision Annotation Tool: CVAT for images.",
            place="XML annotation format, version 1.1",
            url="https://docs.cvat.ai/docs/manual/advanced/xml_format/",
        ),
    ),
    licence="the licence of your annotations",
    judgement="declared by the user",
    assumptions=(
        "images are independent of one another, those in one image are not",
        "a polygon is taken by the box around it",
    ),
)

_MOST = 1_000_000  # frames of a video


def load(path: str | Path) -> Dataset:
    """Load boxes.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        ``annotations.xml``, or the folder that holds it.

    Returns
    -------
    Dataset
        ``images``: named by their file's name without its suffix; frames of a video (CVAT for
        video) as ``frame_000012``. ``instances``: the box in pixels (of a polygon the one around
        it), ``classes``. ``attributes``: ``category``, ``occluded`` and those of CVAT; of a video
        ``track``, which is the cluster where none is named.

    Raises
    ------
    FileError, TableError
        No such file, no XML or another kind; a box that lacks a number or is turned over.

    Examples
    --------
    >>> import tempfile
    >>> box = '<box label="dog" occluded="0" xtl="4" ytl="5" xbr="24" ybr="35"/>'
    >>> image = f'<image id="0" name="a/7.jpg" width="64" height="48">{box}</image>'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "annotations.xml"
    ...     _ = file.write_text(f"<annotations>{image}</annotations>")
    ...     load(folder).instances.select("image_id", "classes", "box_w", "box_h").row(0)
    ('7', ['dog'], 20.0, 30.0)
    """
    file = file_in(path, ("annotations.xml", "*.xml"), "annotations (XML)")
    inputs, where = Inputs(), str(file)
    tree = parsed(inputs.read(file), where, "annotations")
    tracks = tree.findall("track")
    if tracks and tree.find("image") is not None:
        raise TableError(
            "images and tracks are in the same file",
            expected="<image> or <track>",
            found="both",
            where=where,
        )
    read = _of_tracks(tree, tracks, where) if tracks else _of_images(tree, where)
    schema = {"image_id": pl.String, "uri": pl.String, "width": pl.Int64, "height": pl.Int64}
    return dataset_of_boxes(
        "cvat",
        INFO,
        read.rows,
        pl.DataFrame(read.images, schema=schema),
        read.marks,
        inputs,
        where,
        read.notes,
        cluster="track" if tracks else "image",
    )


@dataclass(slots=True)
class _Read:
    """Boxes, what is marked on each, and the images, as they stand in a file."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    marks: list[dict[str, str | None]] = field(default_factory=list)
    images: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def _of_images(tree: Element, where: str) -> _Read:
    found = _Read()
    for one in tree.iterfind("image"):
        name = one.get("name", one.get("id", ""))
        sides = {side: int(number_in(one.get(side), where, side)) for side in ("width", "height")}
        image = reduced(pl.Series([name]), "stem")[0]
        found.images.append({"image_id": image, "uri": name, **sides})
        for shape in one:
            box = _box(shape, f"{where}, image {name!r}")
            if box is not None:
                found.rows.append({"image_id": image, **box})
                found.marks.append(_marks(shape))
    return found


def _of_tracks(tree: Element, tracks: list[Element], where: str) -> _Read:
    """Read a video: a box for each frame in which a track is inside the picture."""
    found = _Read()
    sides = {
        side: next(
            (
                int(number_in(text, where, side))
                for text in (one.text for one in tree.iterfind(f"meta//original_size/{side}"))
            ),
            None,
        )
        for side in ("width", "height")
    }
    frames: set[int] = set()
    for k, track in enumerate(tracks):
        at = f"{where}, track {track.get('id', k)}"
        for shape in track:
            if shape.get("frame") is None:
                continue
            frame = int(number_in(shape.get("frame"), at, "frame"))
            frames.add(frame)
            shape.set("label", track.get("label", ""))
            box = None if shape.get("outside") == "1" else _box(shape, at)
            if box is not None:
                found.rows.append({"image_id": _frame(frame), **box})
                found.marks.append({**_marks(shape), "track": track.get("id", str(k))})
    every = sorted(frames | _told_frames(tree))
    found.images = [{"image_id": _frame(f), "uri": None, **sides} for f in every]
    if not every:
        raise TableError(
            "no track has a box in any frame",
            expected="<box frame=…> or <polygon>",
            found=f"{len(tracks):,} tracks",
            where=where,
        )
    note = (
        f"{len(tracks):,} tracks over {len(every):,} frames, named as {_frame(every[0])}; a track "
        "is a cluster, because the same person a frame later is not another person."
    )
    found.notes = (note,)
    return found


def _told_frames(tree: Element) -> set[int]:
    """List the frames that the task holds, also those without a track, where the file says so."""
    ends = [
        next((one.text for one in tree.iterfind(f"meta//{name}")), None)
        for name in ("start_frame", "stop_frame")
    ]
    step = next((one.text for one in tree.iterfind("meta//frame_filter")), None)
    try:
        first, last = (int(end or "") for end in ends)
    except ValueError:
        return set()
    return set(range(first, last + 1)) if not step and 0 <= last - first < _MOST else set()


def _frame(number: int) -> str:
    """Name a frame as CVAT does where it exports pictures."""
    return f"frame_{number:06d}"


def _box(shape: Element, where: str) -> dict[str, Any] | None:
    if shape.tag == "box":
        names = ("xtl", "ytl", "xbr", "ybr")
        left, top, right, bottom = (number_in(shape.get(n), where, n) for n in names)
    elif shape.tag == "polygon":
        pairs = [pair.split(",") for pair in (shape.get("points") or "").split(";") if pair]
        points = [[number_in(part, where, "points") for part in pair] for pair in pairs]
        if len(points) < 3 or any(len(point) != 2 for point in points):
            raise TableError(
                "a polygon is not made of points",
                expected="x,y;x,y;x,y",
                found=repr(shape.get("points"))[:80],
                where=where,
            )
        xs, ys = zip(*points, strict=True)
        left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    else:
        return None
    return {
        "category": shape.get("label"),
        "box_x": left,
        "box_y": top,
        "box_w": right - left,
        "box_h": bottom - top,
        "ignore": False,
        "is_crowd": False,
    }


def _marks(shape: Element) -> dict[str, str | None]:
    own = {"occluded": {"1": "true", "0": "false"}.get(shape.get("occluded", ""))}
    for each in shape.iterfind("attribute"):
        if name := each.get("name"):
            own[name] = (each.text or "").strip() or None
    return own
