"""Pictures of a photo world: people drawn by code onto scenes, so that every pixel is known.

``PhotoWorld`` → ``render_photos`` → ``RenderedPhoto`` (pixels, whose each is, which part) →
``seen`` (people with boxes, masks and joints as seen) → ``encoded`` (bytes of a file). No picture
of a person was used: shapes, colours and proportions are in this folder.
"""

from __future__ import annotations

from isolux_worlds.drawing.rendering import JPEG_QUALITY, RenderedPhoto, encode_image, render_photos
from isolux_worlds.drawing.visibility import measure_visible_people

__all__ = [
    "JPEG_QUALITY",
    "RenderedPhoto",
    "encode_image",
    "measure_visible_people",
    "render_photos",
]
