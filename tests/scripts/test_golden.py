"""Golden runs are compared to the last bit, and digested to nine digits."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from scripts import golden
from scripts.golden_runs import FILES, RUNS, WORLDS, commands


def written(folder: Path, value: float, words: str = "accuracy 80 %", **more: object) -> Path:
    """A run of one table and one text."""
    run = folder / "gate"
    run.mkdir(parents=True)
    table = {"group": ["a", "b"], "value": [0.25, value], "members": [["x"], ["y", "z"]]} | more
    pl.DataFrame(table).write_parquet(run / "group_metrics.parquet")
    (run / "terminal.txt").write_text(f"$ gate run\n{words}\n")
    return folder


@pytest.fixture
def before(tmp_path):
    return written(tmp_path / "before", 0.1 + 0.2)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"value": 0.3}, "value: 1 rows differ; row 1: 0.30000000000000004 0.3"),
        ({"value": 0.1 + 0.2, "members": [["x"], ["y"]]}, "members: 1 rows differ"),
        ({"value": 0.1 + 0.2, "n": [1, 2]}, "schema: [('n', Int64)]"),
        ({"value": 0.1 + 0.2, "words": "accuracy 81 %"}, "-accuracy 80 %"),
    ],
)
def test_a_changed_value_is_noticed(before, tmp_path, capsys, after, said):
    there = written(tmp_path / "after", **after)
    assert golden.main(["--compare", str(before), str(there)]) == 1
    assert said in capsys.readouterr().out


def test_equal_runs_have_no_difference_and_runs_of_one_folder_are_not_asked(before, tmp_path):
    there = written(tmp_path / "after", 0.1 + 0.2)
    (there / "card").mkdir()
    (there / "card" / "terminal.txt").write_text("$ card run\n")
    assert golden.main(["--compare", str(before), str(there)]) == 0


def test_digests_forgive_the_last_bits_and_no_more(before, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(golden, "DIGESTS", tmp_path / "golden.json")
    assert golden.main(["--digest", str(before), "--write"]) == 0
    assert golden.main(["--digest", str(written(tmp_path / "same", 0.3))]) == 0
    assert golden.main(["--digest", str(written(tmp_path / "other", 0.3000001))]) == 1
    assert "gate/group_metrics.parquet: changed" in capsys.readouterr().out


def test_words_are_those_that_are_seen_without_times_hashes_and_versions():
    page = "<style>p{}</style><p>Made 2026-11-29T01:05:39+00:00 by 0.1.0 in <b>2.5 s</b></p>"
    words, figures = golden.visible(page + "<svg><text>80 %</text></svg>")
    assert golden.masked(words).split() == ["Made", "TIME", "by", "VERSION", "in", "DURATION"]
    assert figures.split() == ["80", "%"]
    assert golden.masked("mean 0.779893125123 of b19ff2967b9b") == "mean 0.779893125123 of HASH"


def test_every_input_that_a_run_names_can_be_made():
    made = WORLDS.keys() | FILES.keys() | {"inbox"}
    for name in RUNS:
        assert set(golden.inputs(commands(name))) <= made
    assert set(golden.json.loads(golden.DIGESTS.read_text())) >= {f"{n}/terminal.txt" for n in RUNS}
