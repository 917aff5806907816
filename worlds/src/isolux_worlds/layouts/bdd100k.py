"""A synthetic world as BDD100K's files: frames of a street, boxes of the people on it, places.

``labels/det_20/det_val.json`` (weather, scene, time of day; pedestrians and riders),
``images/100k/val``, and ``info/100k/val/<video>.json`` with where a video was taken. A household's
photos are the frames of one video, so that what was sampled stays one cluster.
``districts/districts.geojson`` and ``districts/income.csv`` are the tables by which REVISE brings
incomes to places. Yu et al. (2020); Wang et al. (2022).

BDD100K has no scene for homes, shops and parks (``undefined``), and says nothing about who people
are: ``people.csv`` next to the data does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from isolux_worlds._joins import left_join_in_order
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.layouts._files import (
    PaintedPicture,
    build_deterministic_uuid,
    write_bytes_below,
    write_images_and_add_visible_people,
)
from isolux_worlds.layouts._layout import Ids, LayoutWriter, Native, Way
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["LAYOUT", "RIDERS", "ids", "write"]

RIDERS = ("horseman", "motorcyclist", "skateboarder")
"""Occupations of riders; everyone else is a pedestrian."""

_SCENES = {"city_street": "city street", "residential": "residential", "highway": "highway"}
_EDGE_PX = 0.75  # a box this near to the frame's edge is cut off by it

_CORNER = (40.5, -74.3)  # of the synthetic districts: latitude, longitude
_CELL = 0.02  # degrees
_PER_ROW = 20
_THIRDS = ("low", "middle", "high")


def ids(world: PhotoWorld) -> Ids:
    """Name frames ``<video>-<number>.jpg`` and boxes ``<frame>#<place in its labels>``."""
    frames = _build_bdd_frames(world)
    index_in_image = pl.int_range(pl.len()).over("image_id").alias("place")
    people = left_join_in_order(
        world.people.select("person_id", "image_id", index_in_image), frames
    )
    return Ids(
        frames.select("image_id", native="name", number=pl.int_range(1, pl.len() + 1)),
        people.select("person_id", native=pl.format("{}#{}", "name", "place"), native_image="name"),
    )


def write(
    world: PhotoWorld, root: Path, pictures: Iterator[PaintedPicture] | None = None
) -> PhotoWorld:
    """Write the world as BDD100K; see ``facet.write``."""
    frames = _build_bdd_frames(world)
    path = pl.format("images/100k/val/{}", "name")
    world = write_images_and_add_visible_people(
        world, root, pictures, dict(frames.select("image_id", path).iter_rows())
    )
    districts = _assign_districts_to_households(world)
    content = _build_scalabel_frames(world, frames).write_json().encode()
    write_bytes_below(root, "labels/det_20/det_val.json", content)
    _write_video_locations(frames, districts, root)
    _write_districts_and_incomes(districts, root)
    return world


def _build_bdd_frames(world: PhotoWorld) -> pl.DataFrame:
    """Name every photo: its video is its household's, its number counts the video's frames."""
    homes = world.photos["household_id"].unique(maintain_order=True).to_list()
    short = [build_deterministic_uuid(world.seed, "video", home).replace("-", "") for home in homes]
    names = [f"{name[:8]}-{name[8:16]}" for name in short]
    columns = {"household_id": pl.String, "video": pl.String}
    videos = pl.DataFrame({"household_id": homes, "video": names}, schema=columns)
    index = pl.int_range(pl.len()).over("household_id")
    number = (index + 1).cast(pl.String).str.zfill(7)
    frames = left_join_in_order(
        world.photos.select("image_id", "household_id"), videos, "household_id"
    )
    return frames.with_columns(index=index, name=pl.format("{}-{}.jpg", "video", number))


def _build_scalabel_frames(world: PhotoWorld, frames: pl.DataFrame) -> pl.DataFrame:
    """Make an object of each frame, as Scalabel writes it."""
    sized = world.sized_people()
    right, lower = pl.col("box_x") + pl.col("box_w"), pl.col("box_y") + pl.col("box_h")
    x, y, width, height = pl.col("box_x"), pl.col("box_y"), pl.col("width"), pl.col("height")
    box = pl.struct(x1=x.round(2), y1=y.round(2), x2=right.round(2), y2=lower.round(2))
    edge = pl.min_horizontal(x, y, width - right, height - lower) < _EDGE_PX
    rides = pl.col("occupation").is_in(list(RIDERS))
    marks = pl.struct(
        occluded=pl.col("occlusion") != "none", truncated=edge, trafficLightColor=pl.lit("NA")
    )
    label = pl.struct(
        id=pl.col("person_id").cast(pl.String),
        category=pl.when(rides).then(pl.lit("rider")).otherwise(pl.lit("pedestrian")),
        attributes=marks,
        box2d=box,
    )
    labels = sized.group_by("image_id", maintain_order=True).agg(labels=label)
    photos = left_join_in_order(world.photos, frames)
    scene = pl.col("scene").replace_strict(_SCENES, default="undefined", return_dtype=pl.String)
    hour = pl.col("time_of_day").str.replace("_", "/")
    return left_join_in_order(photos, labels).select(
        "name",
        videoName="video",
        frameIndex="index",
        timestamp=pl.lit(10_000),
        size=pl.struct("width", "height"),
        attributes=pl.struct(weather="weather", scene=scene, timeofday=hour),
        labels="labels",
    )


