"""Generated images compared with originals: what both tasks of that kind share.

Predictions are images (files), embeddings of images, or values that were computed elsewhere; their
columns decide which. Each person gets a value of each metric; groups, intervals and comparisons
are those of means of people's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import TaskInfo
from isolux.core.notes import Caution
from isolux.core.plugin_options import fill_missing_settings
from isolux.core.schema import check, to_polars
from isolux.io.image_tables import IMAGE_FILES, UNIT_VALUES
from isolux.tasks._images.compare import ImageMetricValues, ImagePair, compare_images
from isolux.tasks._images.metrics import FHIBE, PIXEL_METRICS
from isolux.tasks._images.originals import NO_ORIGINAL, find_originals, identity_cosines
from isolux.tasks._images.settings import ImageComparisonSettings
from isolux.tasks._images.values import (
    MOST_DB,
    NO_PREDICTION,
    list_units,
    match_units,
    read_unit_values,
)
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows, stack_scores

_BOXES = {"face": "face_box", "box": "box"}


# With fewer images a median is too noisy for a caution.
_MIN_IMAGES = 20
_UNRELATED_LIMITS = {"psnr": 12.0, "ssim": 0.1, "identity_cosine": 0.1, "lpips": 0.9}
"""What two unrelated photographs reach: about 8 to 12 dB, and no common structure."""


_ValuesByModel = dict[str, dict[str, ImageMetricValues]]
"""Each metric of each model, in the order of the units."""


def score_images(
    task: str,
    task_info: TaskInfo,
    dataset: Dataset,
    predictions: object,
    metrics: Sequence[str],
    **options: Unpack[ImageComparisonSettings],
) -> Scores:
    """Score images, embeddings or values, whichever the columns contain."""
    settings = fill_missing_settings(ImageComparisonSettings, options)
    _check_size(settings)
    requested_names = read_metrics(task_info, metrics)
    frame, units = to_polars(predictions), list_units(dataset)
    if "uri" in frame.columns:
        values_by_model, notes = _measure_images(
            task_info, dataset, units, frame, requested_names, settings
        )
    elif "embedding" in frame.columns:
        _select_metrics(task_info, requested_names, ("identity_cosine",), "embeddings")
        originals = settings["original_embeddings"]
        if originals is None:
            raise SpecError(
                "embeddings of a model's pictures are compared with those of the originals",
                expected="original_embeddings, a file of them",
                found="none",
                hint="name it: --option original_embeddings=FILE",
            )
        cosines, notes = identity_cosines(frame, units, originals, settings["model"])
        values_by_model = {
            model: {"identity_cosine": metric_values} for model, metric_values in cosines.items()
        }
    elif {"metric", "value"} <= set(frame.columns):
        values_by_model, notes = _read_values(task_info, units, frame, requested_names, settings)
    else:
        raise UnknownNameError("column", "uri", frame.columns, where="predictions")
    reported_info = restrict_task_info(task_info, next(iter(values_by_model.values())), cites=True)
    people = units.select("cluster_id", unit_id="instance_id")
    scores = stack_scores(
        [
            score_rows(
                people.with_columns(
                    reason=pl.Series(model_values[name].reason.tolist(), dtype=pl.String)
                ),
                task,
                name,
                model_values[name].values,
                model=model,
            )
            for model, model_values in values_by_model.items()
            for name in reported_info.defaults
        ]
    )
    # FHIBE defines both tasks, also where only metrics of other papers are measured.
    references = dict.fromkeys([FHIBE, *reported_info.references])
    return Scores(
        units=scores,
        info=replace(reported_info, references=tuple(references)),
        notes=(*_caution_on_dissimilar(scores), *notes, *_count_missing_values(scores)),
    )


def _check_size(settings: ImageComparisonSettings) -> None:
    """Refuse a negative size."""
    # True is an integer in Python, and would resize to 1 pixel.
    if settings["size_px"] < 0 or isinstance(settings["size_px"], bool):
        raise SpecError(
            "size_px cannot be that",
            expected="pixels to which both sides are resized; 0: pictures are not resized",
            found=repr(settings["size_px"]),
        )


def _select_metrics(
    task_info: TaskInfo, requested: Sequence[str], possible: Sequence[str], source_text: str
) -> tuple[str, ...]:
    """List the metrics to measure: those requested, or the possible defaults."""
    for name in requested:
        if name not in possible:
            raise SpecError(
                f"the metric {name!r} cannot be measured from {source_text}",
                expected="one of " + ", ".join(possible),
                where="metrics",
            )
    return (
        tuple(requested) or tuple(n for n in task_info.defaults if n in possible) or tuple(possible)
    )


def _measure_images(
    task_info: TaskInfo,
    dataset: Dataset,
    units: pl.DataFrame,
    frame: pl.DataFrame,
    requested: Sequence[str],
    settings: ImageComparisonSettings,
) -> tuple[_ValuesByModel, list[str]]:
    """Compare all models' images with their originals; with notes."""
    names = _select_metrics(task_info, requested, PIXEL_METRICS, "pictures")
    files = check(frame, IMAGE_FILES, source="predictions")
    models = sorted(files["model"].unique()) or [settings["model"] or "model"]
    matched, match_notes = match_units(files["instance_id"], units)
    # No images to measure: everyone has "no prediction", and no originals are needed.
    if matched.is_empty():
        return {m: {n: _null_values(units.height) for n in names} for m in models}, list(
            match_notes
        )
    notes, distance = [], None
    if "lpips" in names:  # missing weights are reported before any image is read
        from isolux.models.lpips import load

        distance = load(settings["lpips_weights"], device=settings["device"])
        notes = [distance.note]
    rows = files.join(matched, on="instance_id").join(
        _crop_boxes(units, settings["crop"]), on="unit", maintain_order="left"
    )
    originals, original_notes = find_originals(dataset, rows["uri_right"], settings["originals"])
    rows = rows.filter(pl.col("uri_right").is_in(list(originals)))
    # Units may share an image: each distinct pair is measured once.
    keys = rows.select("uri_right", "uri", "box").unique(maintain_order=True)
    pairs = [
        ImagePair(originals[uri], output, None if box is None else (box[0], box[1], box[2], box[3]))
        for uri, output, box in keys.iter_rows()
    ]
    values_by_metric = compare_images(pairs, settings, names, distance)
    # nulls_equal: without a crop every box is null, and nulls do not join otherwise.
    numbered_rows = rows.join(
        keys.with_row_index("pair"), on=["uri_right", "uri", "box"], nulls_equal=True
    )
    values_by_model = {}
    for model in models:
        model_rows = numbered_rows.filter(model=model)
        # Units with an output whose original is missing get that reason instead of "no
        # prediction".
        output_units = matched.join(files.filter(model=model), on="instance_id")["unit"]
        values_by_model[model] = {
            n: _values_by_unit(m, model_rows, output_units, units.height)
            for n, m in values_by_metric.items()
        }
    return values_by_model, [
        *match_notes,
        *original_notes,
        *notes,
        *_describe_preparation(settings, names),
    ]


