"""By which attributes FHIBE's protocols group people, and how a broad ancestry is nested.

Names are those of the dataset's attributes; FHIBE's own evaluation aggregates over the same ones.
"""

from __future__ import annotations

from isolux.datasets.fhibe.value_lists import REGIONS
from isolux.papers._layout import format_merge_settings

DEMOGRAPHIC = (
    "pronoun",
    "age_group",
    "ancestry_region",
    "ancestry",
    "natural_skin_color",
    "apparent_skin_color",
)
"""What people say of themselves; ``ancestry`` by subregion, ``ancestry_region`` by continent."""

_APPEARANCE = (
    "hairstyle",
    "natural_hair_type",
    "apparent_hair_type",
    "natural_hair_color",
    "apparent_hair_color",
    "facial_hairstyle",
    "natural_facial_haircolor",
    "apparent_facial_haircolor",
    "natural_left_eye_color",
    "apparent_left_eye_color",
    "natural_right_eye_color",
    "apparent_right_eye_color",
    "facial_marks",
    "head_pose",
    "action_body_pose",
    "action_subject_object_interaction",
)
_PHOTO = (
    "scene",
    "lighting",
    "weather",
    "camera_position",
    "camera_distance",
    "user_hour_captured",
    "nationality",
    "location_country",
)

FACE_ATTRIBUTES = (*DEMOGRAPHIC, *_APPEARANCE, *_PHOTO)
"""Attributes of the aligned faces."""

ATTRIBUTES = (*FACE_ATTRIBUTES, "action_subject_subject_interaction")
"""Attributes of people in whole photos."""

NESTED = format_merge_settings(REGIONS, "ancestry")
"""``nested`` settings: who named a continent alone counts in each of its subregions."""
