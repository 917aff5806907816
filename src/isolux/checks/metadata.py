"""Pictures whose EXIF still tells where they were taken, with whose camera, by whom.

People who agreed to be photographed did not agree to be found. The values are neither printed nor
kept: the table says that they are there.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._image_files import ImageFiles
from isolux.checks._problems import Severity, concatenate_problems, make_image_problems
from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo

INFO = CheckInfo(
    title="What EXIF gives away",
    summary="GPS positions, serial numbers and names in pictures' EXIF and XMP.",
    references=(
        citations.EXIF.with_location(
            "4.6.6: GPS; 4.6.5: CameraOwnerName, BodySerialNumber, LensSerialNumber, Artist"
        ),
    ),
    assumptions=(
        "A maker's own notes (MakerNote) are not read; they may hold serial numbers too.",
    ),
    needs="pixels",
)

_PRIVATE_METADATA: dict[str, tuple[str, Severity]] = {
    "gps": ("EXIF tells where the picture was taken", "error"),
    "serial_number": ("EXIF holds a camera's or lens's serial number", "error"),
    "owner": ("EXIF names the camera's owner", "error"),
    "author": ("EXIF names an author", "warning"),
}


def check(dataset: Dataset, *, pictures: ImageFiles) -> pl.DataFrame:
    """List pictures whose metadata identify a place, a camera or a person.

    Parameters
    ----------
    dataset : Dataset
    pictures : ImageFiles
        What was seen in the files.

    Returns
    -------
    polars.DataFrame
        Table ``problems``: position, serial number and owner are errors, an author's name a
        warning. No value is given.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from isolux.checks._inspection import inspect_images
    >>> from isolux.checks._image_files import locate_images
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one picture",
    ...     info=DatasetInfo(title="One picture", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "uri": ["1.jpg"]}),
    ... )
    >>> exif = Image.Exif()
    >>> exif[0x013B] = "somebody"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (8, 8)).save(Path(folder) / "1.jpg", exif=exif)
    ...     found = check(one, pictures=inspect_images(locate_images(one, folder)))
    >>> found.select("severity", "problem", "found").row(0)
    ('warning', 'EXIF names an author', None)
    """
    del dataset  # its images' files are in pictures
    hint = "strip metadata before the pictures are passed on (exiftool -all=)"
    return concatenate_problems(
        *(
            make_image_problems(
                "metadata",
                pictures.rows.filter(pl.col(column)),
                problem,
                severity,
                "nothing of the kind",
                None,
                hint,
            )
            for column, (problem, severity) in _PRIVATE_METADATA.items()
        )
    )