def _crop_boxes(units: pl.DataFrame, crop: str) -> pl.DataFrame:
    """Return each unit's ``uri_right`` and crop box; null where nothing is cropped or no box."""
    uris = units.select("unit", uri_right="uri")
    if crop == "none":
        return uris.with_columns(box=pl.lit(None, dtype=pl.List(pl.Float64)))
    columns = [f"{_BOXES[crop]}_{column}" for column in "xywh"]
    missing = [column for column in columns if column not in units.columns]
    if missing:
        raise SpecError(
            f"pictures cannot be cropped to a {crop}: the dataset has no such boxes",
            expected="instances with " + ", ".join(columns),
            found="no " + ", ".join(missing),
        )
    numbers = [pl.col(column).cast(pl.Float64).fill_nan(None) for column in columns]
    box = pl.when(pl.all_horizontal(n.is_not_null() for n in numbers)).then(pl.concat_list(numbers))
    return uris.with_columns(units.select(box=box)["box"])


def _null_values(n_units: int) -> ImageMetricValues:
    """Build values of units that are all missing: "no prediction"."""
    return ImageMetricValues(
        np.full(n_units, np.nan), np.full(n_units, NO_PREDICTION, dtype=object)
    )


def _values_by_unit(
    pair_values: ImageMetricValues, model_rows: pl.DataFrame, output_units: pl.Series, n_units: int
) -> ImageMetricValues:
    """Assign the values of pairs to their units."""
    unit_values = _null_values(n_units)
    unit_values.reason[output_units.to_numpy()] = NO_ORIGINAL
    unit_index, pair_index = model_rows["unit"].to_numpy(), model_rows["pair"].to_numpy()
    unit_values.values[unit_index] = pair_values.values[pair_index]
    unit_values.reason[unit_index] = pair_values.reason[pair_index]
    return unit_values


