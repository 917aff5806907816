"""Where BDD100K's videos were taken: the first place of ``info/100k/<part>/<video>.json``.

About two thirds of the videos have one. The places themselves go no further than here: an audit
needs the district and its income, not the street.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from isolux.datasets._files import read_file
from isolux.datasets._json import decode
from isolux.datasets._tables import left_join
from isolux.datasets.bdd100k.districts import districts_at, incomes_of, read_districts
from isolux.io.hashing import sha256_listing
from isolux.vocabulary.errors import FileError, SpecError


class _Location(msgspec.Struct):
    longitude: float | None = None
    latitude: float | None = None


class _Info(msgspec.Struct):
    locations: list[_Location] | None = None


@dataclass(frozen=True, slots=True)
class DistrictsOfVideos:
    """``video_id``, ``district``, ``income``; what was not found; each file's hash."""

    table: pl.DataFrame
    notes: tuple[str, ...]
    inputs: dict[str, str]


def districts_of_videos(
    videos: pl.Series,
    info: str | Path | None,
    districts: str | Path | None,
    incomes: str | Path | None,
) -> DistrictsOfVideos | None:
    """Find the district of each video, and its income; None where nothing says where they are."""
    if info is None and districts is None and incomes is None:
        return None
    if info is None or districts is None:
        paths = {"info": info, "districts": districts, "incomes": incomes}
        raise SpecError(
            "districts need places and outlines",
            expected="info, the folder of info/100k/<part>, and districts, a GeoJSON file",
            found=", ".join(name for name, value in paths.items() if value),
        )
    root = Path(info).expanduser()
    if not root.is_dir():
        raise FileError("there is no such folder of videos' places", where=str(root))
    outlines = read_districts(districts)
    names = videos.unique(maintain_order=True)
    # One small file for each video: places stand nowhere else.
    places = [_place(root / f"{name}.json") for name in names]
    longitude, latitude = np.array(places, np.float64).reshape(-1, 2).T
    district = districts_at(outlines, longitude, latitude)
    table = pl.DataFrame({"video_id": names, "district": district})
    inputs = {str(root): sha256_listing(root)} | outlines.inputs
    known = int(np.isfinite(longitude).sum())
    nowhere, outside = len(names) - known, known - district.count()
    told = f"{nowhere:,} of {len(names):,} video(s) have no place"
    notes = [*outlines.notes, f"{told}, {outside:,} are in none of the districts."]
    income = pl.lit(None, dtype=pl.Float64)
    if incomes is not None:
        read = incomes_of(incomes)
        table = left_join(table, read.table, "district")
        inputs |= read.inputs
        without = int((table["district"].is_not_null() & table["income"].is_null()).sum())
        notes.append(f"{without:,} video(s) are in a district without an income.")
        income = pl.col("income")
    return DistrictsOfVideos(table.with_columns(income=income), tuple(notes), inputs)


def _place(file: Path) -> tuple[float, float]:
    """Read a video's first place, as REVISE takes it; NaN where there is none."""
    nowhere = (float("nan"),) * 2
    if not file.is_file():
        return nowhere
    found = decode(read_file(file), _Info, str(file)).locations or []
    first = found[0] if found else _Location()
    if first.longitude is None or first.latitude is None:
        return nowhere
    if not (abs(first.longitude) <= 180 and abs(first.latitude) <= 90):
        return nowhere
    return first.longitude, first.latitude
