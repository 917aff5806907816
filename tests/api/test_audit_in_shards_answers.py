"""People in shards, and answers that `isolux predict` keeps: as of the whole table."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

import isolux
from tests.people.shards._cuts import cut


def _bytes(table: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.write_ipc(stream)
    return stream.getvalue()


def _net(pictures: list[np.ndarray]) -> list[str]:
    return ["day" if picture.mean() > 100 else "night" for picture in pictures]


def test_answers_of_a_model_are_joined_to_people_in_shards(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    grey = draw.integers(0, 256, 120)
    names = [f"{k:03d}.png" for k in range(120)]
    for name, value in zip(names, grey.tolist(), strict=True):
        Image.new("RGB", (8, 8), (value,) * 3).save(tmp_path / name)
    frame = pl.DataFrame(
        {
            "file": names,
            "light": np.where(grey > 127, "day", "night"),
            "race": draw.choice(["A", "B"], 120),
        }
    )
    frame.write_parquet(tmp_path / "whole.parquet")
    whole, answers = f"table:{tmp_path / 'whole.parquet'}", tmp_path / "answers"
    isolux.predict(whole, _net, out=answers, version="1", shard_size=50)
    folder = cut(frame, tmp_path / "people", [40, 40, 40])
    runs = [
        isolux.audit(
            data, target="light", predictions=str(answers), by=["race"], replicates=200,
            min_units=10, images=str(tmp_path),
        ).run
        for data in (whole, f"table:{folder}")
    ]  # fmt: skip
    for table in ("group_metrics", "disparities", "findings", "scores"):
        assert _bytes(getattr(runs[0], table)) == _bytes(getattr(runs[1], table)), table
    told = [note for note in runs[1].record["notes"] if note.startswith("Read from 3 shard(s)")]
    assert "answers in a separate file are joined by id" in told[0]
