"""The columns of FHIBE's two tables, in their order, and how their cells are written.

A list or a dictionary stands in a cell as Python prints it. Annotators have no names in a synthetic
world: one id stands for all of them.
"""

from __future__ import annotations

import polars as pl

from isolux_worlds.layouts._files import uuid_of

__all__ = ["BODY", "FACE", "as_cells", "with_annotators"]

_QA = "_QAannotator_id"
_QUESTIONS = (
    "apparent_skin_color", "hairstyle", "apparent_hair_type", "apparent_hair_color",
    "facial_hairstyle", "apparent_facial_haircolor", "apparent_left_eye_color",
    "apparent_right_eye_color", "facial_marks", "action_body_pose",
    "action_subject_object_interaction", "action_subject_subject_interaction",
)  # fmt: skip
_SHARED = (
    "image_id", "filepath", "json_path", "subject_id", "is_primary", "image_height", "image_width",
    "aperture_value", "camera" + _QA, "camera_distance", "camera_position", "focal_length",
    "iso_speed_ratings", "lighting", "lighting" + _QA, "location_country", "location_region",
    "manufacturer", "model", "scene", "shutter_speed_value", "user_date_captured",
    "user_hour_captured", "user_hour_captured" + _QA, "weather", "weather" + _QA, "consent",
    "subject_position", "age", "nationality", "ancestry", "pronoun", "natural_skin_color",
    "apparent_skin_color", "hairstyle", "natural_hair_type", "apparent_hair_type",
    "natural_hair_color", "apparent_hair_color", "facial_hairstyle", "natural_facial_haircolor",
    "apparent_facial_haircolor", "natural_left_eye_color", "apparent_left_eye_color",
    "natural_right_eye_color", "apparent_right_eye_color", "facial_marks", "action_body_pose",
    "action_subject_object_interaction", "action_subject_subject_interaction",
    *(name + _QA for name in _QUESTIONS),
    "keypoints", "keypoints_annotator_id", "keypoints" + _QA, "segments", "segments_annotator_id",
    "segments" + _QA, "head_pose", "head_pose_annotator_id", "head_pose" + _QA, "other_face",
    "camera_position" + _QA,
)  # fmt: skip
FACE = (*_SHARED, "CelebA", "multiple_subjects")
"""The 75 columns of the aligned faces."""
BODY = (*_SHARED, "person_bbox", "face_bbox", "face_bbox_annotator_id", "face_bbox" + _QA)
"""The 77 columns of the whole photos."""


def with_annotators(rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """Add the columns that name annotators."""
    of_answer, of_check = uuid_of("annotator"), uuid_of("quality annotator")
    added = {
        name: pl.lit(f"['{of_check}']" if name.endswith(_QA) else of_answer)
        for name in columns
        if name.endswith("annotator_id")
    }
    return rows.with_columns(**added)


def as_cells(rows: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """Write every cell as Python prints it, in the order of ``columns``."""
    written = []
    for name in columns:
        kind = rows.schema[name]
        cell = pl.col(name)
        if isinstance(kind, pl.List):
            cell = pl.concat_str(pl.lit("['"), cell.list.join("', '"), pl.lit("']"))
        elif kind == pl.Boolean:
            cell = pl.when(cell).then(pl.lit("True")).otherwise(pl.lit("False"))
        written.append(cell.alias(name))
    return rows.select(written)
