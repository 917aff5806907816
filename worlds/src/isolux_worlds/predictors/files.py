"""Simulated answers as files, in the formats that models hand theirs in."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl

from isolux.io.atomic import write_parquet, write_text
from isolux.io.csv_text import csv_text
from isolux.vocabulary.errors import SpecError
from isolux_worlds.predictors.simulated import BOX

__all__ = ["write_answers"]


def write_answers(frame: pl.DataFrame, folder: str | Path, name: str) -> Path:
    """Write one model's answers in the format of their kind."""
    folder, columns = Path(folder), set(frame.columns)
    if {"instance_id", "label", "rank"} <= columns:
        table = frame.select(id="instance_id", label="label", score="score")
        return write_text(folder / f"{name}.csv", csv_text(table))
    if "embedding" in columns:
        return _write_array(frame, folder, name)
    if "image_id" not in columns:
        raise SpecError("these are not predictions", found=", ".join(sorted(columns)))
    if frame["label"].n_unique() > 1:
        return write_parquet(folder / f"{name}.parquet", frame)
    return write_text(folder / f"{name}.json", json.dumps(_results(frame)))


def _results(frame: pl.DataFrame) -> list[dict[str, object]]:
    """COCO results; ids that are numbers stay numbers, as COCO has them."""
    columns = frame.columns
    number = pl.col("image_id").cast(pl.Int64, strict=False)
    plain = frame.select(number.is_not_null() & (number.cast(pl.String) == pl.col("image_id")))
    ids = frame.select(number if plain.to_series().all() else pl.col("image_id"))["image_id"]
    parts: dict[str, list[object]] = {"image_id": ids.to_list()}
    parts["category_id"] = [1] * frame.height
    if set(BOX) <= set(columns):
        boxes = frame.select(pl.concat_list(BOX).list.eval(pl.element().round(2)))
        parts["bbox"] = boxes.to_series().to_list()
    if "mask_counts" in columns:
        sizes = frame.select("mask_height", "mask_width").rows()
        counts = frame["mask_counts"].to_list()
        parts["segmentation"] = [
            {"size": list(size), "counts": text} for size, text in zip(sizes, counts, strict=True)
        ]
    if "keypoints_x" in columns:
        triples = [frame[f"keypoints_{c}"].to_list() for c in "xyv"]
        parts["keypoints"] = [
            [round(value, 2) for triple in zip(*pose, strict=True) for value in triple]
            for pose in zip(*triples, strict=True)
        ]
    parts["score"] = frame["score"].to_list()
    return [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]


def _write_array(frame: pl.DataFrame, folder: Path, name: str) -> Path:
    vectors = frame["embedding"].list.to_array(len(frame["embedding"][0])).to_numpy()
    path = folder / f"{name}.npy"
    np.save(path, np.ascontiguousarray(vectors, dtype=np.float32), allow_pickle=False)
    write_text(folder / f"{name}.ids.txt", "\n".join(frame["instance_id"].to_list()) + "\n")
    return path
