"""Pictures that cannot be opened, are cut off, hold several frames, or are not what they are named.

A model's code often skips what it cannot read, or reads half of it, without a word; then a group
loses people, or a photo loses the person in its lower half.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._image_files import ImageFiles
from isolux.checks._problems import Severity, concatenate_problems, make_image_problems
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference
from isolux.io.images import MAX_PIXELS

INFO = CheckInfo(
    title="Pictures that can be read",
    summary="Unreadable, truncated, oversized and animated pictures, and wrong file extensions.",
    references=(
        Reference(
            "itu-t81",
            "ITU-T (1992). Recommendation T.81: Digital compression and coding of continuous-tone"
            " still images (JPEG).",
            "B.1.1.3: markers, and the end of image",
            "https://www.w3.org/Graphics/JPEG/itu-t81.pdf",
        ),
    ),
    assumptions=("PNG, JPEG, WebP, BMP, TIFF and GIF are pictures; other formats are not opened.",),
    needs="pixels",
)

_SUFFIXES = {
    "PNG": ("png",),
    "JPEG": ("jpg", "jpeg", "jpe", "jfif"),
    "MPO": ("jpg", "jpeg", "mpo"),
    "WEBP": ("webp",),
    "BMP": ("bmp",),
    "TIFF": ("tif", "tiff"),
    "GIF": ("gif",),
}
_TROUBLE_PROBLEMS: dict[str, tuple[str, Severity, str, str]] = {
    "unreadable": (
        "the picture cannot be read",
        "error",
        "a PNG, JPEG, WebP, BMP or TIFF",
        "fetch the file again",
    ),
    "cut off": ("the picture is cut off", "error", "a whole file", "fetch the file again"),
    "too large": (
        "the picture unpacks to more than a photograph has",
        "error",
        f"at most {MAX_PIXELS:,} pixels and 512 MiB",
        "is it one? it was not opened",
    ),
    "another format": (
        "the picture is of a format that isolux does not open",
        "error",
        "PNG, JPEG, WebP, BMP or TIFF",
        "convert it",
    ),
    "damaged": (
        "the picture is damaged, though it can be opened",
        "warning",
        "data that decode without a complaint",
        "fetch the file again",
    ),
}


def check(dataset: Dataset, *, pictures: ImageFiles) -> pl.DataFrame:
    """List pictures that cannot be read as they should.

    Parameters
    ----------
    dataset : Dataset
    pictures : ImageFiles
        What was seen in the files.

    Returns
    -------
    polars.DataFrame
        Table ``problems``. Errors: unreadable, cut off, too large, a format that is not opened.
        Warnings: damaged but readable, several frames, a wrong extension.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from isolux.checks._inspection import inspect_images
    >>> from isolux.checks._image_files import locate_images
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one picture",
    ...     info=DatasetInfo(title="One picture", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "uri": ["1.png"]}),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "1.png").write_bytes(b"no picture")
    ...     found = check(one, pictures=inspect_images(locate_images(one, folder)))
    >>> found.select("problem", "found").rows()
    [('the picture cannot be read', 'cannot identify image file')]
    """
    del dataset  # its images' files are in pictures
    rows = pictures.rows
    problems = [
        make_image_problems(
            "images",
            rows.filter(trouble=trouble),
            problem,
            severity,
            expected,
            pl.col("said"),
            hint,
        )
        for trouble, (problem, severity, expected, hint) in _TROUBLE_PROBLEMS.items()
    ]
    multi_frame = rows.filter(pl.col("frames") > 1)
    with_suffix = rows.filter(pl.col("format").is_in(list(_SUFFIXES))).with_columns(
        suffix=pl.col("uri").str.extract(r"(?s)\.([^./\\]*)$").str.to_lowercase(),
        wanted=pl.col("format").replace_strict(_SUFFIXES, return_dtype=pl.List(pl.String)),
    )
    wrong_suffix = with_suffix.filter(
        ~pl.col("wanted").list.contains(pl.col("suffix")).fill_null(value=False)
    )
    expected_suffix = pl.format(".{}", pl.col("wanted").list.join(" or ."))
    suffix = pl.format(".{}", pl.col("suffix").fill_null(""))
    frames = pl.format("{} frames; the first is read", "frames")
    return concatenate_problems(
        *problems,
        make_image_problems(
            "images",
            multi_frame,
            "the picture holds several frames",
            "warning",
            "one frame",
            frames,
        ),
        make_image_problems(
            "images",
            wrong_suffix,
            "the extension names another format",
            "warning",
            expected_suffix,
            suffix,
        ),
    )
