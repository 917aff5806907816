"""FACET's printed cells through our tables and differences, and where the paper contradicts itself.

The tables are the paper's own (golden tables); none of its data is needed. A printed number has
one decimal, so it may be off by .05, and a difference of two by .1. Each contradiction that
``papers/facet/disagreements.py`` tells a reader is counted here.
"""

import polars as pl
import pytest

from isolux.core.tables import GROUP_METRICS
from isolux.disparity.formulas import difference
from isolux.papers.facet import (
    DISAGREEMENTS,
    build_largest_age_gaps_table,
    build_largest_differences_table,
)
from isolux.papers.facet.recall import (
    build_box_and_mask_recall_by_gender,
    build_recall_by_class_and_age,
    build_recall_by_gender_and_age,
    build_recall_by_hair_and_tone,
    build_recall_by_skin_tone,
    build_recall_of_largest_age_gaps,
)
from tests._shared import SHARED

HALF = 0.05 + 1e-9
RECALLS = {
    "mAR": ("average_recall", None),
    "AR50": ("recall_at_iou", 0.5),
    "AR75": ("recall_at_iou", 0.75),
}
AGES = ("young", "middle", "older")
MASC, FEM = "more stereotypically male attributes", "more stereotypically female attributes"


def golden(name):
    path = SHARED / "golden" / f"facet_{name}.csv"
    if not path.exists():
        pytest.skip(
            f"GOLDEN TABLE ABSENT: {path} is not there, so that our tables and differences agree "
            "with the paper's printed numbers was NOT checked; set ISOLUX_SHARED to the folder "
            "that holds golden/"
        )
    return pl.read_csv(path, schema_overrides={"mst": pl.String})


def group_metrics(cells):
    """Make rows of group_metrics of (attribute, values, heading or metric, points) and more."""
    rows = []
    for cell in cells:
        metric, threshold = RECALLS.get(cell["heading"], (cell["heading"], None))
        points = cell["points"]
        rows.append(
            {
                "model": cell.get("model", "m"),
                "task": cell.get("task", "detection"),
                "metric": metric,
                "threshold": threshold,
                "label": cell.get("label"),
                "attribute": cell["attribute"],
                "values": cell["values"],
                "n_units": cell.get("n", 50),
                "value": None if points is None else points / 100,
            }
        )
    names = list(rows[0])
    schema = {name: GROUP_METRICS.schema[name] for name in names}
    return GROUP_METRICS.conform(pl.DataFrame(rows, schema=schema))


def same(ours, printed):
    """Hold a table of ours against the printed cells, column by column."""
    for name in printed.columns:
        wanted = printed[name].to_list()
        approx = printed[name].dtype.is_numeric() and None not in wanted
        assert ours[name].to_list() == (pytest.approx(wanted) if approx else wanted), name


def gap(values):
    """Largest less smallest; the difference of two of our values, in points."""
    known = [v for v in values if v is not None]
    return float(difference(max(known), min(known)))


# --- detection: tables 5, 14, 6, 13 -------------------------------------------------------------


def tones(name):
    return group_metrics(
        {"attribute": "skin_tone", "values": [r["mst"]], "heading": h, "points": r[h]}
        for r in golden(name).iter_rows(named=True)
        for h in RECALLS
    )


@pytest.mark.parametrize("name", ["t05", "t14"])
def test_tables_5_and_14_come_out_as_printed(name):
    same(build_recall_by_skin_tone(tones(name)), golden(name))


@pytest.mark.parametrize(
    ("name", "gaps"),
    [
        ("t05", {"mAR": 2.9, "AR50": 1.9, "AR75": 4.6}),
        ("t14", {"mAR": 2.6, "AR50": 0.8, "AR75": 3.2}),
    ],
)
def test_gaps_between_skin_tones_are_as_the_text_says(name, gaps):
    """ "Over 4 points at AR.75", the largest there; the darkest tone lowest at every overlap."""
    found = build_recall_by_skin_tone(tones(name))
    for heading, expected in gaps.items():
        assert gap(found[heading]) == pytest.approx(expected)
        assert found.sort(heading)["mst"][0] == "10"
        assert found.sort(heading)["mst"][-1] == "1"


def hair():
    words = {"dreads": "dreadlocks"}
    return group_metrics(
        {
            "attribute": "hairtype*skin_tone",
            "values": [words.get(r["hair_type"], r["hair_type"]), shade],
            "heading": heading,
            "points": r[f"{heading}_{shade}"],
        }
        for r in golden("t06").iter_rows(named=True)
        for heading in RECALLS
        for shade in ("lighter", "darker")
    )


def test_table_6_comes_out_as_printed():
    same(build_recall_by_hair_and_tone(hair()), golden("t06"))


