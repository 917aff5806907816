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

from isolux.core.errors import (
    FileError,
    SpecError,
    TableError,
    format_location,
    refuse_unknown_names,
)
from isolux.datasets._files import Inputs, read_file_bytes
from isolux.datasets._tables import left_join_in_order
from isolux.io.cell_parsing import as_numbers, as_text
from isolux.io.hashing import sha256_listing
from isolux.io.json_values import decode_json
from isolux.io.refusals import refuse_cells, require_columns

FloatArray = npt.NDArray[np.float64]

_DISTRICT_PROPERTY, _INCOME_COLUMN = "postalCode", "median_income"
_UNKNOWN = ("", "-", "n/a", "na", "null", "none", "nan")
_MAX_COMPARISONS = 4_000_000  # comparisons of a place with an edge that are held at a time


class _GeoJsonGeometry(msgspec.Struct):
    type: str
    coordinates: msgspec.Raw = msgspec.Raw(b"null")


class _GeoJsonFeature(msgspec.Struct):
    geometry: _GeoJsonGeometry | None = None
    properties: dict[str, Any] | None = None


class _GeoJsonCollection(msgspec.Struct):
    features: list[_GeoJsonFeature]


@dataclass(frozen=True, slots=True)
class Districts:
    """Names, and the edges of each one's rings: ``[e, 4]``, longitude and latitude of both ends."""

    names: tuple[str, ...]
    edges: tuple[FloatArray, ...]
    notes: tuple[str, ...]
    inputs: dict[str, str]


def read_districts_geojson(path: str | Path) -> Districts:
    """Read a user's GeoJSON."""
    file, inputs = Path(path).expanduser(), Inputs()
    source = str(file)
    features = decode_json(inputs.read(file), _GeoJsonCollection, source).features
    property_names = {name for feature in features for name in feature.properties or ()}
    refuse_unknown_names("property", [_DISTRICT_PROPERTY], property_names, where=source)
    rings: dict[str, list[FloatArray]] = {}
    skipped = 0
    for row, feature in enumerate(features):
        name = _convert_property_to_text((feature.properties or {}).get(_DISTRICT_PROPERTY))
        edges = _read_polygon_edges(feature.geometry, source, row)
        if name is None or edges is None:
            skipped += 1
        else:
            rings.setdefault(name, []).append(edges)
    note = (
        f"{skipped:,} feature(s) of {file.name} have no polygon or no {_DISTRICT_PROPERTY};"
        " they are left out."
    )
    return Districts(
        tuple(rings),
        tuple(np.concatenate(name_rings) for name_rings in rings.values()),
        (note,) if skipped else (),
        inputs,
    )


def _convert_property_to_text(property_value: object) -> str | None:
    """Write a property as text, as a table's cells are; null for none."""
    if property_value is None or isinstance(property_value, bool | list | dict):
        return None
    text: str | None = as_text(pl.Series([property_value]))[0]
    return text


def _read_polygon_edges(
    geometry: _GeoJsonGeometry | None, source: str, row: int
) -> FloatArray | None:
    """Give the edges of a polygon's rings, holes among them; None where it is not a polygon."""
    location = f"{source}, feature {row + 1}"
    if geometry is None or geometry.type not in ("Polygon", "MultiPolygon"):
        return None
    if geometry.type == "Polygon":
        polygons = [decode_json(bytes(geometry.coordinates), list[list[list[float]]], location)]
    else:
        polygons = decode_json(bytes(geometry.coordinates), list[list[list[list[float]]]], location)
    edges = [_read_ring_edges(ring, source, row) for polygon in polygons for ring in polygon]
    return np.concatenate(edges) if edges else None


def _read_ring_edges(ring: Sequence[Sequence[float]], source: str, row: int) -> FloatArray:
    is_valid = len(ring) >= 4 and all(len(position) in (2, 3) for position in ring)
    points = np.array([position[:2] for position in ring], np.float64) if is_valid else None
    # degrees of longitude and latitude, in GeoJSON's order
    if points is None or not (np.abs(points) <= (180.0, 90.0)).all():
        raise TableError(
            "a district's outline cannot be used",
            expected="rings of at least four [longitude, latitude], in degrees",
            found=repr(ring[:2])[:80],
            where=format_location(source, row + 1, "geometry"),
            hint="save it in WGS 84 (EPSG:4326), as GeoJSON asks",
        )
    return np.hstack([points, np.roll(points, -1, axis=0)])


