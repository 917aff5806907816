"""A synthetic world as FACET's own files, with the votes and slips of its annotators.

``annotations/annotations.csv`` (a row a person), ``coco_boxes.json``, ``coco_masks.json`` (person,
clothing, hair) and ``imgs_1`` to ``imgs_3``. What annotators perceive is drawn from the truth: a
skin tone is three annotators' votes for two tones next to one another, anything else the label
that two of three gave. The world's own attributes have no column in FACET; ``people.csv`` next to
the data holds them. Gustafson et al. (2023), appendix A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_from_counts, masks_to_coco, union_of_parts
from isolux_worlds._joins import left_join_in_order
from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.layouts._annotators import (
    compute_annotator_error_rates,
    draw_majority_labels,
    draw_tone_votes,
)
from isolux_worlds.layouts._files import (
    PaintedPicture,
    write_bytes_below,
    write_images_and_add_visible_people,
    write_tables_json,
)
from isolux_worlds.layouts._layout import Ids, LayoutWriter, Native, Way
from isolux_worlds.photo_world.vocabulary import OCCUPATIONS
from isolux_worlds.photo_world.world import PhotoWorld

__all__ = ["CLOTHING", "HAIR", "LAYOUT", "ids", "unite_part_masks", "write"]

CLOTHING = ("upper_clothing", "lower_clothing", "full_body_clothing")
HAIR = ("head_hair",)


def unite_part_masks(people: pl.DataFrame, part_names: Sequence[str]) -> pl.DataFrame:
    """Unite the masks of these parts of each person."""
    rows = people.with_row_index("row").drop("counts", strict=False)
    masks = rows.select("row", "height", "width", "part_masks").explode("part_masks")
    part_rows = masks.unnest("part_masks").filter(pl.col("part").is_in(list(part_names)))
    if part_rows.is_empty():
        return rows.head(0).drop("row").with_columns(counts=pl.lit(None, dtype=pl.String))
    row_index = part_rows["row"].unique(maintain_order=True)
    group_index = part_rows["row"].rle_id()
    sizes = part_rows["height"].to_numpy(), part_rows["width"].to_numpy()
    unions = union_of_parts(
        masks_from_counts(part_rows["counts"], *sizes),
        group_index.to_numpy().astype(np.int64),
        len(row_index),
    )
    counts = [mask["counts"].decode("ascii") for mask in masks_to_coco(unions)]
    united = pl.DataFrame({"row": row_index, "counts": counts})
    return rows.join(united, on="row", maintain_order="left").drop("row")


_ANNOTATORS = 3  # FACET's; a world may have others, but the columns hold 0 to 3
_FOLDERS = 3
_MARKS = (
    ("perceived_gender_presentation", "gender_presentation_", ("masc", "fem", "non_binary", "na")),
    ("age_group", "age_presentation_", ("young", "middle", "older", "na")),
    ("hair_color", "hair_color_", ("brown", "blonde", "grey", "na", "black", "colored", "red")),
    ("hair_type", "hairtype_", ("coily", "dreadlocks", "bald", "straight", "curly", "wavy", "na")),
)
_LIGHTING = ("underexposed", "dimly_lit", "well_lit", "na", "overexposed")
_SHORT = {"masculine": "masc", "feminine": "fem"}
_FLAGS = (
    ("has_facial_hair", "facial_hair", "yes"),
    ("has_tattoo", "tattoo", "yes"),
    ("has_cap", "headwear", "cap"),
    ("has_mask", "mask", "mask"),
    ("has_headscarf", "headwear", "headscarf"),
    ("has_eyeware", "eyewear", "glasses"),
)


def ids(world: PhotoWorld) -> Ids:
    """Name photos ``sa_<number>.jpg`` and people by their number, as the loader does."""
    images = world.photos.select(
        "image_id",
        native=pl.format("sa_{}.jpg", pl.int_range(1, pl.len() + 1)),
        number=pl.int_range(1, pl.len() + 1),
    )
    people = left_join_in_order(world.people.select("person_id", "image_id"), images)
    native = pl.col("person_id").cast(pl.String)
    return Ids(images, people.select("person_id", native=native, native_image="native"))


def write(
    world: PhotoWorld, root: Path, pictures: Iterator[PaintedPicture] | None = None
) -> PhotoWorld:
    """Write the world as FACET."""
    names = ids(world)
    path = pl.format("imgs_{}/{}", 1 + pl.col("number") % _FOLDERS, "native")
    paths = dict(names.images.select("image_id", path).iter_rows())
    world = write_images_and_add_visible_people(world, root, pictures, paths)
    numbers = names.images.select("image_id", "number", filename="native")
    people = left_join_in_order(world.sized_people(), numbers)
    table = build_facet_annotations(world, people).write_csv().encode()
    write_bytes_below(root, "annotations/annotations.csv", table)
    images = left_join_in_order(
        names.images, world.photos.select("image_id", "width", "height")
    ).select("width", "height", id="number", file_name="native")
    _write_facet_boxes(images, people, root)
    if "mask_counts" in people.columns:
        _write_facet_masks(images, people, root)
    return world


def build_facet_annotations(world: PhotoWorld, people: pl.DataFrame) -> pl.DataFrame:
    """Make ``annotations.csv``: all of FACET's columns, in its order."""
    first = _draw_annotated_labels(world, people, "occupation", OCCUPATIONS)
    second = "second_occupation"  # a world's own, where it has one
    second_class = pl.col(second) if second in people.columns else pl.lit(None, dtype=pl.String)
    words = zip(('{"x": ', ', "y": ', ', "width": ', ', "height": '), "xywh", strict=True)
    box = [e for word, s in words for e in (pl.lit(word), pl.col(f"box_{s}").round(2))]
    boxes = pl.concat_str(*box, pl.lit("}"))
    first = first.fill_null(people["occupation"])
    head = people.select(
        "person_id", "filename", class1=first, class2=second_class, bounding_box=boxes
    )
    marks = [_build_mark_columns(world, people, *attribute) for attribute in _MARKS]
    marks.insert(1, _build_tone_vote_columns(world, people))
    light = _build_mark_columns(world, people, "lighting", "lighting_", _LIGHTING)
    column_tables = [
        head,
        *marks,
        _build_wearing_columns(world, people),
        _build_visible_part_columns(people),
        light,
    ]
    return pl.concat(column_tables, how="horizontal")


