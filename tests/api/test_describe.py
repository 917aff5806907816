"""What a dataset holds: literal counts, FairFace's real labels; FACET's tables are in golden/."""

from __future__ import annotations

import csv
import math

import polars as pl
import pytest

from isolux.api.describe import describe
from isolux.api.describe.balance import compare_group_shares_with_target, read_target
from isolux.api.describe.counts import describe_datasets as counted
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.spec import Grouping
from isolux.core.tables import ATTRIBUTES
from isolux.datasets import load
from isolux.stats.proportions import wilson_interval
from tests._shared import shared_data

INFO = DatasetInfo(
    title="Made", summary="Made up.", references=(), terms=(("gender", "perceived presentation"),)
)


def made(rows, **columns) -> Dataset:
    """People from (id, image, {attribute: value or list of values})."""
    instances = pl.DataFrame(
        {"instance_id": [r[0] for r in rows], "image_id": [r[1] for r in rows], **columns}
    )
    values = [
        ("instance", unit, attribute, value)
        for unit, _, held in rows
        for attribute, found in held.items()
        for value in (found if isinstance(found, list) else [found])
    ]
    columns_of = {"unit_kind": pl.String, "unit_id": pl.String}
    columns_of |= {"attribute": pl.String, "value": pl.String}
    frame = pl.DataFrame(values, schema=columns_of, orient="row")
    return Dataset("made", INFO, instances, ATTRIBUTES.conform(frame))


# Five people in three images; d says nothing about gender, e has no row of it at all.
FIVE = [
    ("a", "1", {"gender": "F", "tone": ["3", "4"], "class": ["nurse", "singer"]}),
    ("b", "1", {"gender": "F", "tone": "3", "class": "nurse"}),
    ("c", "2", {"gender": "M", "tone": "10", "class": "nurse"}),
    ("d", "2", {"gender": "not sure", "tone": "4", "class": "singer"}),
    ("e", "3", {"tone": None, "class": "singer"}),
]


def test_people_and_images_are_counted_under_each_value():
    found = counted({"five": made(FIVE)}).tables
    tone = found["By tone"].select("tone", "people", "images")
    # a counts under 3 and 4; both people of tone 3 stand in image 1; numbers in their order.
    assert tone.rows() == [("3", 2, 1), ("4", 2, 2), ("10", 1, 1), ("unknown", 1, 1)]
    assert found["By tone"]["% of people"].to_list() == [40.0, 40.0, 20.0, 20.0]
    gender = found["By perceived presentation (gender)"].select("gender", "people", "% of images")
    # of 3 images: F in image 1, M in 2, unknown d in 2 and e in 3
    assert [row[:2] for row in gender.rows()] == [("F", 2), ("M", 1), ("unknown", 2)]
    assert gender["% of images"].to_list() == pytest.approx([100 / 3, 100 / 3, 200 / 3])


def test_two_attributes_are_crossed_with_the_total_first():
    found = counted({"five": made(FIVE)}, ["class*gender"]).tables
    (table,) = [t for name, t in found.items() if name.startswith("By class")]
    assert table.columns == ["class", "people", "F", "M", "unknown"]
    # nurse: a, b, c; singer: a, d, e
    assert table.rows() == [("nurse", 3, 2, 1, 0), ("singer", 3, 1, 0, 2)]


def test_three_attributes_have_a_row_for_each_group():
    found = counted({"five": made(FIVE)}, ["class*gender*tone"]).tables
    (table,) = [t for name, t in found.items() if name.startswith("By class")]
    assert table.columns[:4] == ["class", "gender", "tone", "people"]
    assert ("nurse", "F", "3", 2) in table.select(table.columns[:4]).rows()


def test_values_that_look_like_headings_do_not_collide():
    rows = [
        ("a", "1", {"row": "people", "column": "row"}),
        ("b", "1", {"row": "x", "column": "people"}),
    ]
    found = counted({"two": made(rows)}, ["row*column"]).tables["By row × column"]
    assert sorted(found.columns) == sorted(["row", "people", "row (value)", "people (value)"])
    assert dict(zip(found["row"], found["people (value)"], strict=True)) == {"people": 0, "x": 1}


def test_unknown_and_missing_are_told_apart():
    table = counted({"five": made(FIVE)}).tables["Known, unknown and missing"]
    rows = {row[0]: row[1:] for row in table.rows()}
    assert rows["gender"] == (3, 1, 1, 20.0, 20.0)
    assert rows["tone"] == (4, 1, 0, 20.0, 0.0)


