"""Tables of ratings: a row an answer or an item, what is said of whom, and what is refused."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
import isolux_curate
from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.datasets.ratings import load

LONG = """photo,tone,rater,region,label,seconds
a,3,x,north,adult,10
a,3,y,south,child,12
b,9,x,north,adult,9
b,9,y,south,adult,31
"""


def written(folder, text):
    path = folder / "ratings.csv"
    path.write_text(text)
    return path


def test_one_row_an_answer(tmp_path):
    found = load(written(tmp_path, LONG))
    assert found.instances["instance_id"].to_list() == ["a", "b"]
    assert found.bundled_predictions.columns == ["instance_id", "annotator", "label", "region"]
    assert found.bundled_predictions.row(1) == ("a", "y", "child", "south")
    assert found.attributes.select("unit_id", "attribute", "value").rows() == [
        ("a", "tone", "3"), ("b", "tone", "9"),
    ]  # fmt: skip
    assert any("seconds" in note for note in found.notes)


def test_one_row_an_item_is_the_same(tmp_path):
    wide = "photo,tone,rater_1,rater_2\na,3,adult,child\nb,9,adult,adult\n"
    found = load(written(tmp_path, wide))
    rows = found.bundled_predictions.sort("instance_id", "annotator").rows()
    assert rows == [("a", "rater_1", "adult"), ("a", "rater_2", "child"),
                    ("b", "rater_1", "adult"), ("b", "rater_2", "adult")]  # fmt: skip
    assert found.attributes["attribute"].unique().to_list() == ["tone"]


def test_columns_of_any_name(tmp_path):
    text = "n,Who,What\n1,x,yes\n1,y,no\n"
    path = written(tmp_path, text)
    found = load(path, item="n", annotator="Who", answer="What")
    assert found.bundled_predictions.rows() == [("1", "x", "yes"), ("1", "y", "no")]
    wide = written(tmp_path, "Ann,Bob,tone\nyes,no,3\nno,no,4\n")
    found = load(wide, annotators=["Ann", "Bob"])
    assert found.has_row_number_ids
    assert found.bundled_predictions.filter(annotator="Bob")["label"].to_list() == ["no", "no"]


def test_a_column_that_an_item_has_one_value_of_says_who_it_is_about(tmp_path):
    """Every photo was judged in one region alone: the region is said of photos and of raters."""
    text = LONG.replace("a,3,y,south", "a,3,y,north")
    text = text.replace("b,9,x,north", "b,9,z,south").replace("b,9,y", "b,9,w")
    found = load(written(tmp_path, text))
    assert "region" in found.bundled_predictions.columns
    assert "region" in found.attributes["attribute"].to_list()


@pytest.mark.parametrize(
    ("text", "settings", "error", "words"),
    [
        ("photo,tone\na,3\n", {}, SpecError, "no columns of ratings"),
        (LONG, {"annotator": "judge"}, UnknownNameError, "judge"),
        (LONG, {"annotators": ["tone", "label"], "answer": "label"}, SpecError, "both"),
        (LONG + "a,3,x,north,adult,10\n", {}, TableError, "'x' about 'a'.*rows 1 and 5"),
        ("photo,rater_1,rater_2\na,1,2\na,1,1\n", {"item": "photo"}, TableError,
         "is in two rows"),
        ("item,rater_1,rater_2\n0,1,2\n0,1,1\n", {}, TableError, "is in two rows"),
        (LONG.replace("b,9,x", ",9,x"), {}, TableError, "photo"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(tmp_path, text, settings, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        load(written(tmp_path, text), **settings)


def test_a_cluster_is_chosen_of_the_items_columns(tmp_path):
    text = LONG.replace("photo,tone", "photo,subject").replace("a,3", "a,s").replace("b,9", "b,s")
    found = load(written(tmp_path, text)).with_clusters("subject")
    assert found.instances["cluster_id"].to_list() == ["s", "s"]
    assert isinstance(found.bundled_predictions, pl.DataFrame)


def test_two_columns_that_may_be_the_answers_are_refused(tmp_path):
    path = written(tmp_path, "image_id,worker_id,label,rating\na,x,cat,cat\na,y,cat,dog\n")
    with pytest.raises(SpecError, match=r"(?s)two columns may hold the answers.*'label', 'rating'"):
        load(path)
    found = load(path, answer="rating")
    assert found.bundled_predictions["label"].to_list() == ["cat", "dog"]
    assert any("their answers in 'rating'" in note for note in found.notes)


def doubted(tmp_path, rows):
    found = load(written(tmp_path, "photo,rater,label\n" + "\n".join(rows) + "\n"))
    return [note for note in found.notes if isinstance(note, Caution)]


def test_answers_that_are_spelt_in_two_ways_are_told(tmp_path):
    (told,) = doubted(tmp_path, ["a,x,Cat", "a,y,cat", "b,x,1", "b,y,1.0"])
    assert "'1' and '1.0'; 'Cat' and 'cat'" in told


def test_an_annotator_whose_answers_no_other_gives_is_told(tmp_path):
    rows = [f"p{k},{who},{'ab'[k % 2]}" for k in range(12) for who in "xy"]
    rows += [f"p{k},z,{20 + k}" for k in range(12)]
    rows[0] = "p0,x,b"
    (told,) = doubted(tmp_path, rows)
    assert "No other annotator ever gave an answer of 'z'" in told


def test_a_column_that_all_agree_in_is_doubted(tmp_path):
    (told,) = doubted(tmp_path, [f"p{k},{who},{'ab'[k % 2]}" for k in range(12) for who in "xy"])
    assert "is 'label' the column of their answers?" in told


def test_an_error_about_a_column_that_differs_within_an_item_says_where(tmp_path):
    text = LONG.replace("b,9,y,south", "b,8,y,south")
    with pytest.raises(UnknownNameError) as refused:
        isolux.audit(f"ratings:{written(tmp_path, text)}", by="tone", task="agreement")
    assert (
        "found: a column: it differs between rows of one photo ('9' and '8' of 'b'; so for 1 of 2)"
        in str(refused.value)
    )


def test_a_table_without_names_of_columns_is_told_so(tmp_path):
    with pytest.raises(SpecError, match="the first row seems to be data"):
        load(written(tmp_path, "0,x,cat\n0,y,dog\n1,x,cat\n1,y,cat\n"))
    with pytest.raises(SpecError) as refused:
        load(written(tmp_path, "photo,tone\na,3\n"))
    assert "first row" not in str(refused.value)


def test_rows_that_stand_there_twice_are_not_sent_to_another_reader(tmp_path):
    with pytest.raises(TableError, match="was an export added to the file twice") as refused:
        isolux.audit(f"ratings:{written(tmp_path, LONG + 'a,3,x,north,adult,10')}", by="tone")
    assert "table:" not in str(refused.value)


def test_answers_to_several_questions_are_read_one_question_at_a_time(tmp_path):
    """As `isolux curate answers --out` writes them."""
    file = tmp_path / "out.csv"
    rows = "".join(
        f"{item},{who},{question},{answer}\n"
        for item in "ab" for who in "xy"
        for question, answer in (("hair type", "wavy"), ("perceived age group", "older"))
    )  # fmt: skip
    file.write_text("instance_id,annotator,question,label\n" + rows)
    with pytest.raises(SpecError, match="--data-option question='hair type'"):
        load(file)
    found = load(file, question="perceived age group").bundled_predictions
    assert found["label"].to_list() == ["older"] * 4
    with pytest.raises(UnknownNameError, match="hair color"):
        load(file, question="hair color")
    # A question of its own for each item is no choice to be made.
    file.write_text("item,rater,question,label\na,x,one?,1\na,y,one?,2\nb,x,two?,1\n")
    assert load(file).bundled_predictions.height == 3


TURNED = "rater,region,a,b,c\nx,north,3,4,5\ny,south,4,5,5\n"


def test_one_row_an_annotator_is_the_same(tmp_path):
    found = load(written(tmp_path, "rater,a,b,c\nx,3,4,5\ny,4,5,\n"))
    assert found.instances["instance_id"].to_list() == ["a", "b", "c"]
    long = load(written(tmp_path, "item,rater,answer\na,x,3\na,y,4\nb,x,4\nb,y,5\nc,x,5\nc,y,\n"))
    assert found.bundled_predictions.sort("instance_id", "annotator").equals(
        long.bundled_predictions
    )
    assert any("3 columns are items" in note for note in found.notes)


def test_columns_that_are_no_items_say_something_of_the_annotators(tmp_path):
    path = written(tmp_path, TURNED)
    with pytest.raises(SpecError, match=r"(?s)looks like no item.*'region'.*items=COLUMN"):
        load(path)
    age = written(tmp_path, TURNED.replace("north", "61").replace("south", "33"))
    with pytest.raises(SpecError, match=r"'region'"):
        load(age)
    near = written(tmp_path, "rater,a,b,c\nx,12,40,71\ny,14,42,69\n")  # of a scale of 0 to 100
    with pytest.raises(SpecError, match=r"'a': none of its values"):
        load(near)
    assert (
        load(written(tmp_path, "rater,a,b,c\nx,12,10,71\ny,44,80,9\n")).bundled_predictions.height
        == 6
    )
    found = load(written(tmp_path, TURNED), items=["a", "b", "c"])
    assert found.bundled_predictions.columns == ["instance_id", "annotator", "label", "region"]
    assert found.bundled_predictions.filter(annotator="y", instance_id="b")["label"].to_list() == [
        "5"
    ]


@pytest.mark.parametrize(
    ("text", "settings", "error", "words"),
    [
        (TURNED + "x,north,3,4,5\n", {"items": ["a", "b"]}, TableError, "'x'.*row 3"),
        (TURNED.replace("rater", "n"), {"items": ["a", "b"]}, SpecError, "names the annotators"),
        (TURNED, {"items": ["a", "z"]}, UnknownNameError, "'z'"),
        (LONG, {"items": ["tone"], "answer": "label"}, SpecError, "one row an annotator"),
    ],
)
def test_a_table_of_one_row_an_annotator_that_does_not_fit(tmp_path, text, settings, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        load(written(tmp_path, text), **settings)


def test_empty_cells_words_are_doubted_until_they_are_left_out(tmp_path):
    rows = "".join(f"p{k},{'n/a' if k < 2 else 'yes'},no\n" for k in range(9))
    path = written(tmp_path, "photo,rater_1,rater_2\n" + rows)
    said = isolux_curate.consensus(f"ratings:{path}")
    assert "'n/a' counts as an answer (2 times)" in " ".join(said.notes)
    assert "n/a" not in " ".join(
        isolux_curate.consensus(f"ratings:{path}", ignored_answers=["N/A"]).notes
    )


@pytest.mark.parametrize("word", ["None", "*", "-1", "nan", "failed"])
def test_ratings_that_stand_for_an_empty_cell_are_doubted(tmp_path, word):
    rows = "".join(f"p{k},{word if k < 3 else k % 4},{k % 4}\n" for k in range(12))
    path = written(tmp_path, "photo,rater_1,rater_2\n" + rows)
    said = isolux_curate.consensus(f"ratings:{path}")
    assert f"{word!r} counts as an answer (3 times). Is it an empty cell?" in " ".join(said.notes)


JSON_SETS = """item,annotator,answer
1,a,"{""choices"": [""hat"", ""scarf""]}"
1,b,"{""choices"": [""scarf"", ""hat""]}"
2,a,"{""choices"": [""hat""]}"
2,b,"{""choices"": []}"
"""
PARTED_SETS = "item,annotator,answer\n1,a,hat;scarf\n1,b,scarf; hat\n2,a,hat\n2,b,\n"
WIDE_SETS = "item,rater_1,rater_2\n1,hat|scarf,scarf|hat\n2,hat,\n"


@pytest.mark.parametrize(
    ("text", "settings"),
    [(JSON_SETS, {}), (PARTED_SETS, {"separator": ";"}), (WIDE_SETS, {"separator": "|"})],
)
def test_a_set_in_one_cell_has_no_order(tmp_path, text, settings):
    found = load(written(tmp_path, text), **settings)
    rows = found.bundled_predictions.sort("instance_id", "annotator", "label", nulls_last=True)
    assert rows.select("instance_id", "label").rows() == [
        ("1", "hat"), ("1", "scarf"), ("1", "hat"), ("1", "scarf"), ("2", "hat"), ("2", None),
    ]  # fmt: skip
    assert not [note for note in found.notes if "another order" in note]
    scores = isolux.score("agreement", found, found.bundled_predictions).units
    assert scores.filter(pl.col("unit_id") == "1")["value"].to_list() == [1.0]


def test_sets_in_another_order_are_cautioned_on(tmp_path):
    text = "item,annotator,answer\n1,a,hat;scarf\n1,b,scarf;hat\n2,a,hat\n2,b,hat\n"
    [caution] = [n for n in load(written(tmp_path, text)).notes if "another order" in n]
    assert isinstance(caution, Caution)
    assert caution.endswith("--data-option separator=';'.")
    plain = "item,annotator,answer\n1,a,red; warm\n1,b,blue; cold\n2,a,hat\n2,b,hat\n"
    assert not [n for n in load(written(tmp_path, plain)).notes if "another order" in n]
