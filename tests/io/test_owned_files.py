"""Every kind of folder holds nothing, once written, that its list does not know."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import OutputError
from isolux.io.owned_files import list_foreign_files

N = 120
PEOPLE = pl.DataFrame({"light": ["day", "night"] * (N // 2), "unit_id": [str(k) for k in range(N)],
                       "value": [1.0, 0.0, 1.0, 1.0] * (N // 4)})  # fmt: skip


@pytest.fixture(scope="module")
def audits():
    made = [
        isolux.audit(PEOPLE.with_columns(model=pl.lit(f"m{k}")), by="light", replicates=100)
        for k in range(3)
    ]
    return [one.run for one in made], made


def test_what_audits_write_is_ours(audits, tmp_path):
    runs, made = audits
    made[0].report(tmp_path / "run")
    isolux.compare(runs[0], runs[1]).report(tmp_path / "two")
    isolux.side_by_side(runs).report(tmp_path / "three")
    for folder, what in (("run", "run"), ("two", "run"), ("three", "comparison of models")):
        assert any((tmp_path / folder).rglob("*"))
        assert list_foreign_files(tmp_path / folder, what) == []
        (tmp_path / folder / "mine.csv").write_text("1")
        assert list_foreign_files(tmp_path / folder, what) == ["mine.csv"]


def test_a_run_with_a_file_of_mine_is_left_as_it_is(audits, tmp_path):
    _, made = audits
    made[0].report(tmp_path / "run")
    made[0].report(tmp_path / "run", overwrite=True)
    (tmp_path / "run" / "thesis.md").write_text("years of work")
    with pytest.raises(OutputError, match=r"found: thesis\.md"):
        made[0].report(tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "thesis.md").read_text() == "years of work"


def test_what_a_demonstration_lays_into_its_run_is_ours(tmp_path):
    for name in ("audit.json", "people.csv"):
        (tmp_path / name).write_text("")
    assert list_foreign_files(tmp_path, "run") == ["people.csv"]  # anybody's, until it is said
    (tmp_path / "SYNTHETIC.txt").write_text("")
    assert list_foreign_files(tmp_path, "run") == []


def test_a_kind_that_is_not_listed_is_not_looked_at(tmp_path):
    (tmp_path / "a.txt").write_text("")
    assert list_foreign_files(tmp_path, "world") == []