def test_sizes_subjects_and_people_per_image():
    data = made(FIVE, subject_id=["s", "s", "t", None, "u"])
    found = counted({"five": data}).tables
    (sizes,) = found["People, images and subjects"].rows(named=True)
    assert (sizes["people"], sizes["subjects"], sizes["images with people"]) == (5, 3, 3)
    assert sizes["images with one person"] == 1
    crowding = found["People per image"].select("people in the image", "images", "people")
    assert crowding.rows() == [("1", 1, 1), ("2", 2, 4)]
    assert "subjects" in found["By tone"].columns


def test_ten_or_more_people_are_one_row():
    rows = [(str(i), "crowd", {"a": "x"}) for i in range(12)] + [("z", "alone", {"a": "x"})]
    table = counted({"d": made(rows)}).tables["People per image"]
    assert table.select("people in the image", "people").rows() == [("1", 1), ("10 or more", 12)]


def test_boxes_are_counted_by_size_and_by_share():
    # 10 × 10 is small, 50 × 50 medium, 200 × 200 large: 1, 2,500 and 40,000 of 100,000 px
    sides = [10.0, 50.0, 200.0]
    data = made([(str(i), str(i), {"a": "x"}) for i in range(3)], box_x=[0.0] * 3,
                box_y=[0.0] * 3, box_w=sides, box_h=sides)  # fmt: skip
    images = pl.DataFrame({"image_id": ["0", "1", "2"], "width": [400] * 3, "height": [250] * 3})
    found = counted({"d": Dataset("d", INFO, data.instances, data.attributes, images)}).tables
    assert found["Box sizes (COCO's ranges)"]["people"].to_list() == [1, 1, 1]
    shares = found["Box as a share of its image"]
    assert shares["people"].to_list() == [2, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert shares["one person in the image"].sum() == 3


def test_crowds_are_not_people():
    data = made(FIVE, is_crowd=[False, False, False, False, True])
    found = counted({"d": data})
    assert found.tables["People, images and subjects"]["people"].item() == 4
    assert any("1 crowd(s) are not counted" in note for note in found.notes)


def test_nobody_at_all_gives_sizes_and_a_note():
    found = counted({"none": made([])})
    assert list(found.tables) == ["People, images and subjects"]
    assert found.tables["People, images and subjects"]["people per image"].item() is None
    assert "there is nobody to count" in " ".join(found.notes)


def test_order_of_rows_does_not_matter():
    there = counted({"d": made(FIVE)}, ["tone*gender"]).tables
    back = counted({"d": made(FIVE[::-1])}, ["tone*gender"]).tables
    for caption, table in there.items():
        assert table.equals(back[caption]), caption


def test_an_attribute_of_many_numbers_waits_for_bins():
    rows = [(str(i), str(i), {"age": str(i)}) for i in range(40)]
    found = counted({"d": made(rows)})
    assert "By age" not in found.tables
    assert "age has 40 values and is not used for counts" in " ".join(found.notes)
    bins = {"age": Grouping(attribute="age", bins="edges:20")}
    table = counted({"d": made(rows)}, ["age"], bins).tables["By age"]
    assert table["people"].to_list() == [20, 20]


def test_a_number_without_bins_has_quantiles_in_place_of_groups():
    data = made([(str(i), str(i), {"race": "A"}) for i in range(40)])
    numbers = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": [str(i) for i in range(40)], "attribute": "age",
         "value": [str(i) for i in range(40)], "number": [float(i) for i in range(40)]}
    )  # fmt: skip
    rows = pl.concat([data.attributes, ATTRIBUTES.conform(numbers)], how="diagonal_relaxed")
    data = Dataset("made", INFO, data.instances, ATTRIBUTES.conform(rows))
    for by in ([], ["age", "race"]):
        found = counted({"d": data}, by)
        assert "By age" not in found.tables
        assert found.tables["Numbers: age"]["median"].to_list() == [19.5, 19.5]
    assert "age is a number: its quantiles are given, and groups with --bins." in found.notes
    with pytest.raises(SpecError, match="40 different numbers, too many to be groups"):
        counted({"d": data}, ["age*race"])


def test_attributes_of_one_dataset_alone_are_not_put_side_by_side_unasked():
    both = {"five": made(FIVE), "other": made([("a", "1", {"race": "A", "gender": "F"})])}
    found = counted(both)
    side = [name for name in found.tables if name.startswith("Side by side")]
    assert side == ["Side by side: perceived presentation (gender), 95 % intervals"]
    assert any("only one dataset has them: tone, class, race" in note for note in found.notes)


