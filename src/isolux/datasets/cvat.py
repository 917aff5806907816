"""CVAT's own XML (for images 1.1, for video 1.1): boxes and polygons of all images in a file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import TableError
from isolux.core.info import DatasetInfo, Reference
from isolux.core.notes import Caution
from isolux.datasets._box_annotations import (
    build_box_dataset,
    parse_finite_number,
    parse_xml_with_root,
)
from isolux.datasets._files import Inputs, find_single_file
from isolux.io.ids import reduce_ids

INFO = DatasetInfo(
    title="CVAT XML",
    summary="Boxes and polygons with attributes, as CVAT exports them for images and videos.",
    references=(
        Reference(
            key="cvat",
            citation="CVAT.ai Corporation. Computer Vision Annotation Tool: CVAT for images.",
            location="XML annotation format, version 1.1",
            url="https://docs.cvat.ai/docs/manual/advanced/xml_format/",
        ),
    ),
    licence="the licence of your annotations",
    label_source="declared by the user",
    assumptions=(
        "images are independent of one another, those in one image are not",
        "a polygon, mask, ellipse or turned box is taken by the box around it",
    ),
)

_Corners = tuple[float, float, float, float]  # left, upper, right and lower edge in pixels
_MAX_FRAMES = 1_000_000  # frames of a video


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
        video) as ``frame_000012``. ``instances``: the box in pixels (of a polygon, mask, ellipse
        or turned box the one around it), ``classes``. ``attributes``: ``category``, ``occluded``
        and those of CVAT; of a video ``track``, which is the cluster where none is named.

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
    file = find_single_file(path, ("annotations.xml", "*.xml"), "annotations (XML)")
    inputs, source = Inputs(), str(file)
    tree = parse_xml_with_root(inputs.read(file), source, "annotations")
    tracks = tree.findall("track")
    if tracks and tree.find("image") is not None:
        raise TableError(
            "images and tracks are in the same file",
            expected="<image> or <track>",
            found="both",
            where=source,
        )
    annotations = (
        _read_cvat_tracks(tree, tracks, source) if tracks else _read_cvat_images(tree, source)
    )
    schema = {"image_id": pl.String, "uri": pl.String, "width": pl.Int64, "height": pl.Int64}
    unread_note = _note_unread_shapes(tracks or tree.findall("image"))
    return build_box_dataset(
        "cvat",
        INFO,
        annotations.rows,
        pl.DataFrame(annotations.images, schema=schema),
        annotations.marks,
        inputs,
        source,
        (*annotations.notes, *unread_note),
        cluster="track" if tracks else "image",
    )


def _note_unread_shapes(parents: list[Element]) -> tuple[str, ...]:
    """Count what has no box around it that is read: lines, points, tags of images."""
    tags = Counter(shape.tag for parent in parents for shape in parent)
    unread = {tag: n for tag, n in sorted(tags.items()) if tag not in _CORNER_READERS}
    if not unread:
        return ()
    counts = ", ".join(f"{n:,} {tag}" for tag, n in unread.items())
    return (Caution(f"Shapes and tags of these kinds are not read: {counts}."),)


@dataclass(slots=True)
class _CvatAnnotations:
    """Boxes, what is marked on each, and the images, as they stand in a file."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    marks: list[dict[str, str | None]] = field(default_factory=list)
    images: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def _read_cvat_images(tree: Element, source: str) -> _CvatAnnotations:
    annotations = _CvatAnnotations()
    for image_element in tree.iterfind("image"):
        name = image_element.get("name", image_element.get("id", ""))
        size_px = {
            dimension: int(parse_finite_number(image_element.get(dimension), source, dimension))
            for dimension in ("width", "height")
        }
        image_id = reduce_ids(pl.Series([name]), "stem")[0]
        annotations.images.append({"image_id": image_id, "uri": name, **size_px})
        for shape in image_element:
            box = _read_cvat_box_or_none(shape, f"{source}, image {name!r}")
            if box is not None:
                annotations.rows.append({"image_id": image_id, **box})
                annotations.marks.append(_read_cvat_attributes(shape))
    return annotations


def _read_cvat_tracks(tree: Element, tracks: list[Element], source: str) -> _CvatAnnotations:
    """Read a video: a box for each frame in which a track is inside the picture."""
    annotations = _CvatAnnotations()
    size_px = {
        dimension: next(
            (
                int(parse_finite_number(text, source, dimension))
                for text in (
                    size_element.text
                    for size_element in tree.iterfind(f"meta//original_size/{dimension}")
                )
            ),
            None,
        )
        for dimension in ("width", "height")
    }
    frames: set[int] = set()
    for k, track in enumerate(tracks):
        location = f"{source}, track {track.get('id', k)}"
        for shape in track:
            if shape.get("frame") is None:
                continue
            frame = int(parse_finite_number(shape.get("frame"), location, "frame"))
            frames.add(frame)
            shape.set("label", track.get("label", ""))
            box = None if shape.get("outside") == "1" else _read_cvat_box_or_none(shape, location)
            if box is not None:
                annotations.rows.append({"image_id": _format_cvat_frame_name(frame), **box})
                annotations.marks.append(
                    {**_read_cvat_attributes(shape), "track": track.get("id", str(k))}
                )
    all_frames = sorted(frames | _list_task_frames(tree))
    annotations.images = [
        {"image_id": _format_cvat_frame_name(f), "uri": None, **size_px} for f in all_frames
    ]
    if not all_frames:
        raise TableError(
            "no track has a box in any frame",
            expected="<box frame=…> or <polygon>",
            found=f"{len(tracks):,} tracks",
            where=source,
        )
    note = (
        f"{len(tracks):,} tracks over {len(all_frames):,} frames, named as "
        f"{_format_cvat_frame_name(all_frames[0])}; a track "
        "is a cluster, because the same person a frame later is not another person."
    )
    annotations.notes = (note,)
    return annotations