def find_district_of_points(
    districts: Districts, longitude: FloatArray, latitude: FloatArray
) -> pl.Series:
    """Name the district of each place, the first in the file's order; null: none."""
    district_index = np.full(len(longitude), -1, np.int64)
    for k, edges in enumerate(districts.edges):
        low, high = edges[:, :2].min(axis=0), edges[:, :2].max(axis=0)
        is_near = (district_index < 0) & (longitude >= low[0]) & (longitude <= high[0])
        rows = np.flatnonzero(is_near & (latitude >= low[1]) & (latitude <= high[1]))
        step = max(_MAX_COMPARISONS // max(len(edges), 1), 1)
        for chunk in (rows[i : i + step] for i in range(0, len(rows), step)):
            district_index[chunk[_is_inside_polygon(edges, longitude[chunk], latitude[chunk])]] = k
    names = pl.Series("district", districts.names, dtype=pl.String)
    return names.gather(
        pl.Series(district_index, dtype=pl.Int64).set(pl.Series(district_index < 0), None)
    )


def _is_inside_polygon(edges: FloatArray, x: FloatArray, y: FloatArray) -> npt.NDArray[np.bool_]:
    x0, y0, x1, y1 = edges.T
    straddles = (y0 > y[:, None]) != (y1 > y[:, None])  # [places, edges]
    slope = np.divide(x1 - x0, y1 - y0, out=np.zeros(len(edges)), where=y1 != y0)
    crossed = straddles & (x[:, None] < x0 + slope * (y[:, None] - y0))
    is_inside_polygon: npt.NDArray[np.bool_] = crossed.sum(axis=1) % 2 == 1
    return is_inside_polygon


def read_income_by_district(path: str | Path, inputs: Inputs) -> pl.DataFrame:
    """Read a user's table of incomes by district: ``district``, ``income``."""
    file = Path(path).expanduser()
    table, source = inputs.read_table(file), str(file)
    require_columns(table, (_DISTRICT_PROPERTY, _INCOME_COLUMN), source)
    income = as_numbers(
        table[_INCOME_COLUMN], source=source, column=_INCOME_COLUMN, unknown=_UNKNOWN
    )
    expected = "a number from 0, one for each district"
    unusable = (income < 0) | ~income.is_finite()
    refuse_cells(unusable, table[_INCOME_COLUMN], "an income cannot be used", expected, source)
    rows = pl.DataFrame(
        [as_text(table[_DISTRICT_PROPERTY]).alias("district"), income.alias("income")]
    )
    district_incomes = rows.drop_nulls().unique(maintain_order=True)
    repeated = district_incomes["district"].filter(district_incomes["district"].is_duplicated())
    is_repeated = rows["district"].is_in(repeated.implode()) & ~rows["district"].is_first_distinct()
    refuse_cells(
        is_repeated,
        table[_INCOME_COLUMN],
        "a district has two incomes",
        expected,
        source,
        format_found=lambda row: f"{table[_INCOME_COLUMN][row]!r} for {rows['district'][row]!r}",
    )
    return district_incomes


class _BddLocation(msgspec.Struct):
    longitude: float | None = None
    latitude: float | None = None


class _BddVideoInfo(msgspec.Struct):
    locations: list[_BddLocation] | None = None


@dataclass(frozen=True, slots=True)
class VideoDistricts:
    """``video_id``, ``district``, ``income``; what was not found; each file's hash."""

    table: pl.DataFrame
    notes: tuple[str, ...]
    inputs: dict[str, str]


def find_video_districts_or_none(
    videos: pl.Series,
    info_dir: str | Path | None,
    districts: str | Path | None,
    incomes: str | Path | None,
) -> VideoDistricts | None:
    """Find the district and income of each video; None if no settings of places are given."""
    if info_dir is None and districts is None and incomes is None:
        return None
    if info_dir is None or districts is None:
        paths = {"info": info_dir, "districts": districts, "incomes": incomes}
        raise SpecError(
            "districts need places and outlines",
            expected="info, the folder of info/100k/<part>, and districts, a GeoJSON file",
            found=", ".join(name for name, setting in paths.items() if setting),
        )
    root = Path(info_dir).expanduser()
    if not root.is_dir():
        raise FileError("there is no such folder of videos' places", where=str(root))
    outlines = read_districts_geojson(districts)
    names = videos.unique(maintain_order=True)
    # One small file for each video: places stand nowhere else.
    locations = [_read_first_video_location(root / f"{name}.json") for name in names]
    longitude, latitude = np.array(locations, np.float64).reshape(-1, 2).T
    district = find_district_of_points(outlines, longitude, latitude)
    table = pl.DataFrame({"video_id": names, "district": district})
    inputs = Inputs({str(root): sha256_listing(root)} | outlines.inputs)
    n_located = int(np.isfinite(longitude).sum())
    n_without_location, n_outside = len(names) - n_located, n_located - district.count()
    problem = f"{n_without_location:,} of {len(names):,} video(s) have no place"
    notes = [*outlines.notes, f"{problem}, {n_outside:,} are in none of the districts."]
    income = pl.lit(None, dtype=pl.Float64)
    if incomes is not None:
        table = left_join_in_order(table, read_income_by_district(incomes, inputs), "district")
        n_without_income = int((table["district"].is_not_null() & table["income"].is_null()).sum())
        notes.append(f"{n_without_income:,} video(s) are in a district without an income.")
        income = pl.col("income")
    return VideoDistricts(table.with_columns(income=income), tuple(notes), inputs)


def _read_first_video_location(file: Path) -> tuple[float, float]:
    """Read the first location of a video, as REVISE does; NaN without one."""
    no_location = (float("nan"),) * 2
    if not file.is_file():
        return no_location
    locations = decode_json(read_file_bytes(file), _BddVideoInfo, str(file)).locations or []
    first = locations[0] if locations else _BddLocation()
    if first.longitude is None or first.latitude is None:
        return no_location
    if not (abs(first.longitude) <= 180 and abs(first.latitude) <= 90):
        return no_location
    return first.longitude, first.latitude
