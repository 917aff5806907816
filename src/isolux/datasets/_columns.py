"""Columns of ``instances`` beyond those of ``vocabulary.tables``: boxes, masks, keypoints, flags.

The table instances is open; these are the names that every loader of people in pictures uses for
them, so that a task can ask for ``box_x`` without knowing which dataset it came from. A null
says that the dataset does not give it.
"""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.tables import Column

BOX = ("box_x", "box_y", "box_w", "box_h")
FACE_BOX = ("face_box_x", "face_box_y", "face_box_w", "face_box_h")
PART_MASK = pl.Struct(
    {"part": pl.String, "counts": pl.String, "height": pl.Int64, "width": pl.Int64}
)

_F, _I, _S, _B = pl.Float64(), pl.Int64(), pl.String(), pl.Boolean()


def _of(name: str, dtype: pl.DataType, meaning: str) -> Column:
    return Column(name, dtype, meaning, optional=True, nullable=True)


INSTANCE_COLUMNS = (
    _of("box_x", _F, "left edge of the box, pixels from the image's left edge"),
    _of("box_y", _F, "upper edge of the box, pixels from the image's upper edge"),
    _of("box_w", _F, "width of the box, pixels; 0 where the dataset gives such a box"),
    _of("box_h", _F, "height of the box, pixels"),
    *(_of(name, _F, f"the same of the face's own box, pixels ({name[5:]})") for name in FACE_BOX),
    _of("area", _F, "what COCO's sizes go by: area of the mask if there is one, square pixels"),
    _of(
        "is_crowd", _B, "the box covers a crowd; predictions inside it are neither right nor wrong"
    ),
    _of("ignore", _B, "neither found nor missed: a prediction matched to it does not count"),
    _of("judged", _B, "false: takes part in matching, but gets no score (no known attribute)"),
    _of("mask_counts", _S, "the mask as COCO's compressed run lengths"),
    _of("mask_height", _I, "height of the picture that the run lengths fill, pixels"),
    _of("mask_width", _I, "width of that picture, pixels"),
    _of("mask_polygons", _S, "the mask as JSON text [[x, y, x, y, …], …], as the file gives it"),
    _of("part_masks", pl.List(PART_MASK), "masks of parts (hair, clothing) as run lengths"),
    _of("segments", _S, "part polygons as the file's own text, parsed only when asked for"),
    _of("keypoints_x", pl.List(pl.Float64), "x of each keypoint, pixels; null: not labelled"),
    _of("keypoints_y", pl.List(pl.Float64), "y of each keypoint, pixels; null: not labelled"),
    _of("keypoints_v", pl.List(pl.Int64), "0 not labelled, 1 labelled but hidden, 2 visible"),
    _of("keypoint_names", pl.List(pl.String), "their names, in the same order"),
    _of("frame_index", _I, "the frame's number in its video"),
    _of("video_id", _S, "the video of the frame"),
    _of("household_id", _S, "the home, as far as the dataset tells homes apart"),
    _of("track_id", _S, "the object's own id, the same in each frame of a video"),
    _of("face_index", _I, "the face's place among the boxes of its image, from 0"),
    _of("easy", _B, "in WIDER FACE's list of easy faces"),
    _of("medium", _B, "in its list of medium faces, which holds the easy ones too"),
    _of("hard", _B, "in its list of hard faces, which holds the medium ones too"),
    _of("event", _S, "the kind of event, as WIDER FACE's folders are named"),
    _of("annotation_uri", _S, "file with the person's whole annotation, below the root"),
    _of("part_mask_uri", _S, "picture with a number for each part, below the root"),
    _of(
        "part_mask_files",
        pl.List(pl.Struct({"part": pl.String, "uri": pl.String})),
        "a picture for each part, below the root",
    ),
    _of("is_primary", _B, "the person whom the photo was taken of; false: a second one in it"),
)
"""What each further column of ``instances`` holds."""