def _list_task_frames(tree: Element) -> set[int]:
    """List the frames that the task holds, also those without a track, where the file says so."""
    frame_texts = [
        next((element.text for element in tree.iterfind(f"meta//{name}")), None)
        for name in ("start_frame", "stop_frame")
    ]
    step = next((element.text for element in tree.iterfind("meta//frame_filter")), None)
    try:
        first, last = (int(end or "") for end in frame_texts)
    except ValueError:
        return set()
    return set(range(first, last + 1)) if not step and 0 <= last - first < _MAX_FRAMES else set()


def _format_cvat_frame_name(number: int) -> str:
    """Name a frame as CVAT does where it exports pictures."""
    return f"frame_{number:06d}"


def _read_cvat_box_or_none(shape: Element, source: str) -> dict[str, Any] | None:
    read_corners = _CORNER_READERS.get(shape.tag)
    if read_corners is None:
        return None
    x_min, y_min, x_max, y_max = read_corners(shape, source)
    return {
        "category": shape.get("label"),
        "box_x": x_min,
        "box_y": y_min,
        "box_w": x_max - x_min,
        "box_h": y_max - y_min,
        "ignore": False,
        "is_crowd": False,
    }


def _read_numbers(shape: Element, source: str, *names: str) -> list[float]:
    return [parse_finite_number(shape.get(name), source, name) for name in names]


def _read_rotation(shape: Element, source: str) -> tuple[float, float]:
    """Return the cosine and sine of the angle by which a shape is turned about its centre."""
    angle = math.radians(parse_finite_number(shape.get("rotation", "0"), source, "rotation"))
    return abs(math.cos(angle)), abs(math.sin(angle))


def _read_box_corners(shape: Element, source: str) -> _Corners:
    x_min, y_min, x_max, y_max = _read_numbers(shape, source, "xtl", "ytl", "xbr", "ybr")
    if not shape.get("rotation"):
        return x_min, y_min, x_max, y_max
    cos, sin = _read_rotation(shape, source)
    width, height = x_max - x_min, y_max - y_min
    x_radius, y_radius = (width * cos + height * sin) / 2, (width * sin + height * cos) / 2
    x, y = (x_min + x_max) / 2, (y_min + y_max) / 2
    return x - x_radius, y - y_radius, x + x_radius, y + y_radius


def _read_polygon_corners(shape: Element, source: str) -> _Corners:
    pairs = [pair.split(",") for pair in (shape.get("points") or "").split(";") if pair]
    points = [
        [parse_finite_number(coordinate, source, "points") for coordinate in pair] for pair in pairs
    ]
    if len(points) < 3 or any(len(point) != 2 for point in points):
        raise TableError(
            "a polygon is not made of points",
            expected="x,y;x,y;x,y",
            found=repr(shape.get("points"))[:80],
            where=source,
        )
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _read_mask_corners(shape: Element, source: str) -> _Corners:
    x_min, y_min, width, height = _read_numbers(shape, source, "left", "top", "width", "height")
    return x_min, y_min, x_min + width, y_min + height


def _read_ellipse_corners(shape: Element, source: str) -> _Corners:
    x, y, x_axis, y_axis = _read_numbers(shape, source, "cx", "cy", "rx", "ry")
    cos, sin = _read_rotation(shape, source)
    x_radius = math.hypot(x_axis * cos, y_axis * sin)
    y_radius = math.hypot(x_axis * sin, y_axis * cos)
    return x - x_radius, y - y_radius, x + x_radius, y + y_radius


_CORNER_READERS: dict[str, Callable[[Element, str], _Corners]] = {
    "box": _read_box_corners,
    "polygon": _read_polygon_corners,
    "mask": _read_mask_corners,
    "ellipse": _read_ellipse_corners,
}


def _read_cvat_attributes(shape: Element) -> dict[str, str | None]:
    values_by_name = {"occluded": {"1": "true", "0": "false"}.get(shape.get("occluded", ""))}
    for attribute_element in shape.iterfind("attribute"):
        if name := attribute_element.get("name"):
            values_by_name[name] = (attribute_element.text or "").strip() or None
    return values_by_name
