"""Rows that are no people, merged cells, sheets and numbers as spreadsheets save them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import FileError, TableError
from isolux.core.notes import Caution
from isolux.datasets import load
from isolux.datasets._total_rows import (
    caution_on_merged_cell_columns,
    caution_on_thousands_dots,
    read_grouped_thousands,
)
from isolux.datasets.counts import load as load_counts
from isolux.io.cell_parsing import as_numbers
from isolux.io.frames import read_table
from isolux.io.sheets import DATASET_FLAGS, PREDICTION_FLAGS
from tests._sheets import write_xlsx

PEOPLE = "id,race,age,answer\n" + "".join(f"p{k},{'ab'[k % 2]},{20 + k},yes\n" for k in range(30))


def read(tmp_path, text):
    file = tmp_path / "people.csv"
    file.write_text(text)
    found = load("table", file)
    return found, [note for note in found.notes if isinstance(note, Caution)]


def test_a_sound_table_says_nothing(tmp_path):
    found, said = read(tmp_path, PEOPLE)
    assert (found.instances.height, said) == (30, [])


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("Total,,,0.85", "hold totals"),
        ("Grand total:,,,26", "hold totals"),
        ("mean,,35.1,", "hold totals"),
        (",,,0.75", "hold totals"),
        ("id,race,age,answer", "repeat the names of the columns"),
    ],
)
def test_rows_that_are_no_people_are_left_out_and_told_first(tmp_path, row, what):
    found, said = read(tmp_path, PEOPLE + row + "\n")
    assert found.instances.height == 30
    assert found.has_row_number_ids is False
    assert len(said) == 1
    assert said[0].startswith(f"1 row(s) {what} and were left out: row 31 (")


@pytest.mark.parametrize("row", ["p99,,,", "all,a,44,yes", "Mean,b,31,no", "p98,,41,no"])
def test_people_of_whom_little_is_known_stay(tmp_path, row):
    found, said = read(tmp_path, PEOPLE + row + "\n")
    assert (found.instances.height, said) == (31, [])


def blocks(*sizes):
    return pl.DataFrame(
        {"race": [v for k, n in enumerate(sizes) for v in (f"g{k}", *[None] * (n - 1))]}
    )


def test_a_value_in_the_first_row_of_each_block_alone_is_told_first():
    assert isinstance(caution_on_merged_cell_columns(blocks(15, 15), ["race"])[0], Caution)
    assert (
        "empty in 20 of 30 rows" in caution_on_merged_cell_columns(blocks(*[3] * 10), ["race"])[0]
    )


def test_cells_that_are_missing_here_and_there_are_no_blocks():
    """Half of the cells missing by chance, the first one known: 2,000 columns."""
    draw, said = np.random.default_rng(4), 0
    for _ in range(2000):
        known = draw.random(40) < 0.5
        known[0] = True
        column = pl.Series("race", ["a" if k else None for k in known])
        said += len(caution_on_merged_cell_columns(column.to_frame(), ["race"]))
    assert said == 0


def test_cells_that_are_no_text_are_passed_over():
    bytes_ = pl.DataFrame({"race": [b"a", *[None] * 14, b"b", *[None] * 14]})
    assert caution_on_merged_cell_columns(bytes_, ["race"]) == []


def test_cells_merged_over_rows_give_each_row_their_value(tmp_path):
    rows = [["id", "race", "truth"], ["p1", "a", "x"], ["p2", None, "y"], ["p3", "b", "x"],
            ["p4", None, "y"], ["p5", None, "x"]]  # fmt: skip
    file = write_xlsx(tmp_path / "p.xlsx", {"S": rows}, merged={"S": ["B2:B3", "B4:B6"]})
    assert read_table(file)["race"].to_list() == ["a", "a", "b", "b", "b"]
    plain = write_xlsx(tmp_path / "q.xlsx", {"S": rows})
    assert read_table(plain)["race"].to_list() == ["a", None, "b", None, None]


def test_cells_merged_over_columns_are_titles(tmp_path):
    rows = [
        ["id", "race", "truth"],
        ["p1", "a", "x"],
        ["Second batch", None, None],
        ["p2", "b", "y"],
    ]
    file = write_xlsx(tmp_path / "p.xlsx", {"S": rows}, merged={"S": ["A3:C3"]})
    assert read_table(file).row(1) == ("Second batch", None, None)


def test_several_sheets_name_the_option_of_each_file(tmp_path):
    sheets = {"S": [["id"], ["1"]], "T": [["id"], ["2"]]}
    file = write_xlsx(tmp_path / "p.xlsx", sheets)
    for flags, words in ((DATASET_FLAGS, "--data-option sheet=NAME"),
                         (PREDICTION_FLAGS, "--option prediction_sheet=NAME")):  # fmt: skip
        with pytest.raises(FileError, match=words):
            read_table(file, sheet_flags=flags)
    counts = {"S": [["race", "k", "n"], ["a", 1, 2], ["b", 1, 3]], "Notes": [["hello"]]}
    file = write_xlsx(tmp_path / "c.xlsx", counts)
    assert load_counts(file, sheet="S").bundled_predictions["times"].sum() == 5


@pytest.mark.parametrize("name", ["age", "age_group", "income range", "bin"])
def test_ranges_that_all_became_dates_are_refused(tmp_path, name):
    text = f"id,{name}\n" + "".join(f"p{k},{('9-Mar', '2024-04-18')[k % 2]}\n" for k in range(30))
    with pytest.raises(TableError, match="turned ranges into dates"):
        read(tmp_path, text)
    file = tmp_path / "people.csv"
    found = load("table", file, repair_ages=True)
    assert sorted(found.attributes["value"].unique()) == ["3-9", "4-18"]


def test_dates_that_are_dates_stay(tmp_path):
    text = "id,taken\n" + "".join(
        f"p{k},{('2024-03-09', '2024-04-18')[k % 2]}\n" for k in range(30)
    )
    assert read(tmp_path, text)[1] == []


@pytest.mark.parametrize(
    ("cells", "warned"),
    [(("800", "1.200", "2.500"), True), (("800", "12.000", "1.200.000"), True),
     (("0.812", "1.200", "2.500"), False), (("1.2", "1.200", "800"), False),
     (("1.200", "2.500", "3.125"), False), (("800", "1200", "2500"), False)],
)  # fmt: skip
def test_dots_that_may_part_thousands_are_told_first(tmp_path, cells, warned):
    text = "id,income\n" + "".join(f"p{k},{cells[k % 3]}\n" for k in range(30))
    assert bool(read(tmp_path, text)[1]) is warned


@pytest.mark.parametrize(
    ("cell", "hint"),
    [("0,93", "with a point: 0.93"), ("93 %", "without %"), ("1 234", "together: 1234"),
     ("1'234,5", "together: 1234.5"), ("high", None)],
)  # fmt: skip
def test_numbers_as_others_write_them_are_refused_with_how_to_write_them(cell, hint):
    with pytest.raises(TableError) as caught:
        as_numbers(pl.Series([cell]), source="p.csv", column="score")
    assert (hint in (caught.value.hint or "")) if hint else caught.value.hint is None


def test_a_wide_frame_is_not_asked_for_each_column_by_name(monkeypatch):
    # Each such question goes through all columns: of 100,000 it took hours.
    asked = []
    schema, item = pl.DataFrame.schema.fget, pl.DataFrame.__getitem__
    frame = pl.DataFrame({f"c{k}": ["800", "1.200", None] * 10 for k in range(40)})

    def counted(of):
        return lambda f, *key: (asked.append(f) if f.width == 40 else None, of(f, *key))[1]

    monkeypatch.setattr(pl.DataFrame, "schema", property(counted(schema)))
    monkeypatch.setattr(pl.DataFrame, "__getitem__", counted(item))
    assert len(caution_on_thousands_dots(frame, frame.columns[1:])) == 39
    assert caution_on_merged_cell_columns(frame, frame.columns) == []
    assert len(asked) < 5


def test_dots_part_thousands_where_decimals_have_a_comma():
    german = pl.DataFrame({
        "id": ["1.001", "1.002", "1.003"], "income": ["4.512", "987", "12.000"],
        "share": ["0,06", "1,5", "0,25"], "version": ["1.5", "2.0", "3.1"],
        "fraction": ["0.512", "0.987", "1.250"],
    })  # fmt: skip
    frame, notes = read_grouped_thousands(german, None)
    assert frame["income"].to_list() == ["4512", "987", "12000"]
    assert frame.drop("income").equals(german.drop("income"))
    assert notes == [
        "Dots in 'income' part thousands, since 'share' has a comma before its decimals."
    ]
    for english in (["0.06", "1.5", "0.25"], ["1,200", "900", "2,500"], ["a,5", "b", "c"]):
        table = german.with_columns(share=pl.Series(english))
        assert read_grouped_thousands(table, None)[0].equals(table)
