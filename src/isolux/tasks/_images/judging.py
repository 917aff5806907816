"""Pictures that a model made, held against the originals: what both tasks of that kind share.

Predictions are pictures (files), embeddings of pictures, or values that were computed elsewhere;
their columns tell which. A value a person and metric goes out, and groups, intervals and
comparisons come from the mean of the people's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import polars as pl

from isolux.io.image_tables import IMAGE_FILES, UNIT_VALUES
from isolux.tasks._images.compare import Measured, Pair, compare
from isolux.tasks._images.metrics import FHIBE, OF_PIXELS
from isolux.tasks._images.originals import NO_ORIGINAL, identity_cosines, originals_of
from isolux.tasks._images.settings import PictureSettings
from isolux.tasks._images.values import MOST_DB, NO_PREDICTION, match_units, units_of, values_of
from isolux.tasks._scores import measured_info, read_metrics, score_rows, stack_scores
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.plugin_options import with_defaults
from isolux.vocabulary.schema import check, to_polars

_BOXES = {"face": "face_box", "box": "box"}


_FEWEST = 20
_UNLIKE = {"psnr": 12.0, "ssim": 0.1, "identity_cosine": 0.1, "lpips": 0.9}
"""What two unrelated photographs reach: about 8 to 12 dB, no structure in common."""


_Measures = dict[str, dict[str, Measured]]
"""Of each model each metric, in the order of the units."""


def score_pictures(
    task: str,
    info: TaskInfo,
    dataset: Dataset,
    predictions: object,
    metrics: Sequence[str],
    **pictures: Unpack[PictureSettings],
) -> Scores:
    """Score pictures, embeddings or values, whichever the columns hold."""
    how = with_defaults(PictureSettings, pictures)
    _refuse(how)
    named = read_metrics(info, metrics)
    frame, units = to_polars(predictions), units_of(dataset)
    if "uri" in frame.columns:
        found, notes = _of_pictures(info, dataset, units, frame, named, how)
    elif "embedding" in frame.columns:
        _chosen(info, named, ("identity_cosine",), "embeddings")
        originals = how["original_embeddings"]
        if originals is None:
            raise SpecError(
                "embeddings of a model's pictures are compared with those of the originals",
                expected="original_embeddings, a file of them",
                found="none",
                hint="name it: --option original_embeddings=FILE",
            )
        cosines, notes = identity_cosines(frame, units, originals, how["model"])
        found = {model: {"identity_cosine": measured} for model, measured in cosines.items()}
    elif {"metric", "value"} <= set(frame.columns):
        found, notes = _of_values(info, units, frame, named, how)
    else:
        raise UnknownNameError("column", "uri", frame.columns, where="predictions")
    measured = measured_info(info, next(iter(found.values())), cites=True)
    people = units.select("cluster_id", unit_id="instance_id")
    scores = stack_scores(
        [
            score_rows(
                people.with_columns(reason=pl.Series(own[name].reason.tolist(), dtype=pl.String)),
                task,
                name,
                own[name].value,
                model=model,
            )
            for model, own in found.items()
            for name in measured.defaults
        ]
    )
    cited = dict.fromkeys([FHIBE, *measured.references])
    return Scores(
        units=scores,
        info=replace(measured, references=tuple(cited)),
        notes=(*_unlike(scores), *notes, *_not_scored(scores)),
    )


def _refuse(how: PictureSettings) -> None:
    if how["size_px"] < 0 or isinstance(how["size_px"], bool):
        raise SpecError(
            "size_px cannot be that",
            expected="pixels to which both sides are resized; 0: pictures are not resized",
            found=repr(how["size_px"]),
        )


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
    info: TaskInfo,
    dataset: Dataset,
    units: pl.DataFrame,
    frame: pl.DataFrame,
    named: Sequence[str],
    how: PictureSettings,
) -> tuple[_Measures, list[str]]:
    names = _chosen(info, named, OF_PIXELS, "pictures")
    files = check(frame, IMAGE_FILES, where="predictions")
    models = sorted(files["model"].unique()) or [how["model"] or "model"]
    matched, said = match_units(files["instance_id"], units)
    if matched.is_empty():
        return {m: {n: _nothing(units.height) for n in names} for m in models}, list(said)
    notes, distance = [], None
    if "lpips" in names:  # weights that are absent are said before a thousand pictures are read
        from isolux.models.lpips import load

        distance = load(how["lpips_weights"], device=how["device"])
        notes = [distance.note]
    rows = files.join(matched, on="instance_id").join(
        _boxed(units, how["crop"]), on="unit", maintain_order="left"
    )
    originals, more = originals_of(dataset, rows["uri_right"], how["originals"])
    rows = rows.filter(pl.col("uri_right").is_in(list(originals)))
    keys = rows.select("uri_right", "uri", "box").unique(maintain_order=True)
    pairs = [
        Pair(originals[uri], output, None if box is None else (box[0], box[1], box[2], box[3]))
        for uri, output, box in keys.iter_rows()
    ]
    measured = compare(pairs, how, names, distance)
    numbered = rows.join(
        keys.with_row_index("pair"), on=["uri_right", "uri", "box"], nulls_equal=True
    )
    found = {}
    for model in models:
        own = numbered.filter(pl.col("model") == model)
        had = matched.join(files.filter(pl.col("model") == model), on="instance_id")["unit"]
        found[model] = {n: _spread(m, own, had, units.height) for n, m in measured.items()}
    return found, [*said, *more, *notes, *_how_said(how, names)]


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


def _how_said(how: PictureSettings, names: Sequence[str]) -> list[str]:
    """Say what was done to pictures before they were compared."""
    px, crop = how["size_px"], how["crop"]
    size = f"brought to {px} × {px} pixels" if px else "left in size"
    cut = "" if crop == "none" else f"cropped to the {crop}'s box and "
    psnr = (
        "PSNR adds 1e-8 to the mean squared error, as PIQ does: identical pictures have"
        f" {MOST_DB:.0f} dB."
    )
    text = f"Pictures were {cut}{size} before they were compared."
    return [text, *([psnr] if "psnr" in names else [])]


def _of_values(
    info: TaskInfo,
    units: pl.DataFrame,
    frame: pl.DataFrame,
    named: Sequence[str],
    how: PictureSettings,
) -> tuple[_Measures, list[str]]:
    table = check(frame, UNIT_VALUES, where="predictions")
    known = [m.name for m in info.metrics]
    there = [name for name in known if name in set(table["metric"])]
    if table.is_empty():
        there = list(info.defaults)
    elif not there:
        raise UnknownNameError("metric", table["metric"][0], known, where="predictions")
    names = named or tuple(there)
    for name in names:
        if name not in there and not table.is_empty():
            raise UnknownNameError("metric", name, there, where="predictions")
    matched, said = match_units(table["instance_id"], units)
    metrics = [info.metric(name) for name in names]
    found, notes = values_of(table, matched, metrics, units.height, how["model"] or "model")
    return found, [*said, *notes]


def _unlike(scores: pl.DataFrame) -> list[Caution]:
    """Caution where most pictures resemble their originals no more than anybody else's would."""
    notes = []
    known = scores.drop_nulls("value")
    for (model, metric), rows in known.group_by(["model", "metric"], maintain_order=True):
        limit, middle = _UNLIKE[str(metric)], float(np.median(rows["value"].to_numpy()))
        is_unlike = middle > limit if metric == "lpips" else middle < limit
        if is_unlike and rows.height >= _FEWEST:
            text = (
                f"Half the pictures of {model!r} have {metric} {middle:.3g} or worse: pictures"
                " of different people do as well. Are they of these people, and is the number"
                " on its usual scale?"
            )
            notes.append(Caution(text))
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
