"""BDD100K: driving frames with boxes of road users, weather, scene and time of day.

Yu et al. (2020). Reads the detection or tracking labels in Scalabel's JSON. Frames of one video
show the same street and the same people, so a video is what was sampled. With the videos' places
and a user's own districts and incomes, frames get the income of where they were taken (ICON²).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import TableError, format_location
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, check
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._files import Inputs, find_single_file
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._tables import (
    build_clustered_dataset,
    build_rows_of_one_attribute,
    left_join_in_order,
    melt_columns_to_attribute_rows,
)
from isolux.datasets.bdd100k.districts import find_video_districts_or_none
from isolux.datasets.bdd100k.scalabel import ScalabelTables, parse_scalabel_json
from isolux.io.cell_parsing import first_true_row

CATEGORIES = (
    "pedestrian",
    "rider",
    "car",
    "truck",
    "bus",
    "train",
    "motorcycle",
    "bicycle",
    "traffic light",
    "traffic sign",
)
"""The ten categories that detectors are judged on."""

CATEGORY_NAMES_BY_COCO_ID = {str(k): name for k, name in enumerate(CATEGORIES, start=1)}
"""Numbers of categories in COCO results, from 1 in this order: BDD100K's ``configs/det.toml``."""

ALIASES = {"bike": "bicycle", "motor": "motorcycle", "person": "pedestrian"}
"""Names of the 2018 release to those of today."""

UNSCORED_CATEGORIES = {"other person": "pedestrian", "other vehicle": "car", "trailer": "truck"}
"""Categories that are not judged, and what they are mapped to on request."""

_FILES = (
    "labels/det_20/det_val.json",
    "det_val.json",
    "**/det_*val*.json",
    "**/box_track*.json",
    "*.json",
)
_PICTURES = "images/100k/*/*.jpg"
_SCENE_WORDS = {
    "weather": ("rainy", "snowy", "clear", "overcast", "partly cloudy", "foggy"),
    "scene": (
        "tunnel",
        "residential",
        "parking lot",
        "city street",
        "gas stations",
        "highway",
    ),
    "timeofday": ("daytime", "night", "dawn/dusk"),
}
_LIGHT_COLOURS = {"r": "red", "g": "green", "y": "yellow", "na": "none"}
_WIDTH, _HEIGHT = 1280, 720  # of every frame of BDD100K

INFO = DatasetInfo(
    title="BDD100K",
    summary="Driving videos from the United States: boxes of road users, weather, time of day.",
    references=(citations.BDD100K,),
    licence="BDD100K's own licence: non-commercial research and education",
    training_allowed=True,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    noun="objects",
    terms=(
        ("category", "annotated category"),
        ("occluded", "marked as occluded"),
        ("truncated", "marked as cut off by the frame's edge"),
        ("timeofday", "time of day"),
        ("district", "district where the video begins"),
        ("income", "median income of the district where the video begins, from your table"),
    ),
    assumptions=(
        "videos are independent of one another, frames of one video are not",
        "everyone in a frame is annotated, or covered by a crowd box",
        "a box is x2 − x1 pixels wide; --pixel-inclusive counts the last pixel too",
    ),
)


