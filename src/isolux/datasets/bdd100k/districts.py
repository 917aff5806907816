"""Districts and their incomes: which polygon of a user's GeoJSON a place lies in.

As REVISE joins BDD100K's GPS to New York's postal codes and their median incomes, which ICON²
(section 4.1) follows. GeoJSON: RFC 7946, longitude before latitude, in degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets._files import Inputs, read_file
from isolux.datasets._tables import left_join
from isolux.io.cells import as_numbers, as_text
from isolux.io.hashing import sha256_listing
from isolux.io.json_values import decode
from isolux.io.refusals import refuse_cells, require_columns
from isolux.vocabulary.errors import FileError, SpecError, TableError, UnknownNameError, place

FloatArray = npt.NDArray[np.float64]

_KEY, _INCOME = "postalCode", "median_income"
_UNKNOWN = ("", "-", "n/a", "na", "null", "none", "nan")
_AT_ONCE = 4_000_000  # comparisons of a place with an edge that are held at a time


class _Geometry(msgspec.Struct):
    type: str
    coordinates: msgspec.Raw = msgspec.Raw(b"null")


class _Feature(msgspec.Struct):
    geometry: _Geometry | None = None
    properties: dict[str, Any] | None = None


class _Collection(msgspec.Struct):
    features: list[_Feature]


@dataclass(frozen=True, slots=True)
class Districts:
    """Names, and the edges of each one's rings: ``[e, 4]``, longitude and latitude of both ends."""

    names: tuple[str, ...]
    edges: tuple[FloatArray, ...]
    notes: tuple[str, ...]
    inputs: dict[str, str]


def read_districts(path: str | Path) -> Districts:
    """Read a user's GeoJSON."""
    file, inputs = Path(path).expanduser(), Inputs()
    where = str(file)
    features = decode(inputs.read(file), _Collection, where).features
    known = {name for one in features for name in one.properties or ()}
    if _KEY not in known:
        raise UnknownNameError("property", _KEY, known, where=where)
    rings: dict[str, list[FloatArray]] = {}
    skipped = 0
    for row, one in enumerate(features):
        name = _name((one.properties or {}).get(_KEY))
        edges = _edges(one.geometry, where, row)
        if name is None or edges is None:
            skipped += 1
        else:
            rings.setdefault(name, []).append(edges)
    note = f"{skipped:,} feature(s) of {file.name} have no polygon or no {_KEY}; they are left out."
    return Districts(
        tuple(rings),
        tuple(np.concatenate(of) for of in rings.values()),
        (note,) if skipped else (),
        inputs,
    )


def _name(value: object) -> str | None:
    """Write a property as text, as a table's cells are; null for none."""
    if value is None or isinstance(value, bool | list | dict):
        return None
    text: str | None = as_text(pl.Series([value]))[0]
    return text


def _edges(geometry: _Geometry | None, where: str, row: int) -> FloatArray | None:
    """Give the edges of a polygon's rings, holes among them; None where it is not a polygon."""
    at = f"{where}, feature {row + 1}"
    if geometry is None or geometry.type not in ("Polygon", "MultiPolygon"):
        return None
    if geometry.type == "Polygon":
        polygons = [decode(bytes(geometry.coordinates), list[list[list[float]]], at)]
    else:
        polygons = decode(bytes(geometry.coordinates), list[list[list[list[float]]]], at)
    edges = [_ring(ring, where, row) for polygon in polygons for ring in polygon]
    return np.concatenate(edges) if edges else None


def _ring(ring: Sequence[Sequence[float]], where: str, row: int) -> FloatArray:
    good = len(ring) >= 4 and all(len(position) in (2, 3) for position in ring)
    points = np.array([position[:2] for position in ring], np.float64) if good else None
    # degrees of longitude and latitude, in GeoJSON's order
    if points is None or not (np.abs(points) <= (180.0, 90.0)).all():
        raise TableError(
            "a district's outline cannot be used",
            expected="rings of at least four [longitude, latitude], in degrees",
            found=repr(ring[:2])[:80],
            where=place(where, row + 1, "geometry"),
            hint="save it in WGS 84 (EPSG:4326), as GeoJSON asks",
        )
    return np.hstack([points, np.roll(points, -1, axis=0)])


def districts_at(districts: Districts, longitude: FloatArray, latitude: FloatArray) -> pl.Series:
    """Name the district of each place, the first in the file's order; null: none."""
    found = np.full(len(longitude), -1, np.int64)
    for k, edges in enumerate(districts.edges):
        low, high = edges[:, :2].min(axis=0), edges[:, :2].max(axis=0)
        near = (found < 0) & (longitude >= low[0]) & (longitude <= high[0])
        rows = np.flatnonzero(near & (latitude >= low[1]) & (latitude <= high[1]))
        step = max(_AT_ONCE // max(len(edges), 1), 1)
        for part in (rows[i : i + step] for i in range(0, len(rows), step)):
            found[part[_inside(edges, longitude[part], latitude[part])]] = k
    names = pl.Series("district", districts.names, dtype=pl.String)
    return names.gather(pl.Series(found, dtype=pl.Int64).set(pl.Series(found < 0), None))


def _inside(edges: FloatArray, x: FloatArray, y: FloatArray) -> npt.NDArray[np.bool_]:
    x0, y0, x1, y1 = edges.T
    above = (y0 > y[:, None]) != (y1 > y[:, None])  # [places, edges]
    slope = np.divide(x1 - x0, y1 - y0, out=np.zeros(len(edges)), where=y1 != y0)
    crossed = above & (x[:, None] < x0 + slope * (y[:, None] - y0))
    odd: npt.NDArray[np.bool_] = crossed.sum(axis=1) % 2 == 1
    return odd


def incomes_of(path: str | Path, inputs: Inputs) -> pl.DataFrame:
    """Read a user's table of incomes by district: ``district``, ``income``."""
    file = Path(path).expanduser()
    table, where = inputs.read_table(file), str(file)
    require_columns(table, (_KEY, _INCOME), where)
    income = as_numbers(table[_INCOME], where=where, column=_INCOME, unknown=_UNKNOWN)
    expected = "a number from 0, one for each district"
    unusable = (income < 0) | ~income.is_finite()
    refuse_cells(unusable, table[_INCOME], "an income cannot be used", expected, where)
    rows = pl.DataFrame([as_text(table[_KEY]).alias("district"), income.alias("income")])
    told = rows.drop_nulls().unique(maintain_order=True)
    twice = told["district"].filter(told["district"].is_duplicated())
    again = rows["district"].is_in(twice.implode()) & ~rows["district"].is_first_distinct()
    refuse_cells(
        again,
        table[_INCOME],
        "a district has two incomes",
        expected,
        where,
        found=lambda row: f"{table[_INCOME][row]!r} for {rows['district'][row]!r}",
    )
    return told


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
    inputs = Inputs({str(root): sha256_listing(root)} | outlines.inputs)
    known = int(np.isfinite(longitude).sum())
    nowhere, outside = len(names) - known, known - district.count()
    told = f"{nowhere:,} of {len(names):,} video(s) have no place"
    notes = [*outlines.notes, f"{told}, {outside:,} are in none of the districts."]
    income = pl.lit(None, dtype=pl.Float64)
    if incomes is not None:
        table = left_join(table, incomes_of(incomes, inputs), "district")
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
