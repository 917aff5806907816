"""The parts of a face whose masks are pictures of their own, and which pictures are such masks."""

from __future__ import annotations

from collections.abc import Sequence

FACE_PARTS = (
    "skin",
    "nose",
    "eye_g",
    "l_eye",
    "r_eye",
    "l_brow",
    "r_brow",
    "l_ear",
    "r_ear",
    "mouth",
    "u_lip",
    "l_lip",
    "hair",
    "hat",
    "ear_r",
    "neck_l",
    "neck",
    "cloth",
)
"""CelebAMask-HQ's parts in the order of its labels, 1 to 18; 0 is the background.

Some parsers that were trained on it number them in another order.
"""


def are_mostly_part_masks(pictures: Sequence[str]) -> bool:
    """Tell whether most of these pictures are named after parts of a face."""
    masks = sum(
        name.endswith(tuple(f"_{part_name}.png" for part_name in FACE_PARTS)) for name in pictures
    )
    return 2 * masks > len(pictures)