def load(
    path: str | Path,
    *,
    others: Literal["ignore", "map"] = "ignore",
    info: str | Path | None = None,
    districts: str | Path | None = None,
    incomes: str | Path | None = None,
) -> Dataset:
    r"""Load BDD100K's labels.

    ``cluster`` of ``isolux.load`` may be ``video`` (where not given), ``frame``, ``row``, or a
    column. Frames of one video are not independent, and a note says so where they or their
    boxes are taken for it.

    Parameters
    ----------
    path : str or Path
        The label file, or a folder that holds one (``labels/det_20/det_val.json``, or a
        ``box_track…json`` of the tracking labels).
    others : {"ignore", "map"}
        What becomes of ``other person``, ``other vehicle`` and ``trailer``: neither found nor
        missed, or a pedestrian, a car, a truck.
    info : str or Path, optional
        The folder of the videos' own files, ``info/100k/val``, which say where they were taken.
    districts : str or Path, optional
        Your GeoJSON of districts' outlines, in degrees, named by the property ``postalCode``;
        needs ``info``.
    incomes : str or Path, optional
        Your table of their incomes, with columns ``postalCode`` and ``median_income``.

    Returns
    -------
    Dataset
        ``instances``: a box, ``<frame>#<place in its labels from 0>``, ``video_id``,
        ``frame_index``, ``track_id`` (the label's own id), ``is_crowd``, ``ignore``.
        ``attributes``: of boxes ``category``, ``occluded``, ``truncated``,
        ``traffic_light_color``; of images ``weather``, ``scene``, ``timeofday``, null where
        ``undefined``, and with districts ``district`` and ``income`` (a number), null where the
        place, its district or that one's income is not known. Places themselves are not kept.

    Raises
    ------
    FileError, TableError
        A file that is cut off (with the byte), a box whose sides are swapped, a category or word
        that BDD100K does not have, a frame that occurs twice; with the frame's row.

    Examples
    --------
    >>> import tempfile
    >>> box = '{"category": "person", "box2d": {"x1": 1, "y1": 2, "x2": 31, "y2": 42}}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "det_val.json"
    ...     _ = file.write_text('[{"name": "a.jpg", "labels": [' + box + "]}]")
    ...     load(file).instances.select("classes", "box_w").row(0)
    (['pedestrian'], 30.0)
    """
    check_literal_settings(load, others=others)
    file = find_single_file(path, _FILES, "BDD100K labels")
    source, inputs = str(file), Inputs()
    content = inputs.read(file)
    tables = parse_scalabel_json(content, source)
    frames = _build_bdd_frame_table(tables.frames, source)
    boxes = _build_bdd_box_table(tables, frames, others, source)
    video_districts = find_video_districts_or_none(frames["video_id"], info, districts, incomes)
    attributes = _build_bdd_attribute_rows(boxes, frames)
    if video_districts is not None:
        rows = left_join_in_order(
            frames.select("image_id", "video_id"), video_districts.table, "video_id"
        )
        names = ("district", "income") if incomes is not None else ("district",)
        attributes = pl.concat(
            [attributes, melt_columns_to_attribute_rows(rows, "image_id", names, unit_kind="image")]
        )
        inputs |= video_districts.inputs
    images = frames.select("image_id", "width", "height", "video_id", uri="name")
    images = _add_existing_image_paths(images, Path(path))
    words = {"video": "video_id", "frame": "image_id", "image": "image_id", "row": None}
    dataset = build_clustered_dataset(
        "bdd100k",
        INFO,
        instances=_build_bdd_instances(boxes),
        attributes=attributes,
        images=images,
        inputs=inputs,
        source=source,
        notes=(
            *_build_bdd_notes(tables, boxes),
            *(video_districts.notes if video_districts else ()),
        ),
        cluster="video",
        clusters=words,
        cluster_notes=_note_frames_of_one_video(images),
    )
    return replace(dataset, categories=CATEGORY_NAMES_BY_COCO_ID)


