"""The tables of one dataset's description: counts by group, size, crowding and mask.

Part of ``description``: people with their groups go in, tables by caption come out. Each follows a
table or figure of FACET (Gustafson et al. 2023), named where it is made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from isolux import derive
from isolux.api.describe.balance import BALANCE, Target, compare_group_shares_with_target
from isolux.core.containers import Dataset
from isolux.groups.intersections import format_group_name
from isolux.groups.unknown_values import UNKNOWN

_MAX_LISTED_PER_IMAGE = 10  # people per image from which images are counted together
_MAX_LISTED_CROWD = 4


LEVEL = 0.95
"""Of every interval of a description."""

NUMBER_QUANTILES = {"5th": 0.05, "25th": 0.25, "median": 0.5, "75th": 0.75, "95th": 0.95}
"""Columns of tables of numbers, and of those of distances."""


@dataclass(frozen=True, slots=True)
class DescribedPeople:
    """One dataset's people without crowds, their group memberships and notes."""

    dataset: Dataset
    people: pl.DataFrame
    attributes: pl.DataFrame
    by: tuple[tuple[str, ...], ...]
    groups: pl.DataFrame
    notes: tuple[str, ...]

    def memberships(self, names: Sequence[str]) -> pl.DataFrame:
        """Return the memberships of one attribute or intersection."""
        return self.groups.filter(pl.col("attribute") == "*".join(names))


def build_tables(people: DescribedPeople, target: Target | None) -> dict[str, pl.DataFrame]:
    """Build every table that the dataset allows, by caption, in reading order."""
    tables = {"People, images and subjects": _build_size_table(people)}
    if not people.people.height:
        return tables
    tables |= {
        f"By {format_attribute(people, names)}": _build_count_table(people, names)
        for names in people.by
    }
    if people.by:
        tables["Known, unknown and missing"] = _build_missing_table(people)
        rows = [
            compare_group_shares_with_target("*".join(n), _count_known_groups(people, n), target)
            for n in people.by
        ]
        tables["Balance"] = pl.DataFrame(rows, schema=BALANCE)
    tables["People per image"] = _count_images_by_n_people(people)
    tables |= _build_box_tables(people)
    for names in people.by:
        masks = _build_mask_table(people, names) if len(names) == 1 else None
        if masks is not None:
            tables[f"Masks by {format_attribute(people, names)}"] = masks
    return tables


def format_attribute(people: DescribedPeople, names: Sequence[str]) -> str:
    """Format an attribute or intersection in the dataset's terms, with the name to type."""
    terms = dict(people.dataset.info.terms)
    return " × ".join(f"{terms[n]} ({n})" if n in terms else n for n in names)


def _name_column(name: str, reserved: Collection[str]) -> str:
    """Name a column after an attribute, without a clash with the table's own columns."""
    return f"{name} (value)" if name in reserved else name


def _percentage_expression(count: pl.Expr, total: int) -> pl.Expr:
    return 100.0 * count / total if total else pl.lit(None, dtype=pl.Float64)


def _build_size_table(people: DescribedPeople) -> pl.DataFrame:
    rows, images = people.people, people.dataset.images
    n_images = rows["image_id"].n_unique()
    subjects = rows["subject_id"].drop_nulls().n_unique() or None
    n_single_person_images = rows.group_by("image_id").len().filter(pl.col("len") == 1).height
    return pl.DataFrame(
        {
            "people": [rows.height],
            "subjects": pl.Series([subjects], dtype=pl.Int64),
            "images with people": [n_images],
            "images with one person": [n_single_person_images],
            "other images": [
                images.join(rows, on="image_id", how="anti").height if images.height else 0
            ],
            "people per image": pl.Series(
                [rows.height / n_images if n_images else None], dtype=pl.Float64
            ),
        }
    )


def _build_count_table(people: DescribedPeople, names: Sequence[str]) -> pl.DataFrame:
    """Count an attribute's groups as FACET's Table 3 does, two attributes crossed as Table 17."""
    if len(names) == 2:
        return _build_cross_table(people, names)
    id_columns = ["image_id", "subject_id"]
    rows = people.memberships(names).join(
        people.people.select("instance_id", *id_columns), left_on="unit_id", right_on="instance_id"
    )
    n, images = people.people.height, people.people["image_id"].n_unique()
    group_counts = rows.group_by("values", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("people"),
        pl.col("image_id").n_unique().cast(pl.Int64).alias("images"),
        pl.col("subject_id").drop_nulls().n_unique().cast(pl.Int64).alias("subjects"),
    )
    reserved = ["people", "images", "subjects", "dataset", "% of people", "% of images"]
    value_columns = [_name_column(name, reserved) for name in names]
    order = {"group": people.memberships(names)["values"].unique(maintain_order=True)}
    table = pl.DataFrame({"values": order["group"]}).join(
        group_counts, on="values", how="left", maintain_order="left"
    )
    table = table.select(
        *(
            pl.col("values").list.get(position).alias(value_column)
            for position, value_column in enumerate(value_columns)
        ),
        "people",
        _percentage_expression(pl.col("people"), n).alias("% of people"),
        "images",
        _percentage_expression(pl.col("images"), images).alias("% of images"),
        "subjects",
    )
    return table if people.people["subject_id"].is_not_null().any() else table.drop("subjects")


