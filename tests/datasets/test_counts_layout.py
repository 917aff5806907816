"""Tables of counts as people publish them: what is read, refused or warned of."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError
from isolux.core.notes import Caution
from isolux.datasets.counts import load
from tests.cli._run import isolux as run

THREE = "race,n,successes\nWhite,1200,1140\nBlack,800,728\nAsian,900,855\n"


def read(tmp_path, text, **options):
    file = tmp_path / "paper.csv"
    file.write_text(text)
    found = load(file, **options)
    return found, [note for note in found.notes if isinstance(note, Caution)]


def rates(found):
    """Successes and n by group: what an audit is about."""
    cells = found.bundled_predictions.join(
        found.attributes.rename({"unit_id": "instance_id", "value": "group"}), on="instance_id"
    )
    told = cells.group_by("attribute", "group").agg(
        k=(pl.col("value") * pl.col("times"))
        .sum(), n=pl.col("times").sum(),
    )  # fmt: skip
    return {(row[0], row[1]): (row[2], row[3]) for row in told.iter_rows()}


def test_a_sound_table_is_read_without_a_caution(tmp_path):
    found, said = read(tmp_path, THREE)
    assert said == []
    assert rates(found) == {
        ("race", "White"): (1140, 1200), ("race", "Black"): (728, 800),
        ("race", "Asian"): (855, 900),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["Total", "All races", "Average", "avg", "Overall", "Grand total", "Sub-total", "Mean (SD)",
     "Both sexes", "White, total", "all"],
)  # fmt: skip
def test_a_row_about_everyone_is_known_by_its_name(tmp_path, name):
    text = THREE + f'"{name}",1450,1361\n'  # the sum of nothing
    with pytest.raises(TableError, match=r"row\(s\) repeat their parts.*\n.*\n.*row 4 \(race = '"):
        read(tmp_path, text)
    found, _ = read(tmp_path, text, totals="drop")
    assert found.bundled_predictions["times"].sum() == 2900
    found, _ = read(tmp_path, text, totals="keep")
    assert found.bundled_predictions["times"].sum() == 4350


@pytest.mark.parametrize("name", ["All other races", "Any other background", "Totonac", "Meander"])
def test_a_group_whose_name_sounds_like_a_total_is_a_group(tmp_path, name):
    found, said = read(tmp_path, THREE + f"{name},1450,1361\n")
    assert (found.bundled_predictions["times"].sum(), said) == (4350, [])


def test_a_sub_total_below_its_parts_is_found_by_its_counts(tmp_path):
    text = THREE + "Non-White,1700,1583\n"
    with pytest.raises(TableError, match="'Non-White', which is 'Black' \\+ 'Asian'"):
        read(tmp_path, text)
    found, _ = read(tmp_path, text, totals="drop")
    assert ("race", "Non-White") not in rates(found)
    # In each stratum of another column.
    two = "sex,race,n,k\n" + "".join(
        f"{sex},{race},{n + d},{k + d}\n"
        for sex, d in (("f", 0), ("m", 30))
        for race, n, k in (("W", 1200, 1140), ("B", 800, 728), ("A", 900, 855))
    )
    text = two + "f,of colour,1700,1583\nm,of colour,1760,1643\n"
    with pytest.raises(TableError, match="2 row\\(s\\) repeat their parts"):
        read(tmp_path, text)


def test_equal_sums_among_many_small_groups_are_chance():
    """Of 2,000 tables of ten groups with nothing repeated, one in a hundred at most is refused."""
    from isolux.datasets.counts.layout import iterate_subtotal_rows

    draw, refused = np.random.default_rng(3), 0
    for _ in range(2000):
        size = int(draw.integers(3, 12))
        n = draw.integers(30, 600, size)
        rows = pl.DataFrame({"_row": range(size), "race": [str(i) for i in range(size)],
                             "k": draw.binomial(n, 0.9), "n": n})  # fmt: skip
        refused += next(iterate_subtotal_rows(rows, "race", [], ("k", "n")), None) is not None
    assert refused <= 20


def test_two_groups_of_the_same_counts_are_told_first(tmp_path):
    _, said = read(tmp_path, THREE + "BIPOC,800,728\n")
    assert said[0].startswith("'Black' and 'BIPOC' have the same counts, 728 of 800 (rows 2 and 4)")
    design = "race,n,k\n" + "".join(
        f"{g},3000,{k}\n" for g, k in zip("abcd", (9, 8, 9, 7), strict=True)
    )
    assert read(tmp_path, design)[1] == []  # RFW's groups have one size


def test_a_row_for_each_outcome_is_refused(tmp_path):
    text = "race,outcome,count,n\n" + "".join(
        f"{race},right,{k},{n}\n{race},wrong,{n - k},{n}\n"
        for race, k, n in (("White", 1140, 1200), ("Black", 728, 800))
    )
    with pytest.raises(TableError, match="each row is one outcome: over 'outcome'"):
        read(tmp_path, text)
    found, _ = read(tmp_path, text.replace("outcome", "metric"))
    assert set(found.bundled_predictions["label"]) == {"right", "wrong"}


def test_attributes_below_each_other_are_refused(tmp_path):
    text = "group,value,n,k\nrace,White,1200,1140\nrace,Black,800,728\n"
    text += "gender,F,{},930\ngender,M,1000,938\n"
    for n in (1000, 990):  # 10 people of no known gender
        with pytest.raises(TableError, match="'group' seems to name attributes"):
            read(tmp_path, text.format(n))
    crossed = (
        "dataset,race,n,k\nA,White,600,540\nA,Black,400,320\nB,White,600,500\nB,Black,400,330\n"
    )
    assert read(tmp_path, crossed)[1] == []
    nested = "continent,country,n,k\nE,PL,900,9\nE,DE,700,4\nA,NG,800,9\nA,KE,500,7\n"
    assert read(tmp_path, nested)[1] == []


def test_a_row_without_a_group_is_refused(tmp_path):
    with pytest.raises(TableError, match="row\\(s\\) name no group in 'race'") as caught:
        read(tmp_path, "race,n,k\nWhite,1200,1140\n,800,728\n")
    assert "row 2, column 'race'" in str(caught.value)


def test_a_group_without_a_case_is_told_first(tmp_path):
    found, said = read(tmp_path, THREE + "Inuit,0,0\n")
    assert said == ["1 of 4 rows have no cases (n = 0) and are in no table: Inuit (row 4)."]
    assert found.bundled_predictions["times"].sum() == 2900


def test_opposites_must_add_up_and_make_n_where_there_is_none(tmp_path):
    found, said = read(tmp_path, "race,correct,wrong\nWhite,1140,60\nBlack,728,72\n")
    assert (rates(found)[("race", "Black")], said) == ((728, 800), [])
    assert "of 'correct' and 'wrong' together" in found.notes[-1]
    assert found.attributes["attribute"].unique().to_list() == ["race"]  # 60 is no group
    with pytest.raises(TableError, match=r"(?s)do not add up.*728 \+ 90 = 818.*n = 800.*row 2"):
        read(tmp_path, "race,n,correct,wrong\nWhite,1200,1140,60\nBlack,800,728,90\n")


def test_a_number_of_each_row_hides_no_total(tmp_path):
    text = "race,n,successes,rank\nWhite,1200,1140,1\nBlack,800,728,2\nAlles,2000,1868,3\n"
    with pytest.raises(TableError, match="row 3 \\(race = 'Alles'\\)"):
        read(tmp_path, text)
    ages = "race,age,n,k\nW,20,900,40\nW,30,700,30\nB,40,800,50\nB,50,600,20\n"
    assert read(tmp_path, ages)[0].bundled_predictions["times"].sum() == 3000  # ages divide people


@pytest.mark.parametrize("written", ["1'140", "1 140", "1\u00a0140", "1\u202f140", '"1,140"'])
def test_thousands_are_parted_in_many_ways(tmp_path, written):
    found, _ = read(tmp_path, f"race,n,k\na,2000,{written}\nb,300,200\n")
    assert rates(found)[("race", "a")] == (1140, 2000)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("race,n,k\na,2.000,1.000\nb,900,800\n", "write 1000 if dots part thousands, 1 if they"),
        ("race,n,k\na,2000,1.140\nb,900,800\n", "may be thousands or fractions"),
        ("race,n,k\na,2000,1.140\nb,900,800\n", "if dots part thousands; fractions are no counts"),
        ("race,n,k\na,1,0.625\nb,1,0.5\n", "a share is not a count"),
        ("race,n,k\na,3,2.625\nb,3,.5\n", "a share is not a count"),
        ("race,n,k\na,1200,95%\nb,800,91 %\n", "are percents"),
        ('race,n,k\na,1200,"97,5"\nb,800,91\n', "are not numbers"),
    ],
)
def test_numbers_that_could_be_two_are_refused(tmp_path, text, match):
    with pytest.raises(TableError, match=match):
        read(tmp_path, text)


def test_rates_in_the_place_of_counts(tmp_path):
    text = "race,n,accuracy\na,1200,95\nb,800,91\n"
    with pytest.raises(SpecError, match="no column says how many"):
        read(tmp_path, text)
    with pytest.raises(TableError, match="'accuracy' holds rates, and counts are needed"):
        read(tmp_path, text, successes="accuracy")
    _, said = read(tmp_path, text.replace("accuracy", "correct"))
    assert said[0].startswith("Every cell of 'correct' is from 50 to 100, of groups of 800 or more")
    assert read(tmp_path, "race,n,errors\na,1200,60\nb,800,72\n")[1] == []


def test_columns_the_other_way_round_are_named(tmp_path):
    with pytest.raises(TableError, match="--data-option successes=n --data-option n=successes"):
        read(tmp_path, "race,n,successes\na,60,1200\nb,72,800\n")


@pytest.mark.parametrize(
    ("better", "counted", "warned"),
    [("higher", "errors", True), ("lower", "correct", True), ("lower", "errors", False),
     ("higher", "correct", False), ("higher", "events", False)],
)  # fmt: skip
def test_the_wrong_side_of_better_is_told_first(
    monkeypatch, capsys, tmp_path, better, counted, warned
):
    file = tmp_path / "paper.csv"
    file.write_text(THREE.replace("successes", counted))
    done = run(monkeypatch, capsys, "audit", f"counts:{file}", "--task", "counts", "--by", "race",
               "--better", better, "--replicates", 200, "--out", tmp_path / "run")  # fmt: skip
    assert done.code == 0, done.err
    told = " ".join((done.err + done.out).split()).startswith(f"WARNING: --better {better} was set")
    assert told is warned
