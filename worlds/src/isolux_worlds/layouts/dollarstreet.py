"""A synthetic world as Dollar Street's two releases: what a photo shows, in whose home.

MLCommons' ``images_v2.csv`` with ``assets``, its parts with ImageNet classes, and the list
``metadata_full_dollar_street.json`` that Fairness Indicators reads. Dollar Street judges things,
not people: a photo's topics are its scene and what the people in it use. Homes without an income
are left out. De Vries et al. (2019); Gaviria Rojas et al. (2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from isolux_worlds._joins import left_join_in_order
from isolux_worlds.layouts._files import (
    PaintedPicture,
    build_deterministic_uuid,
    write_bytes_below,
    write_images_and_add_visible_people,
)
from isolux_worlds.layouts._layout import Ids, LayoutWriter, Native, Way
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["LAYOUT", "SCENE_TOPICS", "TOPICS", "ids", "write"]

TOPICS: Mapping[str, tuple[str, str, int]] = {
    "Street view": ("street_view", "street sign", 919),
    "Home": ("homes", "mobile home", 660),
    "Fruit trees": ("fruit_trees", "park bench", 703),
    "Car": ("cars", "sports car", 817),
    "Living room": ("living_rooms", "studio couch", 831),
    "Vegetables": ("vegetables", "grocery store", 582),
    "Instrument": ("instruments", "acoustic guitar", 402),
    "Computer": ("computers", "desktop computer", 527),
    "Moped/motorcycle": ("motorcycles", "moped", 665),
    "Tools": ("tools", "hammer", 587),
    "Vegetable plot": ("vegetable_plots", "shovel", 792),
    "Plates": ("plates", "plate", 923),
}
"""MLCommons' topic: the other release's label, and an ImageNet class by name and number."""

SCENE_TOPICS: Mapping[str, str] = {
    "city_street": "Street view",
    "residential": "Home",
    "park": "Fruit trees",
    "highway": "Car",
    "home": "Living room",
    "shop": "Vegetables",
}
"""Scene to topic. Dollar Street has none for parks and shops: what is to be seen there stands."""

_OF_OCCUPATION: Mapping[str, str] = {
    **dict.fromkeys(("drummer", "flutist", "guitarist", "trumpeter"), "Instrument"),
    **dict.fromkeys(("computer_user", "disk_jockey"), "Computer"),
    "motorcyclist": "Moped/motorcycle",
    **dict.fromkeys(("carpenter", "craftsman", "electrician", "machinist", "repairman"), "Tools"),
    **dict.fromkeys(("farmer", "gardener"), "Vegetable plot"),
    **dict.fromkeys(("bartender", "waiter"), "Plates"),
}
_REGIONS = {"af": "Africa", "am": "The Americas", "as": "Asia", "eu": "Europe"}
_TEST = 3  # every third photo is one of the test part


def ids(world: PhotoWorld) -> Ids:
    """Name photos by 24 hexadecimal digits; photos are judged, not people."""
    images = _build_dollarstreet_photos(world).select(
        "image_id", native="id", number=pl.int_range(1, pl.len() + 1)
    )
    empty_schema = {"person_id": pl.Int64, "native": pl.String, "native_image": pl.String}
    return Ids(images, pl.DataFrame(schema=empty_schema))


def write(
    world: PhotoWorld, root: Path, pictures: Iterator[PaintedPicture] | None = None
) -> PhotoWorld:
    """Write the world as Dollar Street; see ``facet.write``."""
    photos = _build_dollarstreet_photos(world)
    paths = dict(photos.select("image_id", pl.format("assets/{}.jpg", "id")).iter_rows())
    world = write_images_and_add_visible_people(world, root, pictures, paths)
    table = _build_mlcommons_table(photos)
    tested = pl.int_range(pl.len()) % _TEST == 0
    table_by_suffix = {"": table, "_imagenet_test": table.filter(tested)}
    table_by_suffix["_imagenet_train"] = table.filter(~tested)
    for name, rows in table_by_suffix.items():
        write_bytes_below(root, f"images_v2{name}.csv", rows.write_csv().encode())
    addresses = _build_release_with_addresses(photos).write_json().encode()
    write_bytes_below(root, "metadata_full_dollar_street.json", addresses)
    return world


def _build_dollarstreet_photos(world: PhotoWorld) -> pl.DataFrame:
    """Describe each photo: whose home, which topics."""
    homes = world.households.select(
        "household_id", "country", "country_code", "region", "income", "latitude", "longitude"
    )
    topic = pl.col("scene").replace_strict(dict(SCENE_TOPICS), return_dtype=pl.String)
    photos = world.photos.select("image_id", "household_id", topic=topic)
    photos = left_join_in_order(photos, homes, "household_id")
    uuids = [
        build_deterministic_uuid(world.seed, "dollarstreet", name) for name in photos["image_id"]
    ]
    topics = pl.concat_list("topic", pl.col("used").fill_null([]))
    return left_join_in_order(photos, _list_topics_of_photos(world)).select(
        pl.exclude("topic", "used"),
        topics=topics.list.unique(maintain_order=True),
        uuid=pl.Series(uuids, dtype=pl.String),
        id=pl.Series([name.replace("-", "")[:24] for name in uuids], dtype=pl.String),
    )


def _list_topics_of_photos(world: PhotoWorld) -> pl.DataFrame:
    """List what the people of each photo use."""
    topic = dict(_OF_OCCUPATION)
    topic_column = pl.col("occupation").replace_strict(topic, default=None, return_dtype=pl.String)
    rows = (
        world.people.select("image_id", used=topic_column).drop_nulls().unique(maintain_order=True)
    )
    return rows.group_by("image_id", maintain_order=True).agg("used")


def _build_topic_text_expression(position: int) -> pl.Expr:
    """Bring a photo's topics to labels (0), ImageNet's words (1) or numbers (2), as text."""
    words = {topic: str(topic_fields[position]) for topic, topic_fields in TOPICS.items()}
    return pl.col("topics").list.eval(pl.element().replace_strict(words, return_dtype=pl.String))


def _build_mlcommons_table(photos: pl.DataFrame) -> pl.DataFrame:
    """Make MLCommons' table; lists stand as JSON, those of ImageNet as Python prints them."""
    return photos.select(
        "id",
        pl.col("country").alias("country.name"),
        pl.col("country_code").alias("country.id"),
        pl.col("region").alias("region.id"),
        pl.lit("image").alias("type"),
        pl.format("assets/{}.jpg", "id").alias("imageRelPath"),
        pl.format('["{}"]', pl.col("topics").list.join('","')).alias("topics"),
        pl.col("household_id").alias("place"),
        "income",
        pl.format("['{}']", _build_topic_text_expression(1).list.join("', '")).alias(
            "imagenet_synonyms"
        ),
        pl.format("[{}]", _build_topic_text_expression(2).list.join(", ")).alias(
            "imagenet_sysnet_id"
        ),
    )