def _build_cross_table(people: DescribedPeople, names: Sequence[str]) -> pl.DataFrame:
    """Build one row per group of the first attribute, one column per group of the second."""
    rows = people.memberships(names[:1])["group"].unique(maintain_order=True)
    columns = people.memberships(names[1:])["group"].unique(maintain_order=True).to_list()
    reserved = {names[0], "people", "dataset"}
    totals = people.memberships(names[:1]).group_by(pl.col("group").alias("row")).len("people")
    value_pairs = people.memberships(names).select(
        row=pl.col("values").list.get(0), column=pl.col("values").list.get(1)
    )
    # Aggregated by position, not pivoted: a value may have the name of another column.
    value_counts = value_pairs.group_by("row").agg(
        (pl.col("column") == group).sum().cast(pl.Int64).alias(f"n{position}")
        for position, group in enumerate(columns)
    )
    table = pl.DataFrame({"row": rows}).join(totals, on="row", how="left", maintain_order="left")
    return table.join(value_counts, on="row", how="left", maintain_order="left").select(
        pl.col("row").alias(_name_column(names[0], ["people", "dataset"])),
        pl.col("people").cast(pl.Int64),
        *(
            pl.col(f"n{position}").fill_null(0).alias(_name_column(group, reserved))
            for position, group in enumerate(columns)
        ),
    )


def select_known_memberships(people: DescribedPeople, names: Sequence[str]) -> pl.DataFrame:
    """Return the memberships of one attribute or intersection whose every value is known."""
    return people.memberships(names).filter(~pl.col("values").list.contains(UNKNOWN))


def _count_known_groups(people: DescribedPeople, names: Sequence[str]) -> dict[str, int]:
    """Count people of the known groups; of an intersection also empty groups."""
    count_by_group = dict(
        select_known_memberships(people, names).group_by("group", maintain_order=True).len().rows()
    )
    group_tables = [
        select_known_memberships(people, (n,)).select(
            pl.col("group").unique(maintain_order=True).alias(n)
        )
        for n in names
    ]
    combinations = group_tables[0]
    for group_table in group_tables[1:]:
        combinations = combinations.join(group_table, how="cross")
    return {
        format_group_name(values): count_by_group.get(format_group_name(values), 0)
        for values in combinations.rows()
    }


def _build_missing_table(people: DescribedPeople) -> pl.DataFrame:
    """Count people with a known value, with only unknown values, and without a row."""
    n = people.people.height
    names = list(dict.fromkeys(name for entry in people.by for name in entry))
    rows = []
    for name in names:
        of_name = people.attributes.filter(pl.col("attribute") == name)
        n_known = select_known_memberships(people, (name,))["unit_id"].n_unique()
        missing = n - of_name["unit_id"].n_unique()
        rows.append((name, n_known, n - n_known - missing, missing))
    frame = pl.DataFrame(rows, schema=["attribute", "known", "unknown", "missing"], orient="row")
    return frame.with_columns(
        _percentage_expression(pl.col("unknown"), n).alias("% unknown"),
        _percentage_expression(pl.col("missing"), n).alias("% missing"),
    )


def _count_images_by_n_people(people: DescribedPeople) -> pl.DataFrame:
    """Count the images that hold one person, two, … (FACET, Figure 9)."""
    sizes = people.people.group_by("image_id").len("n")
    images = sizes.height
    is_open_ended = pl.col("n") >= _MAX_LISTED_PER_IMAGE
    label = (
        pl.when(is_open_ended)
        .then(pl.lit(f"{_MAX_LISTED_PER_IMAGE} or more"))
        .otherwise(pl.col("n").cast(pl.String))
    )
    labelled = sizes.with_columns(
        label=label, at=pl.min_horizontal("n", pl.lit(_MAX_LISTED_PER_IMAGE))
    )
    label_counts = labelled.group_by("label", "at").agg(
        images=pl.len().cast(pl.Int64), people=pl.col("n").sum().cast(pl.Int64)
    )
    return label_counts.sort("at").select(
        pl.col("label").alias("people in the image"),
        "images",
        _percentage_expression(pl.col("images"), images).alias("% of images"),
        "people",
    )