def test_datasets_stand_side_by_side_with_wilsons_intervals():
    one = made([(str(i), str(i), {"race": "A" if i < 30 else "B"}) for i in range(100)])
    two = made([(str(i), str(i), {"race": "A"}) for i in range(50)])
    found = counted({"one": one, "two": two}, ["race"]).tables
    table = found["Side by side: race, 95 % intervals"]
    rows = {(r["group"], r["dataset"]): r for r in table.rows(named=True)}
    # z = 1.959964: (30 + z²/2) / (100 + z²) ± z sqrt(30 · 70 / 100 + z²/4) / (100 + z²)
    z = 1.959963984540054
    half = z * math.sqrt(21 + z * z / 4) / (100 + z * z)
    centre = (30 + z * z / 2) / (100 + z * z)
    assert rows["A", "one"]["from"] == pytest.approx(100 * (centre - half))
    assert rows["A", "one"]["to"] == pytest.approx(100 * (centre + half))
    # a group that a dataset lacks is 0 %, with an interval, and not left out
    assert (rows["B", "two"]["people"], rows["B", "two"]["from"]) == (0, 0.0)
    assert rows["B", "two"]["to"] == pytest.approx(100 * wilson_interval(0, 50).high.item())
    assert found["By race"].columns[0] == "dataset"