def _build_release_with_addresses(photos: pl.DataFrame) -> pl.DataFrame:
    """Make the release with addresses: a row for each label of each photo."""
    country = pl.col("country").str.replace_all(" ", "%20")
    number = pl.col("household_id").str.strip_prefix("h").str.strip_chars_start("0")
    location = pl.format("{}%20{}", country, number)
    address = "http://static.dollarstreet.org/media/{}/image/{}/480x480-{}.jpg"
    url = pl.format(address, location, "uuid", "uuid")
    rows = photos.with_columns(url=url, label=_build_topic_text_expression(0)).explode("label")
    row = pl.format("{}-{}", "id", "label").alias("_id")
    region = pl.col("region").replace_strict(_REGIONS, return_dtype=pl.String)
    spot = {"lat": "latitude", "lng": "longitude"}
    return rows.select(row, "id", "label", "country", region, "income", "url", **spot)


LAYOUT = LayoutWriter(
    "photos of homes: what they show, country and income; photos are judged, not people",
    write,
    ids,
    ways=(Way("classification"), Way("geodiversity")),
    names={
        "income_group": Native("income_bucket", {"middle": "medium"}),
        "region": Native("region", _REGIONS),
        "country": Native("country"),
    },
    judges_people=False,
    protocols=(Way("geodiversity", protocol="fairness_indicators:geodiversity"),),
)