def _draw_annotated_labels(
    world: PhotoWorld, people: pl.DataFrame, name: str, label_names: Sequence[str]
) -> pl.Series:
    """Let the annotators label an attribute; one that the world lacks is unknown."""
    values = people[name]
    if name == "hair_color":  # who is bald shows none
        values = values.set(people["hair_type"] == "bald", None)
    random = build_named_rng(world.seed, "annotators", "facet", name)
    error = compute_annotator_error_rates(world, people)
    return draw_majority_labels(
        values, label_names, n_annotators=_ANNOTATORS, error_rate=error, rng=random
    )


def _build_mark_columns(
    world: PhotoWorld, people: pl.DataFrame, name: str, beginning: str, words: Sequence[str]
) -> pl.DataFrame:
    """Write a column of 0 and 1 for each word; a null label is ``na``."""
    long = {short: word for word, short in _SHORT.items()}
    label_names = tuple(long.get(word, word) for word in words if word != "na")
    labels = (
        _draw_annotated_labels(world, people, name, label_names).replace(_SHORT).fill_null("na")
    )
    return pl.DataFrame({f"{beginning}{word}": (labels == word).cast(pl.Int64) for word in words})


def _build_tone_vote_columns(world: PhotoWorld, people: pl.DataFrame) -> pl.DataFrame:
    random = build_named_rng(world.seed, "annotators", "facet", "skin_tone")
    tones, error = (
        people["skin_tone"].cast(pl.Int64).to_numpy(),
        compute_annotator_error_rates(world, people),
    )
    votes = draw_tone_votes(tones, n_annotators=_ANNOTATORS, error_rate=error, rng=random)
    vote_counts = pl.DataFrame(votes, schema=[f"skin_tone_{t}" for t in range(1, 11)], orient="row")
    return vote_counts.with_columns(skin_tone_na=pl.lit(0, dtype=pl.Int64))


def _build_wearing_columns(world: PhotoWorld, people: pl.DataFrame) -> pl.DataFrame:
    """Write the marks of what people have or wear; what is unknown is not there."""
    columns = {}
    for column, name, flagged_value in _FLAGS:
        label = _draw_annotated_labels(world, people, name, sorted(people[name].unique()))
        columns[column] = (label == flagged_value).fill_null(value=False).cast(pl.Int64)
    return pl.DataFrame(columns)