def test_table_6_is_reversed_elsewhere_than_its_caption_says():
    found = build_recall_by_hair_and_tone(hair())
    reversed_at = {
        heading: found.filter(pl.col(f"{heading}_darker") > pl.col(f"{heading}_lighter"))[
            "hair_type"
        ].to_list()
        for heading in RECALLS
    }
    assert reversed_at == {
        "mAR": ["straight"],
        "AR50": ["coily", "dreads", "straight", "curly", "wavy"],
        "AR75": ["straight"],
    }  # the caption: straight and wavy


def test_the_gap_for_dreads_changes_its_sign_and_is_not_50_times_as_large():
    dreads = build_recall_by_hair_and_tone(hair()).filter(hair_type="dreads").row(0, named=True)
    at = {
        n: float(difference(dreads[f"{n}_lighter"], dreads[f"{n}_darker"]))
        for n in ("AR50", "AR75")
    }
    assert at == pytest.approx({"AR50": -0.2, "AR75": 9.1})
    assert at["AR75"] / -at["AR50"] == pytest.approx(45.5)


def test_table_13_comes_out_as_printed():
    groups = {"more stereotypically maleness": "masc", "more stereotypically femaleness": "fem"}
    groups |= {"outside of gender binary": "non_binary", "younger": "young"}
    names = {"perceived gender presentation": "gender_presentation"}
    rows = golden("t13")
    table = group_metrics(
        {
            "attribute": names.get(r["attribute"], "age_presentation"),
            "values": [groups.get(r["group"], r["group"])],
            "heading": h,
            "points": r[h],
        }
        for r in rows.iter_rows(named=True)
        for h in RECALLS
    )
    same(build_recall_by_gender_and_age(table), rows.drop("group"))


# --- segmentation: table 7 ----------------------------------------------------------------------


def boxes_masks():
    groups = dict(
        zip(golden("t07")["gender_presentation"], ("masc", "fem", "non_binary"), strict=True)
    )
    return build_box_and_mask_recall_by_gender(
        *(
            group_metrics(
                {
                    "task": task,
                    "attribute": "gender_presentation",
                    "values": [groups[r["gender_presentation"]]],
                    "heading": h,
                    "points": r[f"{h}_{shape}"],
                }
                for r in golden("t07").iter_rows(named=True)
                for h in RECALLS
            )
            for task, shape in (("segmentation", "mask"), ("detection", "box"))
        )
    )


def test_table_7_comes_out_as_printed():
    same(boxes_masks(), golden("t07"))


def test_gaps_of_boxes_are_not_always_larger_than_those_of_masks():
    found = boxes_masks()
    two = found.filter(pl.col("gender_presentation").is_in([MASC, FEM]))
    names = [f"{h}_{shape}" for h in RECALLS for shape in ("box", "mask")]
    expected = ((two, (2.7, 1.4, 0.3, 0.6, 3.3, 1.7)), (found, (2.7, 9.2, 1.3, 6.1, 3.3, 10.6)))
    for rows, gaps in expected:
        assert [gap(rows[name]) for name in names] == pytest.approx(list(gaps))


def test_table_7s_last_row_is_of_50_people():
    """Its numbers are multiples of 1/50, of 1/500 for the mean of ten; Table 18 counts 50."""
    row = golden("t07").row(2, named=True)
    for name in ("AR50_box", "AR50_mask", "AR75_box", "AR75_mask"):
        assert row[name] / 2 == pytest.approx(round(row[name] / 2))
    people = golden("t18").filter(group="non-binary presentation")
    assert people["person"].item() == 50


# --- classification: tables 4, 11, 12 -----------------------------------------------------------


def test_table_4_comes_out_as_printed():
    # Only differences are printed: 40 for the lower group is made up, and drops out of them.
    printed = golden("t04")
    better = {"M-F": "masc", "F-M": "fem"}
    table = group_metrics(
        {
            "attribute": "gender_presentation",
            "values": [group],
            "heading": "recall",
            "label": r["person_class"],
            "points": 40.0
            + (r["difference_in_average_recall"] if group == better[r["direction"]] else 0.0),
        }
        for r in printed.iter_rows(named=True)
        for group in ("masc", "fem")
    )
    ours = build_largest_differences_table(table)
    for direction, name in (("M-F", "m_f"), ("F-M", "f_m")):
        rows = printed.filter(direction=direction)
        value = name.replace("_", "_minus_")
        assert ours[value].to_list() == pytest.approx(
            rows["difference_in_average_recall"].to_list()
        )
        # Skateboarder and prayer tie at 8.8: ours are by name then.
        assert set(ours[f"person_class_{name}"]) == set(rows["person_class"])
        assert ours[f"person_class_{name}"][:3].to_list() == rows["person_class"][:3].to_list()


