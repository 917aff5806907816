"""FHIBE's closed lists: keypoints, regions of ancestry, which columns hold several answers.

Xiang et al. (2025), Extended Data; the indices are those that stand before each answer in the
data (``"2. Eastern Africa"``).
"""

from __future__ import annotations

REQUIRED_COLUMNS = (
    "image_id",
    "filepath",
    "json_path",
    "subject_id",
    "is_primary",
    "image_height",
    "image_width",
    "age",
)

KEYPOINTS = (
    "Nose",
    *(f"Right eye{corner}" for corner in (" inner", "", " outer")),
    *(f"Left eye{corner}" for corner in (" inner", "", " outer")),
    "Right ear",
    "Left ear",
    "Mouth right",
    "Mouth left",
    *(
        f"{body_side} {joint}"
        for joint in (
            "shoulder",
            "elbow",
            "wrist",
            "pinky knuckle",
            "index knuckle",
            "thumb knuckle",
            "hip",
            "knee",
            "ankle",
            "heel",
            "foot index",
        )
        for body_side in ("Right", "Left")
    ),
)
"""The 33 keypoints in FHIBE's order: right before left, unlike MediaPipe's BlazePose."""

REGIONS: dict[str, tuple[str, ...]] = {
    "Africa": (
        "Northern Africa",
        "Eastern Africa",
        "Middle Africa",
        "Southern Africa",
        "Western Africa",
    ),
    "Americas": ("Caribbean", "Central America", "South America", "Northern America"),
    "Asia": (
        "Central Asia",
        "Eastern Asia",
        "South-eastern Asia",
        "Southern Asia",
        "Western Asia",
    ),
    "Europe": ("Eastern Europe", "Northern Europe", "Southern Europe", "Western Europe"),
    "Oceania": ("Australia and New Zealand", "Melanesia", "Micronesia", "Polynesia"),
}
"""Region to its subregions: the nesting of ``ancestry``."""

FITZPATRICK = ("VI", "V", "IV", "III", "II", "I")
"""Skin type of each of the six skin colours, from the darkest, index 0, to the lightest."""

AGE_BINS = ((18, "[18,30)"), (30, "[30,40)"), (40, "[40,50)"), (50, "[50,60)"), (60, "[60,+]"))

NOT_LISTED = "Not listed"
FREE_TEXT_ANSWERS = ("free-text", "report string", "not listed")

SKIN_COLORS = ("natural_skin_color", "apparent_skin_color")

MULTIPLE_ANSWER_COLUMNS = (
    "pronoun",
    "ancestry",
    "nationality",
    "lighting",
    "weather",
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
    "action_subject_object_interaction",
    "action_subject_subject_interaction",
)
"""Columns with several answers, as a Python list in a cell."""

IMAGE_COLUMNS = (
    "scene",
    "lighting",
    "weather",
    "camera_position",
    "camera_distance",
    "location_country",
    "location_region",
    "manufacturer",
    "model",
    "user_date_captured",
    "user_hour_captured",
    "multiple_subjects",  # of aligned faces: whether their photo shows two people
)

PERSON_COLUMNS = (
    "pronoun",
    "ancestry",
    "nationality",
    "natural_skin_color",
    "apparent_skin_color",
    "apparent_skin_color_hue_lum",
    "hairstyle",
    "natural_hair_type",
    "apparent_hair_type",
    *(
        name
        for name in MULTIPLE_ANSWER_COLUMNS
        if name.startswith(("natural_", "apparent_", "facial_"))
    ),
    "action_body_pose",
    "action_subject_object_interaction",
    "action_subject_subject_interaction",
    "subject_position",
    "head_pose",
)

UNNUMBERED_COLUMNS = (
    "location_country",
    "location_region",
    "manufacturer",
    "model",
    "user_date_captured",
    "user_hour_captured",
    "apparent_skin_color_hue_lum",
    "multiple_subjects",
)
"""Columns whose cells are text as it is, without a number before it."""
