"""Counting shards and putting them together loses no one and joins no two."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError
from isolux.core.spec import parse_spec
from isolux.datasets.table import load
from isolux.engine.jobs import JobStore
from isolux.people.loading import load_audit_people
from isolux.people.shards import merging as module
from isolux.people.shards import row_counts
from isolux.people.shards.merging import PeopleCounts, merge_counts
from isolux.people.shards.row_counts import count_identical_rows
from tests.people.shards._cuts import cut, people


def _merged(
    folder: Path, columns: list[str], *, ids: str | None = None, cluster: str | None = None
) -> PeopleCounts:
    store = JobStore(folder.parent / f"{folder.name}.sums")
    shards = []
    for path in sorted(folder.iterdir()):
        tables = count_identical_rows(str(path), columns, ids, cluster, ids_named=ids is not None)
        store.commit(f"{path.stem:x<64}", tables)
        shards.append((f"{path.stem:x<64}", path, pl.read_parquet(path).height))
    return merge_counts(store, shards, columns, ids=ids, is_clustered=cluster is not None)


def _shards(folder: Path, *parts: dict[str, list[object]]) -> Path:
    folder.mkdir()
    for k, part in enumerate(parts):
        pl.DataFrame(part).write_parquet(folder / f"{k}.parquet")
    return folder


def test_rows_that_are_alike_are_counted_in_the_order_of_the_first(tmp_path: Path) -> None:
    folder = _shards(
        tmp_path / "people",
        {"race": ["B", "A", "B"], "right": ["y", "y", "n"]},
        {"race": ["A", "B"], "right": ["y", "y"]},
    )
    found = _merged(folder, ["race", "right"])
    assert found.rows.rows() == [("B", "y"), ("A", "y"), ("B", "n")]
    assert found.multiplicity.to_list() == [2, 2, 1]
    assert found.cluster is None


def test_a_cluster_in_two_shards_is_one(tmp_path: Path) -> None:
    # s: A in the first shard, A and B in the second. t and u: one A each. One row is no one's.
    folder = _shards(
        tmp_path / "people",
        {"race": ["A", "A", "B"], "subject": ["s", "t", None]},
        {"race": ["A", "B", "A"], "subject": ["s", "s", "u"]},
    )
    found = _merged(folder, ["race"], cluster="subject")
    assert found.cluster is not None
    rows = pl.DataFrame([found.rows["race"], found.multiplicity, found.cluster.alias("cluster")])
    bags = {
        (tuple(race), times[0])
        for race, times in rows.group_by("cluster").agg("race", "times").select(
            "race", "times").iter_rows()
    }  # fmt: skip
    assert bags == {(("A", "A", "B"), 1), (("A",), 2), (("B",), 1)}
    assert found.n_without_cluster == 1


def test_many_parts_of_hashes_give_what_one_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cut(people(900), tmp_path / "people", [300, 300, 300])
    whole = _merged(folder, ["race", "sex"], ids="id", cluster="subject")
    monkeypatch.setattr(module, "_ID_BATCH_SIZE", 50)
    monkeypatch.setattr(module, "_CLUSTER_BATCH_SIZE", 50)
    parts = _merged(folder, ["race", "sex"], ids="id", cluster="subject")
    assert parts.rows.equals(whole.rows)
    assert parts.multiplicity.equals(whole.multiplicity)
    assert int((parts.multiplicity).sum()) == 900


@pytest.mark.parametrize("ids", [["1", "2"], [1, 2], [1.0, 2.5]])
def test_an_id_in_two_shards_is_refused(tmp_path: Path, ids: list[object]) -> None:
    first = {"id": ids, "race": ["A", "B"]}
    folder = _shards(tmp_path / "people", first, {"id": [ids[1], *ids[2:]], "race": ["B"]})
    with pytest.raises(TableError, match="the same id is in two shards") as caught:
        _merged(folder, ["race"], ids="id")
    assert f"{ids[1]!r} in 0.parquet and in 1.parquet" in str(caught.value)


def test_hashes_that_meet_by_chance_refuse_no_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def colliding(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
        same = pl.Series([7] * len(cells), dtype=pl.UInt64)
        return same, same

    folder = _shards(
        tmp_path / "people", {"id": ["1"], "race": ["A"]}, {"id": ["2"], "race": ["B"]}
    )
    monkeypatch.setattr(row_counts, "hash_cells", colliding)
    monkeypatch.setattr(module, "hash_cells", colliding)
    assert _merged(folder, ["race"], ids="id").has_ids


def test_an_id_twice_in_one_shard_is_refused_with_its_rows(tmp_path: Path) -> None:
    folder = _shards(tmp_path / "people", {"id": ["1", "2", "1"], "race": ["A", "B", "C"]})
    with pytest.raises(TableError, match="two rows of a shard have the same id") as caught:
        _merged(folder, ["race"], ids="id")
    assert "'1' in rows 1 and 3" in str(caught.value)


def _people(folder: Path, **settings: object) -> Dataset:
    return load_audit_people(parse_spec({
        "data": f"table:{folder}", "by": "race", "target": "truth", "prediction_column": "answer",
        **settings,
    }))  # fmt: skip


def test_rows_without_a_column_of_ids_are_numbered_as_in_one_table(tmp_path: Path) -> None:
    frame = people(60).drop("id")
    frame.write_parquet(tmp_path / "whole.parquet")
    whole = load(tmp_path / "whole.parquet")
    dataset = _people(cut(frame, tmp_path / "people", [30, 30]))
    assert dataset.has_row_number_ids
    assert whole.notes[0] in dataset.notes


def test_a_stopped_audit_goes_on_and_a_changed_shard_is_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cut(people(90), tmp_path / "people", [30, 30, 30])
    counted: list[str] = []

    def counting_too(path: str, *args: object, **more: object) -> object:
        counted.append(Path(path).name)
        if len(counted) == 2:
            raise FileError("the disk went away", where=path)
        return count_identical_rows(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(row_counts, "count_identical_rows", counting_too)
    sums = str(tmp_path / "sums")
    with pytest.raises(FileError, match="the disk went away"):
        _people(folder, sums=sums)
    first = _people(folder, sums=sums)
    assert counted == ["000.parquet", "001.parquet", "001.parquet", "002.parquet"]
    people(30, seed=9).with_columns(id=pl.format("q{}", "id")).write_parquet(folder / "001.parquet")
    second = _people(folder, sums=sums)
    assert counted[4:] == ["001.parquet"]
    assert first.multiplicity is not None
    assert second.multiplicity is not None
    assert int(first.multiplicity["times"].sum()) == int(second.multiplicity["times"].sum()) == 90


def test_nothing_is_left_where_no_folder_of_sums_is_named(tmp_path: Path) -> None:
    folder = cut(people(90), tmp_path / "people", [45, 45])
    _people(folder, out=str(tmp_path / "run"))
    assert [path.name for path in tmp_path.iterdir()] == ["people"]


def test_a_folder_of_sums_holds_no_names(tmp_path: Path) -> None:
    frame = people(90).with_columns(
        id=pl.format("ada-lovelace-{}", "id"), subject=pl.format("grace-hopper-{}", "subject")
    )
    sums = tmp_path / "sums"
    _people(cut(frame, tmp_path / "people", [45, 45]), sums=str(sums), cluster="subject", id="id")
    for path in sums.iterdir():
        data = path.read_bytes()
        assert b"ada-lovelace" not in data
        assert b"grace-hopper" not in data
