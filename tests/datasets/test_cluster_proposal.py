"""A column of a table that looks like clusters is proposed, and none that is in use."""

from __future__ import annotations

import polars as pl
import pytest

import isolux

N = 400
ROWS = {
    "id": [str(i) for i in range(N)],
    "race": ["A", "B"] * (N // 2),
    "truth": ["yes"] * N,
    "answer": ["yes", "yes", "yes", "no"] * (N // 4),
}


def _proposals(tmp_path, columns, **settings):
    path = tmp_path / "people.csv"
    pl.DataFrame(ROWS | columns).write_csv(path)
    fixed = {"id": "id", "target": "truth", "by": "race", "prediction_column": "answer"}
    run = isolux.audit(f"table:{path}", **{**fixed, "replicates": 100, **settings}).run
    return run, [note for note in run.record["notes"] if "may not be independent" in note]


@pytest.mark.parametrize("name", ["patient", "subject_id", "PersonID", "video name", "household"])
def test_a_column_that_repeats_people_is_proposed_and_can_be_taken(tmp_path, name):
    columns = {name: [f"p{i // 4}" for i in range(N)]}
    _, notes = _proposals(tmp_path, columns)
    flag = f"'{name}'" if " " in name else name
    assert len(notes) == 1
    assert f"Rows that share {name!r}" in notes[0]
    assert f"--cluster {flag} " in notes[0]
    run, notes = _proposals(tmp_path, columns, cluster=name)
    assert notes == []
    assert run.record["clusters"]["n_clusters"] == N // 4


@pytest.mark.parametrize(
    "columns",
    [
        {"person": ["yes", "no"] * (N // 2)},  # a code
        {"patient": [f"p{i}" for i in range(N)]},  # nothing repeats
        {"patient": [f"p{i}" if i < 20 else None for i in range(N)]},  # empty cells are no value
        {"gender_identity": [f"p{i // 4}" for i in range(N)]},
        {"city": [f"p{i // 4}" for i in range(N)]},
    ],
)
def test_what_does_not_look_like_clusters_is_not_proposed(tmp_path, columns):
    assert _proposals(tmp_path, columns)[1] == []


def test_of_several_columns_the_coarsest_is_proposed_and_none_that_groups_or_names_people(tmp_path):
    visits = [f"v{i // 2}" for i in range(N)]
    homes = [f"h{i // 8}" for i in range(N)]
    _, notes = _proposals(tmp_path, {"session": visits, "household": homes})
    assert len(notes) == 1
    assert "household" in notes[0]
    assert _proposals(tmp_path, {"video": [f"h{i // 40}" for i in range(N)]}, by="video")[1] == []