def test_photos_of_one_subject_widen_the_interval():
    rows = [(str(i), str(i), {"race": "A" if i < 40 else "B"}) for i in range(100)]
    alone = made(rows)
    ten = made(rows, cluster_id=[str(i // 10) for i in range(100)])
    table = counted({"alone": alone, "ten": ten}, ["race"]).tables
    (table,) = [t for name, t in table.items() if name.startswith("Side by side")]
    width = {r["dataset"]: r["to"] - r["from"] for r in table.rows(named=True) if r["group"] == "A"}
    assert width["ten"] > 2.5 * width["alone"]  # √10 = 3.2, less Wilson's own shrinking


def test_an_attribute_that_one_dataset_lacks_is_left_out_there():
    found = counted({"five": made(FIVE), "other": made([("a", "1", {"race": "A"})])}, ["race"])
    assert "five: race is not counted: there is no 'race' here." in found.notes
    (table,) = [t for name, t in found.tables.items() if name.startswith("Side by side")]
    assert table["dataset"].unique().to_list() == ["other"]


def test_an_attribute_that_nobody_has_is_refused():
    with pytest.raises(UnknownNameError, match="there is no attribute named 'gendre'"):
        counted({"five": made(FIVE)}, ["gendre"])
    with pytest.raises(SpecError, match="there is no dataset to describe"):
        counted({})


def test_balance_by_hand():
    row = compare_group_shares_with_target("race", {"A": 60, "B": 30, "C": 10, "D": 0}, None)
    # uniform is ¼: distance ½ (.35 + .05 + .15 + .25) = .4; entropy of .6, .3, .1 over ln 4
    assert row["distance"] == pytest.approx(0.4)
    entropy = -(0.6 * math.log(0.6) + 0.3 * math.log(0.3) + 0.1 * math.log(0.1))
    assert row["evenness"] == pytest.approx(entropy / math.log(4))
    assert (row["least represented"], row["least ÷ due"], row["empty groups"]) == ("D", 0.0, 1)
    assert (row["most represented"], row["most ÷ due"]) == ("A", pytest.approx(2.4))
    nobody = compare_group_shares_with_target("race", {"A": 0}, None)
    assert nobody["distance"] is None
    assert nobody["evenness"] is None


def test_empty_cells_of_an_intersection_count_against_its_balance():
    rows = [("a", "1", {"x": "1", "y": "p"}), ("b", "2", {"x": "2", "y": "q"})]
    table = counted({"d": made(rows)}, ["x*y"]).tables["Balance"]
    assert table.select("groups", "empty groups", "distance", "evenness").rows() == [
        (4, 2, 0.5, pytest.approx(0.5))
    ]


def test_a_target_takes_the_place_of_uniform(tmp_path):
    file = tmp_path / "target.csv"
    file.write_text("attribute,value,share\ngender,F,50\ngender,M,50\ngender,X,0\n")
    target = read_target(file)
    assert target.shares == {"gender": {"F": 0.5, "M": 0.5, "X": 0.0}}
    balance = counted({"five": made(FIVE)}, ["gender", "tone"], target=target).tables["Balance"]
    gender, tone = balance.rows(named=True)
    assert (gender["against"], tone["against"]) == ("target.csv", "uniform")
    assert gender["least ÷ due"] == pytest.approx(2 / 3)  # M: 1 of 3 known, due ½


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("attribute,value\na,b\n", UnknownNameError, "no column named 'share'"),
        ("attribute,value,share\na,b,many\n", TableError, r"(?s)not a number of 0 or more.*row 1"),
        ("attribute,value,share\na,b,1\na,c,-1\n", TableError, r"(?s)0 or more.*row 2"),
        ("attribute,value,share\na,b,nan\n", TableError, "not a number of 0 or more"),
        ("attribute,value,share\n,b,1\n", TableError, r"(?s)has no attribute.*row 1"),
        ("attribute,value,share\na,b,1\na,b,2\n", TableError, r"(?s)two shares.*row 2"),
        ("attribute,value,share\na,b,0\n", TableError, "cannot be divided by their sum"),
    ],
)
def test_a_bad_target_says_where(tmp_path, text, error, match):
    file = tmp_path / "target.csv"
    file.write_text(text)
    with pytest.raises(error, match=match):
        read_target(file)


def test_a_target_of_other_words_is_refused(tmp_path):
    file = tmp_path / "target.csv"
    file.write_text("attribute,value,share\ngender,Female,1\n")
    with pytest.raises(SpecError, match=r"(?s)names no group that there is.*F, M.*Female"):
        counted({"five": made(FIVE)}, ["gender"], target=read_target(file))
    with pytest.raises(FileError):
        read_target(tmp_path / "absent.csv")


def test_fairfaces_real_labels():
    file = shared_data("fairface_val/fairface_label_val.csv")
    found = counted({"fairface": load("fairface", file)}, ["race", "race*gender"]).tables
    counts = dict(found["By perceived race (race)"].select("race", "people").rows())
    with file.open(newline="") as stream:
        own = list(csv.DictReader(stream))
    assert sum(counts.values()) == len(own) == 10_954
    for race, n in counts.items():
        assert n == sum(row["race"] == race for row in own)
    crossed = found["By perceived race (race) × perceived gender presentation (gender)"]
    (black,) = crossed.filter(pl.col("race") == "Black").rows(named=True)
    assert black["Female"] == sum(r["race"] == "Black" and r["gender"] == "Female" for r in own)


def test_of_a_wide_table_the_first_columns_and_those_that_are_named_are_looked_at(tmp_path):
    names = [f"c{k}" for k in range(70)]
    rows = [",".join(["id", *names]), *(",".join([f"p{k}", *[str(k % 2)] * 70]) for k in range(4))]
    (tmp_path / "wide.csv").write_text("\n".join(rows) + "\n")
    data = f"table:{tmp_path / 'wide.csv'}"
    found = describe(data)
    shown = [caption for caption in found.tables if caption.startswith("By ")]
    assert shown == [f"By c{k}" for k in range(50)]
    assert "Of 70 columns the first 50 are looked at, and those that are named" in found.notes[0]
    assert describe(data, by=["c69"]).tables["By c69"]["people"].to_list() == [2, 2]
    chosen = describe(data, only=["c65=1"], by=["c1"])
    assert chosen.tables["By c1"]["people"].to_list() == [2]
    merged = describe(data, by=["c66"], group=["c66:all=0,1"])
    assert merged.tables["By c66"]["people"].to_list() == [4]


def test_facets_52_classes_are_counted_unasked_and_sixty_one_are_not():
    def of(n):
        rows = [(f"p{i}", f"i{i}", {"class": f"occupation {i}"}) for i in range(n)]
        return counted({"made": made(rows)})

    assert of(52).tables["By class"].height == 52
    many = of(61)
    assert "By class" not in many.tables
    assert any("class has 61 values" in note for note in many.notes)


def test_intervals_of_independent_people_are_the_same_in_every_app():
    """41 of 60, wherever it is said: .5577 by Wilson (1927), whose .7869 becomes .7905.

    Clopper and Pearson's end is .7974; with 19 of the other answer its weight is 1 - 19 / 28.81.
    """
    import isolux

    right = [1.0] * 41 + [0.0] * 19
    ids = [f"u{i}" for i in range(60)]
    people = pl.DataFrame({"unit_id": ids, "value": right, "g": ["a"] * 60})
    audited = isolux.audit(people, by="g", replicates=100).group_metrics
    frame = isolux.metric_frame(
        metrics={"accuracy": "accuracy"}, y_true=["x"] * 60,
        y_pred=["x" if r else "y" for r in right],
        sensitive_features=pl.DataFrame({"g": ["a"] * 60}),
    ).by_group  # fmt: skip
    tones = ["dark" if r else "light" for r in right]
    rows = [(i, i, {"tone": tone}) for i, tone in zip(ids, tones, strict=True)]
    shares = counted({"one": made(rows), "two": made(rows)}, ["tone"]).tables
    (beside,) = [t for caption, t in shares.items() if caption.startswith("Side by side")]
    dark = beside.row(0, named=True)
    assert dark["people"] == 41
    ends = [audited.row(0, named=True), audited.row(1, named=True), frame.row(0, named=True)]
    shown = [(end["low"], end["high"]) for end in ends]
    shown.append((dark["from"] / 100, dark["to"] / 100))
    for both in shown:
        assert both == pytest.approx((0.5577, 0.7905), abs=5e-5)