def _add_existing_image_paths(images: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Give frames their path below BDD100K's folder as ``uri``, where their picture is there."""
    files = [(file.name, str(file.relative_to(folder))) for file in folder.glob(_PICTURES)]
    paths = pl.DataFrame(files, schema={"uri": pl.String, "_path": pl.String}, orient="row")
    with_paths = left_join_in_order(images, paths.unique("uri", keep="none"), "uri")
    return with_paths.with_columns(uri=pl.coalesce("_path", "uri")).drop("_path")


def _build_bdd_frame_table(frames: pl.DataFrame, source: str) -> pl.DataFrame:
    """Give each frame an id, and check the words that describe it."""
    video = pl.col("video").fill_null(pl.col("name").str.replace(r"\.[^./]*$", ""))
    named_frames = frames.with_row_index("frame").with_columns(
        pl.col("frame").cast(pl.Int64),
        video_id=video,
        image_id=pl.col("name")
        if frames["name"].is_unique().all()
        else pl.format("{}/{}", video, "name"),
        width=pl.col("width").fill_null(_WIDTH),
        height=pl.col("height").fill_null(_HEIGHT),
    )
    repeated = ~named_frames["image_id"].is_first_distinct()
    _raise_for_bad_labels(
        repeated, named_frames, "image_id", "a frame occurs twice", "each frame once", source
    )
    for name, words in _SCENE_WORDS.items():
        is_known_word = (
            named_frames[name].is_in([*words, "undefined"]) | named_frames[name].is_null()
        )
        _raise_for_bad_labels(
            ~is_known_word,
            named_frames,
            name,
            "a word that BDD100K does not have",
            ", ".join(words),
            source,
        )
        undefined = pl.when(pl.col(name) != "undefined").then(pl.col(name))
        named_frames = named_frames.with_columns(undefined.alias(name))
    return named_frames


def _build_bdd_box_table(
    tables: ScalabelTables, frames: pl.DataFrame, unscored_rule: str, source: str
) -> pl.DataFrame:
    of_frames = frames.select("frame", "image_id", "video_id", "frame_index")
    renamed = left_join_in_order(tables.boxes, of_frames, "frame").with_columns(
        category=pl.col("category").replace(ALIASES)
    )
    is_known_category = (
        renamed["category"].is_in([*CATEGORIES, *UNSCORED_CATEGORIES]).fill_null(value=False)
    )
    words = ", ".join((*CATEGORIES, *UNSCORED_CATEGORIES))
    _raise_for_bad_labels(
        ~is_known_category,
        renamed,
        "category",
        "a category that BDD100K does not have",
        words,
        source,
    )
    if unscored_rule == "map":
        renamed = renamed.with_columns(pl.col("category").replace(UNSCORED_CATEGORIES))
    sized_boxes = renamed.with_columns(
        box_x=pl.col("x1"),
        box_y=pl.col("y1"),
        box_w=pl.col("x2") - pl.col("x1"),
        box_h=pl.col("y2") - pl.col("y1"),
        is_crowd=pl.col("crowd").fill_null(value=False),
    )
    swapped = (sized_boxes["x2"] < sized_boxes["x1"]) | (sized_boxes["y2"] < sized_boxes["y1"])
    with_corners = sized_boxes.with_columns(box2d=pl.concat_list("x1", "y1", "x2", "y2"))
    _raise_for_bad_labels(
        swapped,
        with_corners,
        "box2d",
        "a box's sides are swapped",
        "x1 up to x2, y1 up to y2",
        source,
    )
    return check_box_columns(sized_boxes, source, field="box2d").with_columns(
        ignore=pl.col("is_crowd") | pl.col("category").is_in(list(UNSCORED_CATEGORIES)),
        light=pl.col("light").str.to_lowercase().replace(_LIGHT_COLOURS),
    )


def _raise_for_bad_labels(
    is_bad: pl.Series, rows: pl.DataFrame, column: str, problem: str, expected: str, source: str
) -> None:
    if is_bad.any():
        row = first_true_row(is_bad)
        label = f", label {rows['place'][row] + 1}" if "place" in rows.columns else ""
        cell = rows[column][row]
        raise TableError(
            f"{problem} ({is_bad.sum():,} in all)",
            expected=expected,
            found=repr(cell.to_list() if isinstance(cell, pl.Series) else cell) + label,
            where=format_location(source, int(rows["frame"][row]) + 1, column),
        )


def _build_bdd_instances(boxes: pl.DataFrame) -> pl.DataFrame:
    return boxes.select(
        pl.format("{}#{}", "image_id", "place").alias("instance_id"),
        "image_id",
        pl.concat_list("category").alias("classes"),
        *BOX_COLUMNS,
        (pl.col("box_w") * pl.col("box_h")).alias("area"),
        "is_crowd",
        "ignore",
        "frame_index",
        "video_id",
        pl.col("label_id").alias("track_id"),
    )


def _build_bdd_attribute_rows(boxes: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    ids = boxes.select(pl.format("{}#{}", "image_id", "place"))["image_id"]
    attribute_tables = [
        build_rows_of_one_attribute(ids, name, boxes[name].cast(pl.String))
        for name in ("category", "occluded", "truncated")
    ]
    is_traffic_light = boxes["category"] == "traffic light"
    lights = boxes["light"].filter(is_traffic_light)
    attribute_tables.append(
        build_rows_of_one_attribute(ids.filter(is_traffic_light), "traffic_light_color", lights)
    )
    attribute_tables += [
        build_rows_of_one_attribute(frames["image_id"], name, frames[name], unit_kind="image")
        for name in _SCENE_WORDS
        if frames[name].is_not_null().any()
    ]
    return check(pl.concat(attribute_tables), ATTRIBUTES)


def _note_frames_of_one_video(images: pl.DataFrame) -> dict[str, str]:
    """Warn of frames that are taken as independent although videos have several."""
    videos = images["video_id"].n_unique()
    if videos == images.height:
        return {}
    return {
        cluster: f"{images.height:,} frames are of {videos:,} video(s): frames of one video show"
        " the same street and the same people and are not independent, so with"
        f" cluster={cluster} intervals are too narrow and differences are found too easily."
        for cluster in ("frame", "image", "image_id", "row")
    }


def _build_bdd_notes(tables: ScalabelTables, boxes: pl.DataFrame) -> list[str]:
    notes = []
    if tables.n_without_box:
        notes.append(
            f"{tables.n_without_box:,} label(s) without a box (lanes, areas) are left out."
        )
    ignored = boxes.filter(pl.col("category").is_in(list(UNSCORED_CATEGORIES))).height
    if ignored:
        notes.append(
            f"{ignored:,} box(es) of {', '.join(UNSCORED_CATEGORIES)} are neither found nor missed."
        )
    return notes