def _assign_districts_to_households(world: PhotoWorld) -> pl.DataFrame:
    """Give each household a district: who lives in one place and earns alike."""
    homes = world.households
    location_column = "district" if "district" in homes.columns else "country"
    rank = pl.col("income").rank("ordinal").cast(pl.Int64)
    third = 3 * (rank - 1) // pl.col("income").count().cast(pl.Int64)
    words = third.replace_strict(dict(enumerate(_THIRDS)))
    with_area = homes.with_columns(area=pl.format("{}, {} incomes", location_column, words))
    areas = pl.DataFrame({"area": with_area["area"].unique().sort()})
    number = areas.with_columns(number=pl.int_range(pl.len()))
    random = build_named_rng(world.seed, "places", "bdd100k")
    offsets = random.uniform(0.1, 0.9, (homes.height, 2))
    cells = left_join_in_order(with_area, number, "area")
    row, column = np.divmod(cells["number"].to_numpy(), _PER_ROW)
    names = ("household_id", "area", "income", "number")
    return cells.select(
        *names,
        postalCode=(10_000 + pl.col("number")).cast(pl.String),
        latitude=pl.Series(np.round(_CORNER[0] + _CELL * (row + offsets[:, 0]), 6)),
        longitude=pl.Series(np.round(_CORNER[1] + _CELL * (column + offsets[:, 1]), 6)),
    )


def _write_video_locations(frames: pl.DataFrame, districts: pl.DataFrame, root: Path) -> None:
    """Write where each video was taken."""
    videos = frames.unique("household_id", maintain_order=True)
    located_videos = left_join_in_order(videos, districts, "household_id")
    for video, latitude, longitude in located_videos.select(
        "video", "latitude", "longitude"
    ).rows():
        spot = {"latitude": latitude, "longitude": longitude, "speed": 0.0, "timestamp": 0}
        video_record = {"filename": f"{video}.mov", "locations": [spot], "gps": [spot]}
        write_bytes_below(root, f"info/100k/val/{video}.json", msgspec.json.encode(video_record))


def _write_districts_and_incomes(districts: pl.DataFrame, root: Path) -> None:
    """Write the districts' squares, and their median incomes in US dollars a year."""
    median = (12 * pl.col("income").median()).round(2)
    groups = districts.group_by("postalCode", "area", "number")
    table = groups.agg(median_income=median).sort("number")
    features = []
    for code, area, number in table.select("postalCode", "area", "number").rows():
        south = round(_CORNER[0] + _CELL * (number // _PER_ROW), 6)
        west = round(_CORNER[1] + _CELL * (number % _PER_ROW), 6)
        north, east = round(south + _CELL, 6), round(west + _CELL, 6)
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        properties = {"postalCode": code, "name": area}
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": properties, "geometry": shape})
    shapes = {"type": "FeatureCollection", "features": features}
    incomes = table.select("postalCode", "median_income", "area").write_csv()
    write_bytes_below(root, "districts/districts.geojson", msgspec.json.encode(shapes))
    write_bytes_below(root, "districts/income.csv", incomes.encode())


_PLACE_OPTIONS = (
    "--data-option",
    "info={data}/info/100k/val",
    "--data-option",
    "districts={data}/districts/districts.geojson",
    "--data-option",
    "incomes={data}/districts/income.csv",
)
LAYOUT = LayoutWriter(
    "frames of streets: pedestrians and riders, weather, places and their incomes",
    write,
    ids,
    ways=(Way("detection", options=_PLACE_OPTIONS),),
    names={
        "weather": Native("weather"),
        "time_of_day": Native("timeofday", {"dawn_dusk": "dawn/dusk"}),
        "scene": Native("scene", {"city_street": "city street"}, exact=False),
        "occlusion": Native(
            "occluded", {"none": "false", "partial": "true", "heavy": "true"}, exact=False
        ),
    },
    also=("--by", "income", "--bins", "income=quantile:3"),
    protocols=(Way("detection", protocol="icon2:detection", options=_PLACE_OPTIONS),),
)
