"""Simulated answers as files, in the formats that models hand theirs in, pictures among them.

Faces restored with noise and faces parsed into parts need the originals' pixels, and are a picture
for each person.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.io.atomic import write_parquet, write_text
from isolux.io.csv_text import to_safe_csv
from isolux.io.images import read_image
from isolux.io.paths import resolve_inside
from isolux_worlds._joins import left_join_in_order
from isolux_worlds.predictors.simulated import BOX, SimulatedModel, join_is_right

__all__ = ["write_face_part_images", "write_noisy_images", "write_predictions"]


def write_predictions(
    frame: pl.DataFrame,
    folder: str | Path,
    name: str,
    category_names: Mapping[str, str] | None = None,
) -> Path:
    """Write one model's answers in the format of their kind.

    ``category_names``: the dataset's categories by their numbers.
    """
    folder, columns = Path(folder), set(frame.columns)
    if {"instance_id", "label", "rank"} <= columns:
        table = frame.select(id="instance_id", label="label", score="score")
        return write_text(folder / f"{name}.csv", to_safe_csv(table))
    if "question" in columns:
        table = frame.select("question", "answer", id="instance_id")
        return write_text(folder / f"{name}.csv", to_safe_csv(table))
    if "embedding" in columns:
        return _write_embeddings_array(frame, folder, name)
    if "image_id" not in columns:
        raise SpecError("these are not predictions", found=", ".join(sorted(columns)))
    numbers = {label: int(number) for number, label in (category_names or {}).items()}
    if frame["label"].n_unique() > 1 and not set(frame["label"]) <= set(numbers):
        return write_parquet(folder / f"{name}.parquet", frame)
    category_ids = [numbers.get(label, 1) for label in frame["label"]]
    results = _build_coco_results(frame, category_ids)
    return write_text(folder / f"{name}.json", json.dumps(results))


def _build_coco_results(
    frame: pl.DataFrame, category_ids: Sequence[int]
) -> list[dict[str, object]]:
    """COCO results; ids that are numbers stay numbers, as COCO has them."""
    columns = frame.columns
    number = pl.col("image_id").cast(pl.Int64, strict=False)
    is_integer_id = frame.select(
        number.is_not_null() & (number.cast(pl.String) == pl.col("image_id"))
    )
    ids = frame.select(number if is_integer_id.to_series().all() else pl.col("image_id"))[
        "image_id"
    ]
    result_columns: dict[str, list[object]] = {"image_id": ids.to_list()}
    result_columns["category_id"] = [*category_ids]
    if set(BOX) <= set(columns):
        boxes = frame.select(pl.concat_list(BOX).list.eval(pl.element().round(2)))
        result_columns["bbox"] = boxes.to_series().to_list()
    if "mask_counts" in columns:
        sizes = frame.select("mask_height", "mask_width").rows()
        counts = frame["mask_counts"].to_list()
        result_columns["segmentation"] = [
            {"size": list(size), "counts": text} for size, text in zip(sizes, counts, strict=True)
        ]
    if "keypoints_x" in columns:
        triples = [frame[f"keypoints_{c}"].to_list() for c in "xyv"]
        result_columns["keypoints"] = [
            [round(coordinate, 2) for triple in zip(*pose, strict=True) for coordinate in triple]
            for pose in zip(*triples, strict=True)
        ]
    result_columns["score"] = frame["score"].to_list()
    return [
        dict(zip(result_columns, row, strict=True))
        for row in zip(*result_columns.values(), strict=True)
    ]


def _write_embeddings_array(frame: pl.DataFrame, folder: Path, name: str) -> Path:
    vectors = frame["embedding"].list.to_array(len(frame["embedding"][0])).to_numpy()
    path = folder / f"{name}.npy"
    np.save(path, np.ascontiguousarray(vectors, dtype=np.float32), allow_pickle=False)
    write_text(folder / f"{name}.ids.txt", "\n".join(frame["instance_id"].to_list()) + "\n")
    return path


_WORSE = 4.0
_MIN_NOISE = 0.02
_PER_JITTER = 0.1
_COMBINED = "combined.png"


def write_noisy_images(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel, folder: Path, *, root: str | Path
) -> Path:
    """Write each person's picture with noise: four times as much where the model is wrong."""
    from PIL import Image

    sigma = max(model.jitter, _MIN_NOISE)
    for name, is_right, uri in _iterate_images_with_correctness(dataset, right, "uri"):
        original = read_image(resolve_inside(root, uri))
        rng = model.stream("pictures", name)
        noise = rng.standard_normal(original.shape, dtype=np.float32)
        noise *= 255 * sigma * (1.0 if is_right else _WORSE)
        restored_pixels = np.clip(original + noise, 0, 255).round().astype(np.uint8)
        # Noise hardly compresses: more effort takes time alone.
        target = _build_target_dir(folder, f"{name}.png")
        Image.fromarray(restored_pixels).save(target, compress_level=1)
    return folder


def write_face_part_images(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel, folder: Path, *, root: str | Path
) -> Path:
    """Write each face's parts as a label picture: half a picture off where the model is wrong."""
    from PIL import Image

    for name, is_right, uri in _iterate_images_with_correctness(dataset, right, "part_mask_uri"):
        with Image.open(resolve_inside(root, uri)) as picture:
            labels = np.array(picture.convert("L") if picture.mode != "P" else picture)
        width = labels.shape[1]
        off = max(1, round(_PER_JITTER * model.jitter * width)) if is_right else width // 2
        shifted_labels = np.zeros_like(labels)  # what the parts leave is background
        shifted_labels[:, off:] = labels[:, : width - off]
        Image.fromarray(shifted_labels).save(_build_target_dir(folder, f"{name}/{_COMBINED}"))
    return folder


def _iterate_images_with_correctness(
    dataset: Dataset, right: pl.DataFrame, column: str
) -> Iterator[tuple[str, bool, str]]:
    people = join_is_right(dataset, right)
    if column == "uri" and "uri" in dataset.images.columns:
        people = left_join_in_order(people, dataset.images.select("image_id", _uri="uri"))
    elif column in people.columns:
        people = people.with_columns(_uri=column)
    if "_uri" not in people.columns or people["_uri"].is_null().all():
        problem = "a simulated model needs the pictures that it answers to"
        expected = f"{column!r} of the dataset's people"
        raise SpecError(problem, expected=expected, found="none", where=dataset.name)
    yield from people.drop_nulls("_uri").select("instance_id", "right", "_uri").iter_rows()


def _build_target_dir(folder: Path, name: str) -> Path:
    target = resolve_inside(folder, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target