def test_table_4s_classes_have_50_people_of_either_group():
    counts = golden("t04").join(golden("t17"), on="person_class", how="left")
    assert counts.height == 20
    assert counts["gp_masc"].min() >= 50
    assert counts["gp_fem"].min() >= 50


def gaps_of(name, models):
    rows = golden(name).unique("person_class", keep="first", maintain_order=True)
    return group_metrics(
        {
            "model": model,
            "attribute": "age_presentation",
            "values": [age],
            "heading": "recall",
            "label": r["person_class"],
            "points": r[f"{model}_{age}"],
        }
        for model in models
        for r in rows.iter_rows(named=True)
        for age in AGES
    )


@pytest.mark.parametrize(
    ("name", "models", "wrong"),
    [
        ("t11", ("clip_vit_b32", "vit_b16_in21k"), set()),
        ("t12", ("resnet_in21k", "vit_in21k"), {"guard"}),
    ],
)
def test_tables_11_and_12_list_the_largest_gaps_as_printed(name, models, wrong):
    """The printed classes hold each model's top five, so their ranks up to 5 are the whole's."""
    printed = golden(name)
    ours = build_largest_age_gaps_table(gaps_of(name, models))
    assert ours["person_class"].to_list() == printed["person_class"].to_list()
    assert ours["section"].to_list() == [f"Top for {m}" for m in models for _ in range(5)]
    for model in models:
        for age in AGES:
            for a, b in zip(ours[f"{model}_{age}"], printed[f"{model}_{age}"], strict=True):
                assert a == (None if b is None else pytest.approx(b))
        ranks = printed.select("person_class", printed=pl.col(f"{model}_rank")).with_columns(
            ours=ours[f"{model}_rank"]
        )
        differ = ranks.filter(pl.col("printed") <= 6, pl.col("printed") != pl.col("ours"))
        assert set(differ["person_class"]) == (wrong if model == "vit_in21k" else set())


def test_three_classes_not_two_are_in_both_top_fives_of_table_11():
    ranks = golden("t11").unique("person_class")
    both = ranks.filter(pl.col("clip_vit_b32_rank") <= 5, pl.col("vit_b16_in21k_rank") <= 5)
    assert sorted(both["person_class"]) == ["ballplayer", "laborer", "speaker"]


def test_table_12_ranks_guard_twice_for_one_model():
    assert golden("t12").filter(person_class="guard")["vit_in21k_rank"].to_list() == [6, 5]


@pytest.mark.parametrize("name", ["t11", "t12"])
def test_dashes_are_where_fewer_than_50_people_are(name):
    rows = golden(name).join(golden("t17"), on="person_class", how="left")
    model = rows.columns[2].removesuffix("_rank")
    for age, count in zip(AGES, ("age_younger", "age_middle", "age_older"), strict=True):
        assert (rows[f"{model}_{age}"].is_null() == (rows[count] < 50)).all()


# --- open vocabulary and grounding: tables 15 and 8 ---------------------------------------------

COUNTS = dict(zip(AGES, ("age_younger", "age_middle", "age_older"), strict=True))
SOLDIER = dict(
    zip(
        [f"ofa_{h}_{age}" for h in RECALLS for age in AGES],
        (16.3, 16.3, 1.2, 40.0, 33.8, 6.2, 9.2, 14.5, 0.0),
        strict=True,
    )
)
"""The one damaged row: one of two equal numbers was lost in conversion (golden/README.md)."""


def fifteen():
    """Give Table 15 with the damaged row mended."""
    return golden("t15").with_columns(
        pl.when(pl.col("person_class") == "soldier").then(value).otherwise(name).alias(name)
        for name, value in SOLDIER.items()
    )


def by_class(model):
    rows = fifteen().filter(pl.col("person_class") != "avg")
    rows = rows.join(golden("t17"), on="person_class", how="left", maintain_order="left")
    assert rows["total"].null_count() == 0
    return group_metrics(
        {
            "attribute": "age_presentation",
            "values": [age],
            "heading": h,
            "label": r["person_class"],
            "points": r[f"{model}_{h}_{age}"],
            "n": r[COUNTS[age]],
        }
        for r in rows.iter_rows(named=True)
        for h in RECALLS
        for age in AGES
    )


WRONG_AVERAGES = {
    "detic": {"mAR_older", "AR50_older", "AR75_young", "AR75_older"},
    "ofa": {"mAR_older", "AR50_older", "AR75_older"},
}


