"""An audit of shards is that of the whole table, to the last byte."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.cli.export import export
from isolux.core.containers import Run
from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.people.shards import memory
from tests._shared import shared_data
from tests.people.shards._cuts import cut, people

N = 1500
TABLES = ("group_metrics", "disparities", "findings")
CASES: tuple[dict[str, Any], ...] = (
    {"by": ["race", "race*sex"], "id": "id"},
    {"by": ["race", "sex", "tone"], "cluster": "subject", "unknown": "both"},
    {"by": ["age", "sex"], "bins": ["age=quantile:4"], "cluster": "subject", "positive": "yes",
     "only": ["age>=18"]},
    {"by": ["age", "race"], "bins": ["age=quantile:3:right"], "interval": "bca",
     "group": ["race:AB=A,B"], "ungrouped_values": "drop", "undetected": "leave-out"},
    {"by": ["age"], "bins": ["age=top:5"], "label_map": ["no=no,maybe"], "min_units": 10},
    {"by": ["race"], "score_column": "score", "positive": "yes", "cluster": "subject"},
    {"by": ["race"], "weight": "score", "cluster": "subject"},
)  # fmt: skip


def _audit(data: str, **settings: Any) -> Run:
    answers: dict[str, Any] = {
        "target": "truth",
        "prediction_column": "answer",
        "replicates": 100,
    }
    return isolux.audit(data, **(answers | settings)).run


def _bytes(table: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.write_ipc(stream)
    return stream.getvalue()


@pytest.mark.parametrize("settings", CASES, ids="-".join)
def test_three_cuts_give_the_tables_of_the_whole(tmp_path: Path, settings: dict[str, Any]) -> None:
    frame = people(N)
    frame.write_parquet(tmp_path / "whole.parquet")
    whole = _audit(f"table:{tmp_path / 'whole.parquet'}", **settings)
    cuts = {"one": [N], "odd": [7, 700, N - 707], "many": [250] * 6}
    if settings is not CASES[0]:
        del cuts["one"]  # a shard that holds all is no other with other settings
    for name, sizes in cuts.items():
        run = _audit(f"table:{cut(frame, tmp_path / name, sizes)}", **settings)
        for table in TABLES:
            assert _bytes(getattr(run, table)) == _bytes(getattr(whole, table)), (name, table)
        assert run.record["warnings"] == whole.record["warnings"]
        assert run.record["clusters"] == whole.record["clusters"]
        assert run.record["accounting"] == whole.record["accounting"]
        # The loader's own line apart, what is told of people has the same numbers.
        # The loader's own line apart, what is told of people has the same numbers. Of shards no
        # column is read that nothing needs, so none is proposed as clusters.
        notes = [n for n in whole.record["notes"] if "may not be independent" not in n]
        assert [n for n in run.record["notes"] if not n.startswith("Read from")] == [
            n for n in notes if "identified by their number" not in n
        ] or run.record["notes"][1:] == notes


REAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fairface_label_val_expanded.csv", {"by": ["race", "age"], "positive": "Female"}),
    ("fairface_label_val_expanded_fair.csv", {"by": ["race*gender"], "id": "file"}),
    ("deepface_3k.csv", {"by": ["race", "age"], "detected_column": "found"}),
)


@pytest.mark.parametrize(("file", "settings"), REAL)
def test_three_cuts_of_real_answers_give_the_tables_of_the_whole(
    tmp_path: Path, file: str, settings: dict[str, Any]
) -> None:
    if file.startswith("fairface"):
        frame = pl.read_csv(shared_data(f"fairface_val/{file}"))
        settings = {"target": "gender", "prediction_column": "predicted_gender", **settings}
    else:  # answers of DeepFace, to whom no face was found where its confidence is 0
        said = pl.read_csv(shared_data(f"fairface_services/{file}")).select(
            "image_id", answer="gender", found=pl.col("face_confidence") > 0
        )
        labels = pl.read_csv(shared_data("fairface_services/labels_3k.csv"))
        frame = labels.join(said.unique("image_id", maintain_order=True), on="image_id")
        settings = {"target": "gender", **settings}
    frame.write_parquet(tmp_path / "whole.parquet")
    whole = _audit(f"table:{tmp_path / 'whole.parquet'}", **settings)
    n = frame.height
    for name, sizes in (
        ("one", [n]),
        ("odd", [11, 900, n - 911]),
        ("four", [n // 4] * 3 + [n - n // 4 * 3]),
    ):
        run = _audit(f"table:{cut(frame, tmp_path / name, sizes)}", **settings)
        for table in TABLES:
            assert _bytes(getattr(run, table)) == _bytes(getattr(whole, table)), (name, table)


def test_shards_of_another_order_are_the_same_people(tmp_path: Path) -> None:
    # Only the order of first occurrence may differ, and only recall is listed by it.
    frame = people(N)
    one = cut(frame, tmp_path / "one", [N])
    turned = pl.concat([frame[500:], frame[:500]])
    other = cut(turned, tmp_path / "other", [500] * 3)
    settings = {"by": ["race"], "cluster": "subject", "metric": ["accuracy"]}
    first, second = (_audit(f"table:{folder}", **settings) for folder in (one, other))
    assert _bytes(first.group_metrics) == _bytes(second.group_metrics)
    assert _bytes(first.disparities) == _bytes(second.disparities)


def _of_zeros(folder: Path) -> pl.DataFrame:
    """Write a table in which zero has two signs, in every format and two cuts."""
    frame = pl.DataFrame({
        "truth": [0.0, 0.5] * 100, "answer": [-0.0, 0.5, 0.0, 0.5, 0.5] * 40,
        "x": [-0.0] * 70 + [0.0] * 70 + [0.5] * 60, "id": [k + 0.5 for k in range(199)] + [-0.0],
    })  # fmt: skip
    frame.write_parquet(folder / "whole.parquet")
    frame.write_csv(folder / "whole.csv")
    frame.write_ndjson(folder / "whole.jsonl")
    cut(frame, folder / "one", [200])
    cut(frame, folder / "two", [100, 100])
    return frame


@pytest.mark.parametrize("name", ["whole.parquet", "whole.csv", "whole.jsonl", "one", "two"])
def test_minus_zero_and_zero_are_one_group_and_one_answer(tmp_path: Path, name: str) -> None:
    frame = _of_zeros(tmp_path)
    run = _audit(f"table:{tmp_path / name}", by=["x"], metric=["accuracy"], id="id")
    right = frame.select((pl.col("truth") == pl.col("answer")).mean()).item()
    rows = run.group_metrics.select("group", "n_units", "value").rows()
    assert sorted(row[:2] for row in rows) == [("0.0", 140), ("0.5", 60), ("overall", 200)]
    assert {row[0]: row[2] for row in rows}["overall"] == pytest.approx(right)


def test_an_id_of_minus_zero_is_that_of_zero(tmp_path: Path) -> None:
    frame = _of_zeros(tmp_path)
    twice = pl.concat([frame, frame.tail(1).with_columns(id=pl.lit(0.0))])
    cut(twice, tmp_path / "split", [200, 1])
    cut(twice, tmp_path / "together", [100, 101])
    for name in ("split", "together"):
        with pytest.raises(TableError, match="the same id"):
            _audit(f"table:{tmp_path / name}", by=["x"], id="id")


ODD = (
    ({"by": ["tone"]}, SpecError, "found: 'é' (200), 'É' (100)", None),
    ({"by": ["bin"], "bins": ["bin=quantile:3"]}, TableError, "100 value(s) of 'bin'", "bin"),
    ({"by": ["bin"], "bins": ["bin=quantile:3"], "cluster": "who", "only": ["bin!=1"]},
     TableError, "100 value(s) of 'bin'", "bin"),
    ({"by": ["truth"], "detected_column": "bin"}, TableError, "240 cell(s) do not say", "bin"),
    ({"by": ["truth"], "detected_column": "bin", "only": ["bin=old"]},
     TableError, "100 cell(s) do not say", "bin"),
    ({"by": ["truth"], "score_column": "bin"}, TableError, "100 cell(s) are not numbers", "bin"),
)  # fmt: skip


@pytest.mark.parametrize(("settings", "error", "says", "column"), ODD)
def test_an_error_counts_people_and_names_a_row_of_a_file(
    tmp_path: Path, settings: dict[str, Any], error: type[Exception], says: str, column: str | None
) -> None:
    # Rows that are alike are one row where shards are counted: that number is no one's.
    rng = np.random.default_rng(0)
    truth = rng.choice(["a", "b"], 560)
    said = np.where(rng.random(560) < 0.8, truth, "a")
    odd = ["1", "0", "2", "1"] * 40 + ["old", "1", "0", "2"] * 100
    frame = pl.DataFrame({
        "truth": pl.Series(truth), "answer": pl.Series(said), "bin": odd,
        "tone": ["o"] * 160 + ["é", "e\u0301", " é", "É"] * 100, "who": range(560),
    }).with_columns(pl.col("tone").str.normalize("NFC"))  # fmt: skip
    frame.write_parquet(tmp_path / "whole.parquet")
    folder = cut(frame, tmp_path / "shards", [100, 460])
    for data in (tmp_path / "whole.parquet", folder):
        with pytest.raises(error) as caught:
            _audit(f"table:{data}", **settings)
        told = str(caught.value)
        assert "attributes" not in told
        if column is None:
            assert "'é' (300), 'É' (100)" in told
            continue
        assert says in told
        found = re.search(r"where: (.*), row (\d+), column 'bin'", told)
        assert found is not None
        cell = pl.read_parquet(found[1])[column][int(found[2]) - 1]
        assert cell == re.search(r"found: '(\w+)'", told)[1]  # type: ignore[index]


@pytest.mark.parametrize("settings", [{}, {"score_column": "score"}])
def test_a_shard_that_is_there_twice_is_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    folder = cut(people(400).drop("id"), tmp_path / "people", [200, 200])
    copy, link = folder / "002.parquet", folder / "003.parquet"
    for extra in (copy, link):
        if extra == copy:
            copy.write_bytes((folder / "001.parquet").read_bytes())
        else:
            link.symlink_to(folder / "000.parquet")
        with pytest.raises(FileError, match="two shards are the same") as caught:
            _audit(f"table:{folder}", by=["race"], **settings)
        kept = folder / ("001.parquet" if extra == copy else "000.parquet")
        assert f"found: {kept} and {extra}" in str(caught.value)
        assert "take the copy, or the link, away" in str(caught.value)
        extra.unlink()


def test_every_shard_stands_in_the_record_with_its_hash(tmp_path: Path) -> None:
    folder = cut(people(400), tmp_path / "people", [200, 200])
    run = _audit(f"table:{folder}", by=["race"], paths="absolute")
    assert [Path(path).name for path in run.record["inputs"]] == ["000.parquet", "001.parquet"]
    assert all(re.fullmatch("[0-9a-f]{64}", sha) for sha in run.record["inputs"].values())


def test_what_needs_every_row_says_what_it_costs(tmp_path: Path) -> None:
    folder = cut(people(400), tmp_path / "people", [200, 200])
    run = _audit(f"table:{folder}", by=["race"], score_column="score")
    told = [note for note in run.record["notes"] if note.startswith("Read from 2 shard(s)")]
    assert len(told) == 1
    assert re.search(r"held whole \(400 rows of about [\d,]+ bytes are 2\.7 MB\)", told[0])
    assert "rank every score" in told[0]


def test_what_does_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cut(people(400), tmp_path / "people", [200, 200])
    monkeypatch.setattr(memory, "read_free_memory_bytes", lambda: 100_000)
    monkeypatch.setattr(memory, "_SMALL", 100)
    with pytest.raises(
        SpecError, match="not the memory: every row is needed: areas, calib"
    ) as caught:
        _audit(f"table:{folder}", by=["race"], score_column="score")
    assert "0.1 MB free" in str(caught.value)


def test_counted_people_cannot_be_asked_one_by_one(tmp_path: Path) -> None:
    folder = cut(people(400), tmp_path / "people", [200, 200])
    run = _audit(f"table:{folder}", by=["race"])
    with pytest.raises(SpecError, match="asks of people one by one"):
        isolux.explain(run, analysis=["slices"])
    assert isolux.explain(run, analysis=["power"]).run.record["analyses"]


def test_counted_people_are_not_exported_as_people(tmp_path: Path) -> None:
    folder = cut(people(400), tmp_path / "people", [200, 200])
    isolux.audit(
        f"table:{folder}", target="truth", prediction_column="answer", by=["race"], replicates=100
    ).report(tmp_path / "run")
    with pytest.raises(SpecError, match="an export asks of people one by one"):
        export(str(tmp_path / "run"), out=tmp_path / "seen")
    assert not (tmp_path / "seen").exists()


def test_an_analysis_of_single_people_that_is_asked_for_has_them(tmp_path: Path) -> None:
    folder = cut(people(600), tmp_path / "people", [200, 400])
    run = _audit(f"table:{folder}", by=["race"], explain=["slices"])
    assert run.scores["unit_id"].n_unique() == 600


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    folder = cut(people(40), tmp_path / "people", [20, 20])
    with pytest.raises(UnknownNameError, match="no column named 'rase'") as caught:
        _audit(f"table:{folder}", by=["rase"])
    assert "did you mean 'race'" in str(caught.value)
    with pytest.raises(UnknownNameError, match="no column named 'person'"):
        _audit(f"table:{folder}", by=["race"], cluster="person")
