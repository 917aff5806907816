"""What a photo world consists of: households, subjects, photos, and the people in them.

``settings -> draw_people -> PhotoWorld`` (``people.py``): tables without a pixel, exact and quick.
``PhotoWorld -> drawing.render`` adds pixels, masks and boxes as seen. Layouts
(``layouts/``) write both as a dataset's own files; predictors read the tables alone.
"""

from __future__ import annotations

import polars as pl

from isolux.core.schema import Column, Table

__all__ = ["HOUSEHOLDS", "JOINTS", "PARTS", "PEOPLE", "PHOTOS", "SUBJECTS"]

S, I, F, B = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()  # noqa: E741

JOINTS = (
    "nose",
    "right_eye_inner",
    "right_eye",
    "right_eye_outer",
    "left_eye_inner",
    "left_eye",
    "left_eye_outer",
    "right_ear",
    "left_ear",
    "mouth_right",
    "mouth_left",
    "right_shoulder",
    "left_shoulder",
    "right_elbow",
    "left_elbow",
    "right_wrist",
    "left_wrist",
    "right_pinky",
    "left_pinky",
    "right_index",
    "left_index",
    "right_thumb",
    "left_thumb",
    "right_hip",
    "left_hip",
    "right_knee",
    "left_knee",
    "right_ankle",
    "left_ankle",
    "right_heel",
    "left_heel",
    "right_foot_index",
    "left_foot_index",
)
"""The 33 joints, in FHIBE's order; right is the person's own right."""

PARTS = (
    "face_skin",
    "body_skin",
    "left_arm_skin",
    "right_arm_skin",
    "left_leg_skin",
    "right_leg_skin",
    "left_eyebrow",
    "right_eyebrow",
    "left_eye",
    "right_eye",
    "nose",
    "upper_lip",
    "lower_lip",
    "inner_mouth",
    "left_ear",
    "right_ear",
    "neck",
    "head_hair",
    "facial_hair",
    "headwear",
    "eyewear",
    "face_mask",
    "upper_clothing",
    "lower_clothing",
    "full_body_clothing",
    "left_shoe",
    "right_shoe",
    "prop",
)
"""Parts of a person that the painter tells apart; part k of the label picture is ``PARTS[k - 1]``.
A prop (a guitar, a tray) belongs to no one's mask."""


def _build_box_columns(name: str, owner: str) -> list[Column]:
    meanings = {"x": "left edge", "y": "upper edge", "w": "width", "h": "height"}
    return [Column(f"{name}_{s}", F, f"{text} {owner}, pixels") for s, text in meanings.items()]


HOUSEHOLDS = Table(
    "households",
    "a home: its photos show its people",
    (
        Column("household_id", S, "identifier, unique: h00001"),
        Column("income", F, "US dollars a month"),
        Column("country", S, "a country's name"),
        Column("country_code", S, "two letters"),
        Column("region", S, "af, am, as or eu: Dollar Street's regions"),
        Column("latitude", F, "degrees"),
        Column("longitude", F, "degrees"),
    ),
    key=("household_id",),
    open=True,  # attributes of level household, text
)

SUBJECTS = Table(
    "subjects",
    "a person who is photographed",
    (
        Column("subject_id", S, "identifier, unique: s000001"),
        Column("household_id", S, "their home"),
        Column("age", I, "years"),
    ),
    key=("subject_id",),
    open=True,  # attributes of level subject, text
)

PHOTOS = Table(
    "photos",
    "a photo",
    (
        Column("image_id", S, "identifier, unique: 000001"),
        Column("household_id", S, "whose home it is of"),
        Column("width", I, "pixels"),
        Column("height", I, "pixels"),
        Column("caption", S, "an English sentence: who does what where"),
    ),
    key=("image_id",),
    open=True,  # attributes of level household and image, text
)

PEOPLE = Table(
    "people",
    "a person in a photo",
    (
        Column("person_id", I, "identifier, unique, from 1"),
        Column("image_id", S, "their photo"),
        Column("subject_id", S, "who it is"),
        Column("layer", I, "0 is the farthest; who has a higher one stands in front"),
        *_build_box_columns("box", "of what is seen; before rendering of the body unhidden"),
        *_build_box_columns("face", "of the face"),
        Column("joints_x", pl.List(pl.Float32), "x of the 33 joints, pixels; may lie outside"),
        Column("joints_y", pl.List(pl.Float32), "y of the 33 joints, pixels"),
        Column("age", I, "years"),
        # Added by drawing.render, absent before:
        Column("joints_v", pl.List(pl.Int8), "0 outside, 1 hidden, 2 visible", optional=True),
        Column("mask_counts", S, "what is seen, as COCO's run lengths", optional=True),
        Column("seen_share", F, "part of the body in the photo that is seen", optional=True),
        Column(
            "part_masks",
            pl.List(pl.Struct({"part": pl.String, "counts": pl.String})),
            "what is seen of each part, COCO's run lengths of the photo's size",
            optional=True,
        ),
    ),
    key=("person_id",),
    open=True,  # attributes of every level, text: an audit's groups
)