@pytest.mark.parametrize("model", WRONG_AVERAGES)
def test_table_15_comes_out_as_printed(model):
    printed = fifteen().select("person_class", pl.col(f"^{model}_.*$"))
    printed = printed.rename(lambda name: name.removeprefix(f"{model}_"))
    ours = build_recall_by_class_and_age(by_class(model))
    assert ours.columns == ["model", *printed.columns]
    assert ours.height == 53
    a = ours.filter(pl.col("person_class") != "avg").sort("person_class")
    b = printed.filter(pl.col("person_class") != "avg").sort("person_class")
    for name in b.columns[1:]:
        assert a[name].is_null().equals(b[name].is_null())
        assert (a[name] - b[name]).abs().max() < 1e-9


@pytest.mark.parametrize(("model", "wrong"), WRONG_AVERAGES.items())
def test_table_15s_averages_are_means_of_classes_but_for_seven(model, wrong):
    printed = golden("t15").filter(person_class="avg").row(0, named=True)
    ours = (
        build_recall_by_class_and_age(by_class(model)).filter(person_class="avg").row(0, named=True)
    )
    off = {
        name
        for name, value in ours.items()
        if name not in ("model", "person_class") and abs(value - printed[f"{model}_{name}"]) > HALF
    }
    assert off == wrong


def trio(model):
    return build_recall_of_largest_age_gaps(by_class(model))["person_class"].unique(
        maintain_order=True
    )


def test_with_50_in_each_age_group_the_largest_gaps_are_of_the_classes_the_text_names():
    assert set(trio("detic")) == {"trumpeter", "backpacker", "painter"}
    assert set(golden("t08")["person_class"]) == {"trumpeter", "backpacker", "drummer"}


def test_without_a_minimum_they_are_other_classes():
    table = by_class("detic").with_columns(n_units=50)
    found = build_recall_of_largest_age_gaps(table)["person_class"]
    assert set(found) == {"retailer", "flutist", "machinist"}


def test_table_8s_detic_is_table_15s():
    columns = ["person_class", "age", *RECALLS]
    ours = build_recall_of_largest_age_gaps(by_class("detic"), n_classes=4).select(columns)
    for shown in golden("t08").iter_rows(named=True):
        row = ours.filter(person_class=shown["person_class"], age=shown["age"]).row(0, named=True)
        assert [row[h] for h in RECALLS] == pytest.approx([shown[f"detic_{h}"] for h in RECALLS])


def test_table_8s_ofa_is_of_other_classes():
    cells = build_recall_by_class_and_age(by_class("ofa"))
    of = {"backpacker": "gardener", "drummer": "guitarist", "trumpeter": "soldier"}
    for shown in golden("t08").iter_rows(named=True):
        row = cells.filter(person_class=of[shown["person_class"]]).row(0, named=True)
        theirs = [shown[f"ofa_{h}"] for h in RECALLS]
        if shown["person_class"] == "trumpeter" and shown["age"] != "older":  # exchanged
            theirs = [theirs[0], theirs[2], theirs[1]]
        found = [row[f"{h}_{shown['age']}"] for h in RECALLS]
        assert found == pytest.approx(theirs, abs=0.1 + 1e-9), shown["person_class"]
    trumpeter = golden("t08").filter(person_class="trumpeter", age="young")
    assert trumpeter["ofa_AR50"].item() < trumpeter["ofa_AR75"].item()


def test_no_gap_of_nurse_is_nearly_27_points_and_her_best_group_changes():
    nurse = (
        build_recall_by_class_and_age(by_class("ofa"))
        .filter(person_class="nurse")
        .row(0, named=True)
    )
    ages = {h: {age: nurse[f"{h}_{age}"] for age in AGES} for h in RECALLS}
    assert {h: gap(v.values()) for h, v in ages.items()} == pytest.approx(
        {"mAR": 9.7, "AR50": 8.6, "AR75": 14.0}
    )
    assert [max(v, key=v.get) for v in ages.values()] == ["older", "young", "older"]


def test_table_15_has_no_minimum_of_50():
    rows = golden("t15").join(golden("t17"), on="person_class")
    printed = [
        r[COUNTS[age]]
        for r in rows.iter_rows(named=True)
        for age in AGES
        if r[f"detic_mAR_{age}"] is not None
    ]
    dashes = [
        r[COUNTS[age]]
        for r in rows.iter_rows(named=True)
        for age in AGES
        if r[f"detic_mAR_{age}"] is None
    ]
    assert sorted(printed)[:2] == [4, 5]  # climber, older; astronaut, younger
    assert max(dashes) == 7


def test_every_number_above_stands_in_the_notes():
    notes = " ".join(sentence for part in DISAGREEMENTS.values() for sentence in part)
    for words in (
        "45.5 times",
        "11 of 18 columns",
        "9.7, 8.6 and 14.0",
        "0.3 against 0.6",
        "gardener",
        "drummer in place of painter",
        "7 people or fewer",
    ):
        assert words in notes  # fmt: skip