def _build_box_tables(people: DescribedPeople) -> dict[str, pl.DataFrame]:
    """Count sizes of boxes, and their shares of the image by crowding (FACET, Figure 10)."""
    rows = people.people
    if "box_w" not in rows.columns or rows["box_w"].is_null().all():
        return {}
    boxes_only = Dataset("boxes", people.dataset.info, rows, images=people.dataset.images)
    box_attributes = derive.add_missing_derived_attributes(
        boxes_only, ["box_size", "box_share"]
    ).attributes
    sizes = box_attributes.filter(pl.col("attribute") == "box_size").group_by("value").len("n")
    counts = dict(sizes.rows())
    order = [s for s in ("small", "medium", "large", None) if s is not None or s in counts]
    tables = {
        "Box sizes (COCO's ranges)": pl.DataFrame(
            {
                "size": [s or UNKNOWN for s in order],
                "people": [counts.get(s, 0) for s in order],
                "% of people": [100.0 * counts.get(s, 0) / rows.height for s in order],
            }
        )
    }
    shares = box_attributes.filter(pl.col("attribute") == "box_share").drop_nulls("number")
    if shares.height:
        tables["Box as a share of its image"] = _build_share_table(rows, shares)
    return tables


def _build_share_table(rows: pl.DataFrame, shares: pl.DataFrame) -> pl.DataFrame:
    crowd = rows.select("instance_id", n=pl.len().over("image_id"))
    tenth = (pl.col("number") * 10).floor().clip(0, 9).cast(pl.Int64)
    crowding_by_tenth = shares.join(crowd, left_on="unit_id", right_on="instance_id").select(
        tenth=tenth, n=pl.min_horizontal("n", pl.lit(_MAX_LISTED_CROWD))
    )
    tenths = pl.DataFrame({"tenth": range(10)}, schema={"tenth": pl.Int64})
    tenth_counts = crowding_by_tenth.group_by("tenth").agg(
        people=pl.len(),
        **{f"_{k}": (pl.col("n") == k).sum() for k in range(1, _MAX_LISTED_CROWD + 1)},
    )
    table = tenths.join(tenth_counts, on="tenth", how="left", maintain_order="left").fill_null(0)
    total = shares.height
    names = ["one person in the image", "two", "three", "four or more"]
    return table.select(
        pl.format("{} to {} %", pl.col("tenth") * 10, pl.col("tenth") * 10 + 10).alias(
            "part of the image"
        ),
        pl.col("people").cast(pl.Int64),
        _percentage_expression(pl.col("people"), total).alias("% of people"),
        *(pl.col(f"_{k}").cast(pl.Int64).alias(name) for k, name in enumerate(names, start=1)),
    )


def _build_mask_table(people: DescribedPeople, names: Sequence[str]) -> pl.DataFrame | None:
    """Count masks of people and of their parts by group (FACET, Table 18); None: there are none."""
    rows, column_names = people.people, set(people.people.columns)
    has_mask_column = [
        pl.col(c).is_not_null() for c in ("mask_counts", "mask_polygons") if c in column_names
    ]
    has_mask = pl.any_horizontal(has_mask_column) if has_mask_column else pl.lit(value=False)
    mask_counts = rows.select("instance_id", person=has_mask.cast(pl.Int64))
    if "part_masks" in column_names:
        part_rows = rows.select("instance_id", "part_masks").explode("part_masks").drop_nulls()
        if part_rows.height:
            parts_by_person = part_rows.select(
                "instance_id", part=pl.col("part_masks").struct.field("part")
            )
            mask_counts = mask_counts.join(
                parts_by_person.pivot(
                    on="part", index="instance_id", values="part", aggregate_function="len"
                ),
                on="instance_id",
                how="left",
            )
    columns = [c for c in mask_counts.columns if c != "instance_id"]
    if not any(mask_counts[c].sum() for c in columns):
        return None
    member_masks = people.memberships(names).join(
        mask_counts, left_on="unit_id", right_on="instance_id"
    )
    table = member_masks.group_by("group", maintain_order=True).agg(
        pl.col(columns).sum().cast(pl.Int64)
    )
    return table.rename({"group": _name_column(names[0], [*columns, "dataset"])})
