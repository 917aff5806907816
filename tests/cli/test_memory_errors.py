"""Too little memory is said in words, and is no bug."""

from __future__ import annotations

import pytest

from isolux.cli import memory_errors
from tests.cli._run import isolux


def test_a_library_that_cannot_be_loaded_under_a_limit_is_no_bug(monkeypatch):
    failed = ImportError("libopenblas.so: failed to map segment from shared object")
    monkeypatch.setattr(memory_errors, "read_address_space_limit_bytes", lambda: None)
    assert memory_errors.explain_memory_error(failed) is None
    monkeypatch.setattr(memory_errors, "read_address_space_limit_bytes", lambda: 2 << 30)
    said = memory_errors.explain_memory_error(failed)
    assert said is not None
    assert "there is not enough memory\n  found: libopenblas.so: failed to map" in said
    assert "what to do: ask for less" in said


@pytest.mark.parametrize(("mib", "says"), [(1439, "1,473,536 KiB"), (1440, None)])
def test_a_limit_that_is_too_low_to_start_is_named(monkeypatch, mib, says):
    monkeypatch.setattr(memory_errors, "read_address_space_limit_bytes", lambda: mib << 20)
    said = memory_errors.explain_low_address_limit()
    assert said is None if says is None else says in (said or "")


def test_more_replicates_than_memory_holds_are_no_bug(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{i},{'AB'[i % 2]},x,{'xy'[i % 3 == 0]}\n" for i in range(120))
    (tmp_path / "people.csv").write_text(f"id,race,truth,answer\n{rows}")
    done = isolux(
        monkeypatch, capsys, "audit", f"table:{tmp_path}/people.csv", "--target", "truth",
        "--predictions", f"{tmp_path}/people.csv", "--prediction-column", "answer", "--by", "race",
        "--out", tmp_path / "run", "--replicates", "999999999999",
    )  # fmt: skip
    assert done.code == 2
    assert "there is not enough memory\n  found: Unable to allocate" in done.err
    assert "fewer --replicates" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
