"""Pictures that a model made, held against the originals: what both tasks of that kind share.

Predictions are pictures (files), embeddings of pictures, or values that were computed elsewhere;
their columns tell which. A value a person and metric goes out, and groups, intervals and
comparisons come from the mean of the people's values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import polars as pl

from isolux.io.image_tables import IMAGE_FILES, UNIT_VALUES
from isolux.stats.statistic import FloatArray
from isolux.tasks._images.compare import Comparison, Distance, Measured, Pair, compare
from isolux.tasks._images.metrics import FHIBE, OF_PIXELS
from isolux.tasks._images.originals import NO_ORIGINAL, identity_cosines, originals_of
from isolux.tasks._images.settings import PictureSettings
from isolux.tasks._images.values import NO_PREDICTION, match_units, units_of, values_of
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.plugin_options import with_defaults
from isolux.vocabulary.schema import check, to_polars
from isolux.vocabulary.tables import SCORES

_UNNAMED = "model"
_BOXES = {"face": "face_box", "box": "box"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a task that judges pictures."""

    metrics: tuple[str, ...]
    how: Comparison
    originals: str | None
    original_embeddings: str | None
    lpips_weights: str
    device: str
    model: str | None


def asked_for(metrics: Sequence[str], **pictures: Unpack[PictureSettings]) -> Asked:
    """Bring a task's settings into order; those that were not given have their defaults."""
    settings = with_defaults(PictureSettings, pictures)
    return Asked(
        metrics=(metrics,) if isinstance(metrics, str) else tuple(metrics),
        how=Comparison(
            size_px=settings["size_px"],
            crop=settings["crop"],
            crop_outputs=settings["crop_outputs"],
            exif_orientation=settings["exif_orientation"],
            shape_tolerance=settings["shape_tolerance"],
            error_floor=settings["error_floor"],
        ),
        originals=settings["originals"],
        original_embeddings=settings["original_embeddings"],
        lpips_weights=settings["lpips_weights"],
        device=settings["device"],
        model=settings["model"],
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """Metrics by name of one model, in the order of the units."""

    model: str
    measured: dict[str, Measured]


_FEWEST = 20
_UNLIKE = {"psnr": 12.0, "ssim": 0.1, "identity_cosine": 0.1, "lpips": 0.9}
"""What two unrelated photographs reach: about 8 to 12 dB, no structure in common."""


def score_pictures(
    task: str, info: TaskInfo, dataset: Dataset, predictions: object, asked: Asked
) -> Scores:
    """Score pictures, embeddings or values, whichever the columns hold."""
    _refuse(asked.how)
    for name in asked.metrics:
        info.metric(name)
    frame = to_polars(predictions)
    units = units_of(dataset)
    if "uri" in frame.columns:
        found, notes = _of_pictures(info, dataset, units, frame, asked)
    elif "embedding" in frame.columns:
        _chosen(info, asked.metrics, ("identity_cosine",), "embeddings")
        if asked.original_embeddings is None:
            raise SpecError(
                "embeddings of a model's pictures are compared with those of the originals",
                expected="original_embeddings, a file of them",
                found="none",
                hint="name it: --option original_embeddings=FILE",
            )
        cosines, notes = identity_cosines(frame, units, asked.original_embeddings, asked.model)
        found = [_Found(name, {"identity_cosine": m}) for name, m in cosines.items()]
    elif {"metric", "value"} <= set(frame.columns):
        given, notes = _of_values(info, units, frame, asked)
        found = [_Found(name, measured) for name, measured in given.items()]
    else:
        raise UnknownNameError("column", "uri", frame.columns, where="predictions")
    names = tuple(m.name for m in info.metrics if m.name in found[0].measured)
    parts = [
        _rows(task, units, one.model, name, one.measured[name]) for one in found for name in names
    ]
    scores = SCORES.conform(pl.concat(parts))
    return Scores(
        units=scores,
        info=_measured(info, names),
        notes=(*_unlike(scores), *notes, *_not_scored(scores)),
    )


def _refuse(how: Comparison) -> None:
    if how.size_px < 0 or isinstance(how.size_px, bool):
        raise SpecError(
            "size_px cannot be that",
            expected="pixels to which both sides are resized; 0: pictures are not resized",
            found=repr(how.size_px),
        )
    if how.crop not in ("none", *_BOXES):
        raise SpecError(
            "crop is not known", expected="one of none, face, box", found=repr(how.crop)
        )
    for name in ("error_floor", "shape_tolerance"):
        value = getattr(how, name)
        if not (math.isfinite(value) and value >= 0):
            raise SpecError(f"{name} cannot be that", expected="0 or more", found=repr(value))


def _chosen(
    info: TaskInfo, asked: Sequence[str], possible: Sequence[str], kind: str
) -> tuple[str, ...]:
    """List the metrics to measure: those asked for, or the defaults that are possible."""
    for name in asked:
        if name not in possible:
            raise SpecError(
                f"the metric {name!r} cannot be measured from {kind}",
                expected="one of " + ", ".join(possible),
                where="metrics",
            )
    return tuple(asked) or tuple(n for n in info.defaults if n in possible) or tuple(possible)


def _of_pictures(
    info: TaskInfo, dataset: Dataset, units: pl.DataFrame, frame: pl.DataFrame, asked: Asked
) -> tuple[list[_Found], list[str]]:
    names = _chosen(info, asked.metrics, OF_PIXELS, "pictures")
    files = check(frame, IMAGE_FILES, where="predictions")
    models = sorted(files["model"].unique()) or [asked.model or _UNNAMED]
    matched, said = match_units(files["instance_id"], units)
    if matched.is_empty():
        nothing = {name: _nothing(units.height) for name in names}
        return [_Found(model, nothing) for model in models], list(said)
    # Weights that are not there are said before a thousand pictures are read.
    distance, notes = _distance(asked) if "lpips" in names else (None, ())
    rows = files.join(matched, on="instance_id").join(
        _boxed(units, asked.how.crop), on="unit", maintain_order="left"
    )
    originals, more = originals_of(dataset, rows["uri_right"], asked.originals)
    rows = rows.filter(pl.col("uri_right").is_in(list(originals)))
    keys = rows.select("uri_right", "uri", "box").unique(maintain_order=True)
    pairs = [
        Pair(originals[uri], output, None if box is None else (box[0], box[1], box[2], box[3]))
        for uri, output, box in keys.iter_rows()
    ]
    measured = compare(pairs, asked.how, names, distance)
    numbered = rows.join(
        keys.with_row_index("pair"), on=["uri_right", "uri", "box"], nulls_equal=True
    )
    found = []
    for model in models:
        own = numbered.filter(pl.col("model") == model)
        had = matched.join(files.filter(pl.col("model") == model), on="instance_id")["unit"]
        spread = {n: _spread(m, own, had, units.height) for n, m in measured.items()}
        found.append(_Found(model, spread))
    return found, [*said, *more, *notes, *_how_said(asked.how, names)]


def _distance(asked: Asked) -> tuple[Distance, tuple[str, ...]]:
    from isolux.models.lpips import load

    network = load(asked.lpips_weights, device=asked.device)
    return network, (network.note,)


def _boxed(units: pl.DataFrame, crop: str) -> pl.DataFrame:
    """Give each unit its ``uri_right`` and box; null where nothing is cropped or there is none."""
    bare = units.select("unit", uri_right="uri")
    if crop == "none":
        return bare.with_columns(box=pl.lit(None, dtype=pl.List(pl.Float64)))
    sides = [f"{_BOXES[crop]}_{side}" for side in "xywh"]
    missing = [side for side in sides if side not in units.columns]
    if missing:
        raise SpecError(
            f"pictures cannot be cropped to a {crop}: the dataset has no such boxes",
            expected="instances with " + ", ".join(sides),
            found="no " + ", ".join(missing),
        )
    numbers = [pl.col(side).cast(pl.Float64).fill_nan(None) for side in sides]
    box = pl.when(pl.all_horizontal(n.is_not_null() for n in numbers)).then(pl.concat_list(numbers))
    return bare.with_columns(units.select(box=box)["box"])


def _nothing(n_units: int) -> Measured:
    return Measured(np.full(n_units, np.nan), np.full(n_units, NO_PREDICTION, dtype=object))


def _spread(pairs: Measured, own: pl.DataFrame, had: pl.Series, n_units: int) -> Measured:
    """Bring the values of pairs to the units that they are of."""
    spread = _nothing(n_units)
    spread.reason[had.to_numpy()] = NO_ORIGINAL
    unit_of, pair_of = own["unit"].to_numpy(), own["pair"].to_numpy()
    spread.value[unit_of] = pairs.value[pair_of]
    spread.reason[unit_of] = pairs.reason[pair_of]
    return spread


def _how_said(how: Comparison, names: Sequence[str]) -> list[str]:
    """Say what was done to pictures before they were compared."""
    size = f"brought to {how.size_px} × {how.size_px} pixels" if how.size_px else "left in size"
    cut = "" if how.crop == "none" else f"cropped to the {how.crop}'s box and "
    notes = [f"Pictures were {cut}{size} before they were compared."]
    if "psnr" in names and how.error_floor:
        floor = f"{how.error_floor:g}".replace("e-0", "e-")
        most = -10 * math.log10(how.error_floor)
        notes.append(
            f"PSNR adds {floor} to the mean squared error, as PIQ does: identical pictures have"
            f" {most:.0f} dB."
        )
    return notes


def _of_values(
    info: TaskInfo, units: pl.DataFrame, frame: pl.DataFrame, asked: Asked
) -> tuple[dict[str, dict[str, Measured]], list[str]]:
    table = check(frame, UNIT_VALUES, where="predictions")
    known = [m.name for m in info.metrics]
    there = [name for name in known if name in set(table["metric"])]
    if table.is_empty():
        there = list(info.defaults)
    elif not there:
        raise UnknownNameError("metric", table["metric"][0], known, where="predictions")
    names = asked.metrics or tuple(there)
    for name in names:
        if name not in there and not table.is_empty():
            raise UnknownNameError("metric", name, there, where="predictions")
    matched, said = match_units(table["instance_id"], units)
    return values_of(
        table,
        matched,
        [info.metric(name) for name in names],
        units["instance_id"],
        error_floor=asked.how.error_floor,
        model=asked.model or _UNNAMED,
        notes=said,
    )


def _rows(task: str, units: pl.DataFrame, model: str, metric: str, found: Measured) -> pl.DataFrame:
    value: FloatArray = found.value
    return SCORES.conform(
        units.select(
            pl.lit(model).alias("model"),
            pl.lit(task).alias("task"),
            pl.lit(metric).alias("metric"),
            pl.lit("instance").alias("unit_kind"),
            pl.col("instance_id").alias("unit_id"),
            "cluster_id",
            pl.Series("value", value, dtype=pl.Float64).fill_nan(None),
            pl.Series("reason", found.reason.tolist(), dtype=pl.String),
        )
    )


def _unlike(scores: pl.DataFrame) -> list[Caution]:
    """Caution where most pictures resemble their originals no more than anybody else's would."""
    notes = []
    known = scores.drop_nulls("value")
    for (model, metric), rows in known.group_by(["model", "metric"], maintain_order=True):
        limit = _UNLIKE.get(str(metric))
        middle = float(np.median(rows["value"].to_numpy()))
        if limit is None or rows.height < _FEWEST:
            continue
        if (middle > limit) if metric == "lpips" else (middle < limit):
            notes.append(
                Caution(
                    f"Half the pictures of {model!r} have {metric} {middle:.3g} or worse: pictures"
                    " of different people do as well. Are they of these people, and is the number"
                    " on its usual scale?"
                )
            )
    return notes


def _not_scored(scores: pl.DataFrame) -> list[str]:
    """Count who has no value, and why: a group that lost its worst pictures looks better."""
    units = scores["unit_id"].n_unique()
    why = (
        scores.filter(pl.col("reason").is_not_null())
        .group_by("model", "metric", "reason", maintain_order=True)
        .len()
        .group_by("model", "reason", "len", maintain_order=True)
        .agg(pl.col("metric"))
    )
    return [
        f"{count:,} of {units:,} people have no {' or '.join(metrics)} of {model!r}: {reason}."
        for model, reason, count, metrics in why.iter_rows()
    ]


def _measured(info: TaskInfo, names: Sequence[str]) -> TaskInfo:
    """Declare the metrics that were measured and cite what they rest on, and nothing else."""
    metrics = tuple(info.metric(name) for name in names)
    cited = dict.fromkeys([FHIBE, *(m.reference for m in metrics if m.reference)])
    return replace(info, metrics=metrics, defaults=tuple(names), references=tuple(cited))
