"""Pairs from a table: how alike two units are, from the file to an audit without keeping them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.audit import run_audit
from isolux.core.errors import TableError
from isolux.core.spec import parse_spec
from isolux.io import run_directory
from isolux.predictions import read_outputs

PAIRS = pl.DataFrame({"instance_id": [1, 1, 2], "other_id": [2, 3, 3], "score": [0.9, 0.25, None]})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_of_pairs_is_read_as_such(tmp_path, suffix):
    file = tmp_path / f"net.{suffix}"
    getattr(PAIRS, f"write_{suffix}")(file)
    assert read_outputs(file).rows() == [
        ("net", "1", "2", 0.9), ("net", "1", "3", 0.25), ("net", "2", "3", None),
    ]  # fmt: skip
    assert read_outputs(file, model="other")["model"].unique().to_list() == ["other"]


def test_a_models_own_column_names_it(tmp_path):
    PAIRS.with_columns(model=pl.Series(["a", "a", "b"])).write_csv(tmp_path / "both.csv")
    assert read_outputs(tmp_path / "both.csv")["model"].to_list() == ["a", "a", "b"]


@pytest.mark.parametrize("score", ["high", "nan", "inf"])
def test_a_score_that_is_no_number_is_named_with_its_row(tmp_path, score):
    (tmp_path / "net.csv").write_text(f"instance_id,other_id,score\n1,2,0.5\n1,3,{score}\n")
    with pytest.raises(TableError) as caught:
        read_outputs(tmp_path / "net.csv")
    assert "a pair's score is not a finite number" in str(caught.value)
    assert "row 2" in str(caught.value)


@pytest.mark.parametrize("keep", [True, False])
def test_an_audit_of_pairs_need_not_keep_them(tmp_path, keep):
    rng = np.random.default_rng(5)
    subject = np.repeat(np.arange(60), 3)
    unit = [f"f{i:03}" for i in range(subject.size)]
    people = pl.DataFrame(
        {"id": unit, "subject": [f"s{s}" for s in subject], "tone": np.where(subject % 2, "a", "b")}
    )
    people.write_csv(tmp_path / "people.csv")
    a, b = np.triu_indices(len(unit), 1)
    same = subject[a] == subject[b]
    pl.DataFrame(
        {
            "instance_id": [unit[i] for i in a],
            "other_id": [unit[i] for i in b],
            "score": rng.normal(np.where(same, 1.5, 0.0)),
        }
    ).write_parquet(tmp_path / "net.parquet")
    spec = parse_spec(
        {"data": f"table:{tmp_path / 'people.csv'}", "task": "face_verification", "by": "tone",
         "predictions": str(tmp_path / "net.parquet"), "cluster": "subject", "min_units": 1,
         "option": "far=0.01", "replicates": 200, "keep_pairs": keep}
    )  # fmt: skip
    run = run_audit(spec).run
    assert run.group_metrics.filter(metric="tar_at_far", group="a")["value"].null_count() == 0
    back = run_directory.load_run(run_directory.save_run(run, tmp_path / "run"))
    assert ("pairs" in back.evidence) is keep
    assert back.group_metrics.equals(run.group_metrics)
    rule = {"metric": "tar_at_far", "attribute": "tone", "max_difference": "50 points"}
    told = isolux.gate(back, {"policy": 1, "rules": [rule]}).text()
    assert ("audit again with --option keep_pairs=yes" in " ".join(told.split())) is not keep