def _describe_preparation(settings: ImageComparisonSettings, names: Sequence[str]) -> list[str]:
    """Describe how images were prepared before they were compared."""
    px, crop = settings["size_px"], settings["crop"]
    size_text = f"brought to {px} × {px} pixels" if px else "left in size"
    crop_text = "" if crop == "none" else f"cropped to the {crop}'s box and "
    psnr_text = (
        "PSNR adds 1e-8 to the mean squared error, as PIQ does: identical pictures have"
        f" {MOST_DB:.0f} dB."
    )
    text = f"Pictures were {crop_text}{size_text} before they were compared."
    return [text, *([psnr_text] if "psnr" in names else [])]


def _read_values(
    task_info: TaskInfo,
    units: pl.DataFrame,
    frame: pl.DataFrame,
    requested: Sequence[str],
    settings: ImageComparisonSettings,
) -> tuple[_ValuesByModel, list[str]]:
    """Read values that were computed elsewhere, of the requested metrics; with notes."""
    table = check(frame, UNIT_VALUES, source="predictions")
    metric_names = [m.name for m in task_info.metrics]
    present_names = [name for name in metric_names if name in set(table["metric"])]
    # A file without rows: everyone has "no prediction" in the default metrics.
    if table.is_empty():
        present_names = list(task_info.defaults)
    elif not present_names:
        raise UnknownNameError("metric", table["metric"][0], metric_names, where="predictions")
    names = requested or tuple(present_names)
    for name in names:
        if name not in present_names and not table.is_empty():
            raise UnknownNameError("metric", name, present_names, where="predictions")
    matched, match_notes = match_units(table["instance_id"], units)
    metrics = [task_info.metric(name) for name in names]
    values_by_model, notes = read_unit_values(
        table, matched, metrics, units.height, settings["model"] or "model"
    )
    return values_by_model, [*match_notes, *notes]


def _caution_on_dissimilar(scores: pl.DataFrame) -> list[Caution]:
    """Caution where most images resemble their originals no more than unrelated images would."""
    notes = []
    valued_rows = scores.drop_nulls("value")
    for (model, metric), rows in valued_rows.group_by(["model", "metric"], maintain_order=True):
        # The median: a model may fail on some images without being about other people.
        limit, median = _UNRELATED_LIMITS[str(metric)], float(np.median(rows["value"].to_numpy()))
        is_dissimilar = median > limit if metric == "lpips" else median < limit
        if is_dissimilar and rows.height >= _MIN_IMAGES:
            text = (
                f"Half the pictures of {model!r} have {metric} {median:.3g} or worse: pictures"
                " of different people do as well. Are they of these people, and is the number"
                " on its usual scale?"
            )
            notes.append(Caution(text))
    return notes


def _count_missing_values(scores: pl.DataFrame) -> list[str]:
    """Count people without a value by reason: a group that lost its worst images looks better."""
    units = scores["unit_id"].n_unique()
    counts = (
        scores.drop_nulls("reason")
        .group_by("model", "metric", "reason", maintain_order=True)
        .len()
        .group_by("model", "reason", "len", maintain_order=True)
        .agg(pl.col("metric"))
    )
    return [
        f"{count:,} of {units:,} people have no {' or '.join(metrics)} of {model!r}: {reason}."
        for model, reason, count, metrics in counts.iter_rows()
    ]
