"""Columns of ``instances`` beyond those of ``core.tables``: boxes, masks, keypoints, flags.

The table instances is open; these are the names that every loader of people in pictures uses for
them, so that a task can ask for ``box_x`` without knowing which dataset it came from. A null
says that the dataset does not give it.
"""

from __future__ import annotations

import polars as pl

from isolux.core.tables import Column

BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")
FACE_BOX_COLUMNS = ("face_box_x", "face_box_y", "face_box_w", "face_box_h")
PART_MASK_DTYPE = pl.Struct(
    {"part": pl.String, "counts": pl.String, "height": pl.Int64, "width": pl.Int64}
)

_FLOAT, _INT, _STRING, _BOOL = pl.Float64(), pl.Int64(), pl.String(), pl.Boolean()


def _build_optional_column(name: str, dtype: pl.DataType, meaning: str) -> Column:
    return Column(name, dtype, meaning, optional=True, nullable=True)


INSTANCE_COLUMNS = (
    _build_optional_column(
        "box_x", _FLOAT, "left edge of the box, pixels from the image's left edge"
    ),
    _build_optional_column(
        "box_y", _FLOAT, "upper edge of the box, pixels from the image's upper edge"
    ),
    _build_optional_column(
        "box_w", _FLOAT, "width of the box, pixels; 0 where the dataset gives such a box"
    ),
    _build_optional_column("box_h", _FLOAT, "height of the box, pixels"),
    *(
        _build_optional_column(name, _FLOAT, f"the same of the face's own box, pixels ({name[5:]})")
        for name in FACE_BOX_COLUMNS
    ),
    _build_optional_column(
        "area", _FLOAT, "what COCO's sizes go by: area of the mask if there is one, square pixels"
    ),
    _build_optional_column(
        "is_crowd",
        _BOOL,
        "the box covers a crowd; predictions inside it are neither right nor wrong",
    ),
    _build_optional_column(
        "ignore", _BOOL, "neither found nor missed: a prediction matched to it does not count"
    ),
    _build_optional_column(
        "judged", _BOOL, "false: takes part in matching, but gets no score (no known attribute)"
    ),
    _build_optional_column("mask_counts", _STRING, "the mask as COCO's compressed run lengths"),
    _build_optional_column(
        "mask_height", _INT, "height of the picture that the run lengths fill, pixels"
    ),
    _build_optional_column("mask_width", _INT, "width of that picture, pixels"),
    _build_optional_column(
        "mask_polygons", _STRING, "the mask as JSON text [[x, y, x, y, …], …], as the file gives it"
    ),
    _build_optional_column(
        "part_masks", pl.List(PART_MASK_DTYPE), "masks of parts (hair, clothing) as run lengths"
    ),
    _build_optional_column(
        "segments", _STRING, "part polygons as the file's own text, parsed only when asked for"
    ),
    _build_optional_column(
        "keypoints_x", pl.List(pl.Float64), "x of each keypoint, pixels; null: not labelled"
    ),
    _build_optional_column(
        "keypoints_y", pl.List(pl.Float64), "y of each keypoint, pixels; null: not labelled"
    ),
    _build_optional_column(
        "keypoints_v", pl.List(pl.Int64), "0 not labelled, 1 labelled but hidden, 2 visible"
    ),
    _build_optional_column("keypoint_names", pl.List(pl.String), "their names, in the same order"),
    _build_optional_column("frame_index", _INT, "the frame's number in its video"),
    _build_optional_column("video_id", _STRING, "the video of the frame"),
    _build_optional_column(
        "household_id", _STRING, "the home, as far as the dataset tells homes apart"
    ),
    _build_optional_column(
        "track_id", _STRING, "the object's own id, the same in each frame of a video"
    ),
    _build_optional_column(
        "face_index", _INT, "the face's place among the boxes of its image, from 0"
    ),
    _build_optional_column("easy", _BOOL, "in WIDER FACE's list of easy faces"),
    _build_optional_column(
        "medium", _BOOL, "in its list of medium faces, which holds the easy ones too"
    ),
    _build_optional_column(
        "hard", _BOOL, "in its list of hard faces, which holds the medium ones too"
    ),
    _build_optional_column(
        "event", _STRING, "the kind of event, as WIDER FACE's folders are named"
    ),
    _build_optional_column(
        "annotation_uri", _STRING, "file with the person's whole annotation, below the root"
    ),
    _build_optional_column(
        "part_mask_uri", _STRING, "picture with a number for each part, below the root"
    ),
    _build_optional_column(
        "part_mask_files",
        pl.List(pl.Struct({"part": pl.String, "uri": pl.String})),
        "a picture for each part, below the root",
    ),
    _build_optional_column(
        "is_primary", _BOOL, "the person whom the photo was taken of; false: a second one in it"
    ),
)
"""What each further column of ``instances`` holds."""
