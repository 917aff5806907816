"""FACET's Table 18 in FACET's own layout: 68,695 masks of made-up people are counted back.

Every attribute of the table at once: the totals of a kind of mask are its people, and each value
is given to as many of them as the table prints, one after another around the circle, so that
everybody has one of each attribute. Gender and age are single; the others may be several.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from isolux.api.describe.counts import describe_datasets as counted
from isolux.core.containers import Dataset
from isolux.datasets import load
from tests._shared import SHARED

KINDS = ("person", "clothing", "hair")
TOTALS = {"person": 10_857, "clothing": 50_655, "hair": 7_183}
FAMILIES = {
    "perceived gender presentation": (
        "gender_presentation",
        {"with stereotypical maleness": "masc", "with stereotypical femaleness": "fem",
         "non-binary presentation": "non_binary"},
    ),
    "perceived skin tone": ("skin_tone", {f"MST {k}": str(k) for k in range(1, 11)}),
    "perceived age group": (
        "age_presentation", {"younger": "young", "middle": "middle", "older": "older"}
    ),
    "Hair color": (
        "hair_color",
        {"red/orange": "red"} | {c: c for c in ("black", "brown", "blonde", "colored", "grey")},
    ),
    "Hair type": (
        "hairtype", {t: t for t in ("wavy", "curly", "straight", "coily", "dreadlocks", "bald")}
    ),
}  # fmt: skip
FLAGS = {"eyeware": "has_eyeware", "headscarf": "has_headscarf", "tattoo": "has_tattoo",
         "cap": "has_cap", "facial hair": "has_facial_hair", "mask": "has_mask"}  # fmt: skip
UNKNOWN = ("cannot be determined", "Unknown")


@pytest.fixture(scope="module")
def printed() -> pl.DataFrame:
    path = SHARED / "golden" / "facet_t18.csv"
    if not path.exists():
        pytest.skip(f"GOLDEN TABLE ABSENT: {path}, so Table 18 was NOT counted back")
    return pl.read_csv(path)


def columns_of(printed: pl.DataFrame) -> dict[str, list[bool]]:
    """Mark each person of each kind, kind after kind."""
    marks: dict[str, list[bool]] = {}
    for kind in KINDS:
        total = TOTALS[kind]
        counts = {(a, g): n for a, g, n in printed.select("attribute", "group", kind).rows()}
        for attribute, (family, values) in FAMILIES.items():
            unknown = next(counts[attribute, u] for u in UNKNOWN if (attribute, u) in counts)
            known, at = total - unknown, 0
            for group, value in values.items():
                n = counts[attribute, group]
                on = {k % known for k in range(at, at + n)}
                assert len(on) == n
                at += n
                of = marks.setdefault(f"{family}_{value}", [])
                of += [k in on for k in range(total)]
            assert at >= known  # nobody is left without a value
            marks.setdefault(f"{family}_na", []).extend(k >= known for k in range(total))
        for group, name in FLAGS.items():
            n = counts["Additional attribute", group]
            marks.setdefault(name, []).extend(k < n for k in range(total))
    return marks


@pytest.fixture(scope="module")
def dataset(printed, tmp_path_factory) -> Dataset:
    folder = tmp_path_factory.mktemp("facet") / "annotations"
    folder.mkdir()
    write(folder, columns_of(printed))
    return load("facet", folder.parent)


def write(folder: Path, marks: dict[str, list[bool]]) -> None:
    box = json.dumps({"x": 0, "y": 0, "width": 2, "height": 2})
    people = sum(TOTALS.values())
    with (folder / "annotations.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["person_id", "filename", "class1", "class2", "bounding_box", *marks])
        rows = zip(*([int(on) for on in column] for column in marks.values()), strict=True)
        for at, row in enumerate(rows):
            writer.writerow([at, f"sa_{at % 9_000}.jpg", "nurse", "", box, *row])
    kinds = [kind for kind in KINDS for _ in range(TOTALS[kind])]
    masks = {
        "images": [{"id": i, "file_name": f"sa_{i}.jpg", "width": 4, "height": 4}
                   for i in range(9_000)],
        "annotations": [
            {"id": k, "image_id": k % 9_000, "person_id": k, "category_id": KINDS.index(kinds[k]),
             "bbox": [0, 0, 2, 2], "segmentation": {"size": [4, 4], "counts": "04<"}}  # 0, 4, 12
            for k in range(people)
        ],
        "categories": [{"id": i, "name": name} for i, name in enumerate(KINDS)],
    }  # fmt: skip
    (folder / "coco_masks.json").write_text(json.dumps(masks))


def test_every_count_of_table_18_comes_back(printed, dataset):
    assert dataset.instances.height == 68_695
    parts = dataset.instances.select("instance_id", "part_masks").explode("part_masks").drop_nulls()
    owners = {
        "person": dataset.instances.filter(pl.col("mask_counts").is_not_null())["instance_id"],
        **{kind: parts.filter(pl.col("part_masks").struct.field("part") == kind)["instance_id"]
           for kind in KINDS[1:]},
    }  # fmt: skip
    assert {kind: len(of) for kind, of in owners.items()} == TOTALS
    for attribute, group, *counts in printed.select("attribute", "group", *KINDS).rows():
        name, values = FAMILIES.get(attribute, (FLAGS.get(group), {group: "yes"}))
        rows = dataset.values_of(name)
        wanted = pl.col("value").is_null() if group in UNKNOWN else pl.col("value") == values[group]
        units = rows.filter(wanted).select("unit_id")
        for kind, n in zip(KINDS, counts, strict=True):
            found = owners[kind].to_frame("unit_id").join(units, on="unit_id", how="semi").height
            assert found == n, (attribute, group, kind)


def test_isolux_describe_prints_them(printed, dataset):
    tables = counted({"facet": dataset}, ["gender_presentation", "age_presentation"]).tables
    found = [t for caption, t in tables.items() if caption.startswith("Masks by")]
    assert len(found) == 2
    for table, attribute in zip(
        found, ("perceived gender presentation", "perceived age group"), strict=True
    ):
        assert {kind: table[kind].sum() for kind in KINDS} == TOTALS
        rows = printed.filter(attribute=attribute).select(KINDS).rows()
        assert sorted(table.select(KINDS).rows()) == sorted(rows)
