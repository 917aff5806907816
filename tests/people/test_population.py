"""Tables of a population: how they are read, and what is said of those that do not fit."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError
from isolux.people.population import calibrate_weights, read_population

UNITS = pl.DataFrame({"unit_id": ["a", "b", "c", "d"], "weight": [1.0, 1.0, 1.0, 1.0]})


def _file(folder: Path, text: str, name: str = "population.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def _attributes(**values: list[str | None]) -> pl.DataFrame:
    parts = [
        pl.DataFrame({"unit_id": ["a", "b", "c", "d"], "attribute": name, "value": of},
                     schema_overrides={"value": pl.String})
        for name, of in values.items()
    ]  # fmt: skip
    return pl.concat(parts)


TONES = _attributes(tone=["light", "light", "light", "dark"], sex=["f", "m", "f", "m"])


def test_a_file_of_counts_and_a_mapping_of_shares_say_the_same(tmp_path):
    (file,) = read_population([_file(tmp_path, "tone,count\nlight,600\ndark,400\n")])
    (said,) = read_population({"tone": {"light": 0.6, "dark": 0.4}})
    assert dict(file.share) == dict(said.share) == {("light",): 0.6, ("dark",): 0.4}
    assert calibrate_weights(UNITS, TONES, [file])["weight"].to_list() == pytest.approx(
        [0.8, 0.8, 0.8, 1.6]
    )


def test_a_table_may_cross_attributes(tmp_path):
    text = "tone,sex,share\nlight,f,0.25\nlight,m,0.25\ndark,m,0.5\n"
    found = calibrate_weights(UNITS, TONES, read_population([_file(tmp_path, text)]))
    assert found["weight"].to_list() == pytest.approx([0.5, 1.0, 0.5, 2.0])
    crossed = {"tone*sex": {"light*f": 0.25, "light*m": 0.25, "dark*m": 0.5}}
    assert calibrate_weights(UNITS, TONES, read_population(crossed))[
        "weight"
    ].to_list() == pytest.approx(found["weight"].to_list())


def test_several_tables_are_met_at_once_and_the_old_weights_are_kept():
    tables = read_population({"tone": {"light": 0.7, "dark": 0.3}, "sex": {"f": 0.4, "m": 0.6}})
    found = calibrate_weights(UNITS, TONES, tables)
    by_sex = found["weight"].to_numpy() @ [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert by_sex == pytest.approx([1.6, 2.4])
    assert found["weight"][3] == pytest.approx(1.2)
    assert found["base_weight"].to_list() == [1.0] * 4


def test_unknown_is_a_cell_of_its_own():
    who = _attributes(tone=["light", "light", None, "dark"])
    table = read_population({"tone": {"light": 0.5, "dark": 0.25, "unknown": 0.25}})
    assert calibrate_weights(UNITS, who, table)["weight"].to_list() == pytest.approx([1.0] * 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tone,share\nlight,0.6\ndark,0.3\n", "the shares do not add up to 1"),
        ("tone,share\nlight,1.2\ndark,-0.2\n", "a share cannot be used"),
        ("tone,share\nlight,many\ndark,0.2\n", "a share cannot be used"),
        ("tone,share\nlight,0.5\nlight,0.5\n", "a cell is given twice"),
        ("tone,count\nlight,0\ndark,0\n", "the counts are all 0"),
        ("tone,size\nlight,1\ndark,2\n", "this is not a table of a population"),
        ("share\n1\n", "this is not a table of a population"),
        ("tone,count\nlight,60.000\ndark,950\n", "(?s)thousands or fractions.*write 60000 if"),
    ],
)
def test_tables_that_cannot_be_read_are_named(tmp_path, text, said):
    with pytest.raises(TableError, match=said):
        read_population([_file(tmp_path, text)])


def test_counts_with_decimals_are_read_as_they_are(tmp_path):
    (table,) = read_population([_file(tmp_path, "tone,count\nlight,60.125\ndark,20.5\n")])
    assert table.share[("light",)] == pytest.approx(60.125 / 80.625)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tone,count\nLight,6\ndark ,4\n", "'light' in the data, 'Light' in the table"),
        ("tone,count\nlight,6\nDARK,4\n", "'dark' in the data, 'DARK' in the table"),
        ("tone,count\nlight,6\ndark,4\nTotal,10\n", "(?s)is a total, not a cell.*'Total'"),
    ],
)
def test_another_spelling_and_a_total_are_named(tmp_path, text, said):
    with pytest.raises(TableError, match=said):
        calibrate_weights(UNITS, TONES, read_population([_file(tmp_path, text)]))


def test_an_attribute_in_two_tables_is_refused(tmp_path):
    one = _file(tmp_path, "tone,share\nlight,1\n")
    two = _file(tmp_path, "tone,sex,share\nlight,f,1\n", "two.csv")
    with pytest.raises(SpecError, match="'tone' is in two tables"):
        read_population([one, two])


def test_a_mapping_whose_cells_do_not_fit_is_refused():
    with pytest.raises(SpecError, match="the cell 'light' does not fit"):
        read_population({"tone*sex": {"light": 1.0}})


@pytest.mark.parametrize(
    ("population", "said"),
    [
        ({"tone": {"light": 1.0}}, "(?s)people are in no cell.*found: dark"),
        ({"tone": {"light": 1.0, "dark": 0.0}}, "(?s)people are in no cell.*found: dark"),
        ({"tone": {"light": 0.5, "dark": 0.3, "mid": 0.2}}, "(?s)cells without anyone.*mid"),
        ({"hat": {"yes": 1.0}}, "the people have no 'hat'"),
        ({"tone": {"light": 0.9, "dark": 0.1}, "sex": {"f": 0.1, "m": 0.9}, "same":
          {"light": 0.2, "dark": 0.8}}, "no weights meet all tables"),
    ],
)  # fmt: skip
def test_populations_that_do_not_fit_the_people_are_named(population, said):
    who = pl.concat([TONES, TONES.filter(attribute="tone").with_columns(attribute=pl.lit("same"))])
    with pytest.raises(TableError, match=said):
        calibrate_weights(UNITS, who, read_population(population))


def test_several_values_of_one_person_are_refused():
    twice = pl.concat([TONES, TONES.head(1).with_columns(value=pl.lit("dark"))])
    with pytest.raises(TableError, match="several values for one person"):
        calibrate_weights(UNITS, twice, read_population({"tone": {"light": 0.5, "dark": 0.5}}))
