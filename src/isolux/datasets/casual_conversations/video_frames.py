"""Which frames of each video are looked at: chosen from the pictures that a folder holds.

Frames are extracted elsewhere. A folder of face crops has a picture only where a face was found, so
the middle one is "the middle frame with a face" (Fairness Indicators, appendix B.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.datasets._inner_paths import PICTURE, listed_files
from isolux.io.cells import row_of
from isolux.io.hashing import sha256_listing
from isolux.vocabulary.errors import FileError, TableError

_NAMED = r"(?s)^(?:.*/)?([^/]+?)(?:_raw)?[_-]?frame[_-]?([0-9]{1,18})\.[^./]+$"
_FOLDER = r"(?s)^(?:.*/)?([^/]+)/[^/0-9]*([0-9]{1,18})\.[^./]+$"


@dataclass(frozen=True, slots=True)
class Frames:
    """``frame``: ``video``, ``frame_index``, ``uri``; ``strangers``: pictures of no such video."""

    frame: pl.DataFrame
    strangers: int
    digest: str


def chosen_frames(root: Path, videos: pl.Series, n: int) -> Frames:
    """Choose up to ``n`` frames of each video, evenly over those that there are; 1: the middle."""
    if not root.is_dir():
        raise FileError("there is no such folder of frames", where=str(root))
    files = listed_files(root)
    pictures = files.filter(files.str.contains(PICTURE)).to_frame("uri")
    read = pictures.select(
        "uri",
        video=pl.coalesce(
            pl.col("uri").str.extract(_NAMED, 1), pl.col("uri").str.extract(_FOLDER, 1)
        ),
        frame_index=pl.coalesce(
            pl.col("uri").str.extract(_NAMED, 2), pl.col("uri").str.extract(_FOLDER, 2)
        ).cast(pl.Int64),
    )
    known = read.filter(pl.col("video").is_in(videos.implode()))
    if known.is_empty():
        raise FileError(
            "the folder holds no frame of these videos",
            expected=f"such as {videos[0]}_frame00000012.jpg" if len(videos) else None,
            found=repr(pictures["uri"][0]) if pictures.height else "no picture",
            where=str(root),
        )
    twice = known.select(pl.struct("video", "frame_index").is_duplicated()).to_series()
    if twice.any():
        raise TableError(
            "a frame is there twice",
            expected="each frame of a video once",
            found=repr(known["uri"][row_of(twice)]),
            where=str(root),
        )
    return Frames(_evenly(known, n), read.height - known.height, sha256_listing(root))


def _evenly(frames: pl.DataFrame, n: int) -> pl.DataFrame:
    """Keep the frames in the middle of ``n`` equal parts of each video's list."""
    ordered = frames.sort("video", "frame_index").with_columns(
        place=pl.int_range(pl.len()).over("video")
    )
    parts = pl.DataFrame({"part": pl.int_range(n, eager=True)})
    wanted = (
        ordered.group_by("video", maintain_order=True)
        .agg(pl.len().cast(pl.Int64))
        .join(parts, how="cross", maintain_order="left")
        # The middle of part i, ⌊(i + ½) · length / n⌋, in whole numbers.
        .select("video", place=(2 * pl.col("part") + 1) * pl.col("len") // (2 * n))
        .unique()
    )
    return ordered.join(wanted, on=["video", "place"], how="semi", maintain_order="left").select(
        "video", "frame_index", "uri"
    )
