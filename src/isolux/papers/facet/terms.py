"""FACET's groups and metrics in the dataset's words, and in the paper's."""

from __future__ import annotations

GENDERS = {
    "masc": "more stereotypically male attributes",
    "fem": "more stereotypically female attributes",
    "non_binary": "outside of gender binary",
}
"""Perceived gender presentation: the dataset's values, in the order and words of Table 7."""

AGES = {"young": "younger", "middle": "middle", "older": "older"}
"""Perceived age group: the dataset's values, in the order and words of Table 13."""

TONES = tuple(str(tone) for tone in range(1, 11))
"""The Monk scale, lightest first."""

LIGHTER, DARKER = TONES[:3], TONES[-3:]
"""The tones that Table 6 unites. Someone with tones 3 and 8 is in both."""

HAIR_TYPES = {
    "coily": "coily",
    "dreadlocks": "dreads",
    "bald": "bald",
    "straight": "straight",
    "curly": "curly",
    "wavy": "wavy",
}
"""Perceived hair type: the dataset's values, in the order and words of Table 6."""

RECALLS: dict[str, tuple[str, float | None]] = {
    "mAR": ("average_recall", None),
    "AR50": ("recall_at_iou", 0.5),
    "AR75": ("recall_at_iou", 0.75),
}
"""Heading to metric and threshold."""