def _build_visible_part_columns(people: pl.DataFrame) -> pl.DataFrame:
    """Mark what is seen: a photo of a face shows no torso; who is nearly hidden is minimal."""
    return people.select(
        visible_torso=(pl.col("view") != "face").cast(pl.Int64),
        visible_face=pl.lit(1, dtype=pl.Int64),
        visible_minimal=(pl.col("occlusion") == "heavy").cast(pl.Int64),
    )


def _write_facet_boxes(images: pl.DataFrame, people: pl.DataFrame, root: Path) -> None:
    categories = pl.DataFrame({"id": range(1, len(OCCUPATIONS) + 1), "name": OCCUPATIONS})
    of_class = dict(categories.select("name", "id").iter_rows())
    number = pl.col("occupation").replace_strict(of_class, return_dtype=pl.Int64)
    box = pl.concat_list(pl.col(f"box_{axis}").round(2) for axis in "xywh")
    id_columns = {"id": "person_id", "image_id": "number"}
    rows = people.select(**id_columns, category_id=number, bbox=box, person_id="person_id")
    tables = {"images": images, "annotations": rows, "categories": categories}
    write_tables_json(root, "annotations/coco_boxes.json", tables)


def _write_facet_masks(images: pl.DataFrame, people: pl.DataFrame, root: Path) -> None:
    """Write person, clothing and hair masks; what is not seen of a person has no entry."""
    masks_by_category = {
        "person": people.with_columns(counts="mask_counts"),
        "clothing": unite_part_masks(people, CLOTHING),
        "hair": unite_part_masks(people, HAIR),
    }
    masks = pl.struct(size=pl.concat_list("height", "width"), counts="counts")
    category_rows = [
        category_masks.with_columns(category=k)
        for k, category_masks in enumerate(masks_by_category.values(), start=1)
    ]
    masked = pl.concat(category_rows, how="diagonal").drop_nulls("counts")
    annotations = masked.select(
        id=pl.int_range(1, pl.len() + 1),
        image_id="number",
        category_id=pl.col("category").cast(pl.Int64),
        segmentation=masks,
        iscrowd=pl.lit(0),
        person_id="person_id",
    )
    categories = pl.DataFrame({"id": [1, 2, 3], "name": list(masks_by_category)})
    tables = {"images": images, "annotations": annotations, "categories": categories}
    write_tables_json(root, "annotations/coco_masks.json", tables)


LAYOUT = LayoutWriter(
    "occupations, boxes, masks; what three annotators perceived",
    write,
    ids,
    ways=(
        Way("classification"),
        Way("detection"),
        Way("label_association", options=("--taxonomy", "miap")),
        Way("open_vocabulary"),
        Way("grounding"),
        Way("retrieval"),
        Way("segmentation", pictures=True),
    ),
    names={
        "perceived_gender_presentation": Native("gender_presentation", _SHORT),
        "skin_tone": Native("skin_tone", exact=False),
        "age_group": Native("age_presentation"),
        "hair_color": Native("hair_color", exact=False),
        "hair_type": Native("hairtype"),
        "lighting": Native("lighting"),
        "facial_hair": Native("has_facial_hair"),
        "tattoo": Native("has_tattoo"),
        "eyewear": Native("has_eyeware", {"glasses": "yes", "none": "no"}),
        "mask": Native("has_mask", {"mask": "yes", "none": "no"}),
        "occupation": Native("class"),
    },
    options=("--votes", "top"),
    protocols=(
        Way("classification", protocol="facet:classification"),
        Way("detection", protocol="facet:detection"),
        Way("segmentation", protocol="facet:segmentation", pictures=True),
        Way(
            "detection",
            protocol="facet:segmentation_boxes",
            predictor="segmentation",
            pictures=True,
        ),
        Way("open_vocabulary", protocol="facet:open_vocabulary"),
        Way("grounding", protocol="facet:grounding"),
        Way("label_association", protocol="fairness_indicators:label_association_scenes"),
        Way("detection", protocol="fhibe:detection_on_facet"),
        Way("segmentation", protocol="fhibe:segmentation_on_facet", pictures=True),
    ),
)
