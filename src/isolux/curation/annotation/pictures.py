"""What annotators are shown: the photo turned upright, made smaller, without Exif, with one box.

The picture is written anew, so that nothing of the file but its pixels leaves the project. Its name
on the server is the task's keyed id.
"""

from __future__ import annotations

import io

from isolux.curation.project.folder import Project
from isolux.io.images import read_image

__all__ = ["Box", "shown", "upright"]

Box = tuple[float, float, float, float]
"""x, y, w, h in pixels of the photo turned upright."""
_LONGEST = 1600  # pixels: a tight box at 85 % overlap needs no more
_QUALITY = 88
_TURNED = (5, 6, 7, 8)  # Exif's orientations that change width and height


def upright(width: int, height: int, orientation: int | None) -> tuple[int, int]:
    """Give a photo's width and height once it is turned as Exif says.

    Examples
    --------
    >>> upright(400, 300, 6), upright(400, 300, None)
    ((300, 400), (400, 300))
    """
    return (height, width) if orientation in _TURNED else (width, height)


def shown(project: Project, file: str, box: Box | None = None) -> bytes:
    """Make the picture of a task, as JPEG."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(read_image(project.folder / file))
    factor = min(1.0, _LONGEST / max(picture.size))
    if factor < 1:
        size = (round(picture.width * factor), round(picture.height * factor))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    if box is not None:
        x, y, w, h = (side * factor for side in box)
        pen = ImageDraw.Draw(picture)
        pen.rectangle((x - 2, y - 2, x + w + 2, y + h + 2), outline="black", width=1)
        pen.rectangle((x - 1, y - 1, x + w + 1, y + h + 1), outline="yellow", width=1)
    file_out = io.BytesIO()
    picture.save(file_out, "JPEG", quality=_QUALITY)
    return file_out.getvalue()
