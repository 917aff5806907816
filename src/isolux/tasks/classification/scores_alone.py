"""Scores without answers: how well a score ranks, and, at a threshold, what it decides.

A score and a truth are enough for the area under the curve, average precision and, where scores
are probabilities, calibration. With a threshold each score is an answer, judged as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._numbers.reading import EMPTIED, codes_of_missing
from isolux.tasks._threshold import area_beyond_chance, same_scores
from isolux.tasks.classification.answers import Answers, Confidence, outside_of_shares
from isolux.tasks.classification.choice import OF_SCORES
from isolux.tasks.classification.cutoff import Cutoff, on_reach, parting, set_on
from isolux.tasks.classification.metrics import names_that_need
from isolux.vocabulary.errors import SpecError, TableError, place
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.notes import Caution

Smaller = Literal["other", "positive"]
_POSITIVE_WORDS = ({"0", "1"}, {"0.0", "1.0"}, {"false", "true"}, {"no", "yes"})
OF_ANSWERS = names_that_need("answers")
"""Metrics that need an answer, and so a threshold."""
_LEAST, _CHANCE = 30, 3.0
_FEWEST, _MANY = 20, 0.1
_NO_ANSWERS = (
    "a decision threshold, because scores alone are not answers: --threshold 0.5, fpr=0.01, "
    "fnr=0.05 or best-accuracy (threshold=…)"
)


@dataclass(frozen=True, slots=True)
class Alone:
    """Scores alone, made into what the task judges.

    Parameters
    ----------
    instances : polars.DataFrame
        Those who are judged: ``unit_id, cluster_id, truth``.
    answers : Answers
        With each unit's score; the label is what the threshold decides (without one, a blank).
    missing : dict of str to str
        Metric that cannot be computed to what it lacks.
    thresholds : dict of str to float
        Each model's; empty without one.
    chosen : mapping
        For the record: rule, on whom, thresholds.
    notes : tuple of str
    """

    instances: pl.DataFrame
    answers: Answers
    missing: dict[str, str]
    thresholds: dict[str, float]
    chosen: Mapping[str, Any]
    notes: tuple[str, ...]

    def confidence(self, units: pl.DataFrame) -> Confidence:
        """Take scores as those of the positive class, and of no answer."""
        columns = units.select(confidence=pl.lit(None, dtype=pl.Float64), positive_score="score")
        return Confidence(columns, self.missing)

    def judged(self, units: pl.DataFrame) -> pl.DataFrame:
        """Leave out answers that no threshold made."""
        none = {"prediction": pl.lit(None, pl.String), "correct": pl.lit(None, pl.Boolean)}
        return units if self.thresholds else units.with_columns(**none)

    def unmeasured(self, units: pl.DataFrame, info: TaskInfo) -> list[str]:
        """Say whose truth is not known, and what the scores do not give."""
        notes = []
        unknown = units.filter(pl.col("unjudged") == "unknown truth")["unit_id"].n_unique()
        if unknown:
            notes.append(
                f"{unknown:,} of {self.instances.height:,} units have no known truth and count in"
                " no metric."
            )
        name = "class_calibration_error"
        if name in self.missing:
            notes.append(
                f"{info.metric(name).title} was not measured: it needs {self.missing[name]}."
            )
        if not self.thresholds:
            notes.append(f"Accuracy and rates were not measured: they need {_NO_ANSWERS}.")
        return notes


def default_positive(truth: pl.Series, positive: str | None) -> str:
    """Return the class that scores are of: the one named, or the 1, true or yes of two."""
    if positive is not None:
        return positive
    known = truth.explode().drop_nulls().unique().sort().to_list()
    if {label.lower() for label in known} in _POSITIVE_WORDS:
        return str(max(known, key=str.lower))
    raise SpecError(
        "nothing says which class the scores are of",
        expected="--positive CLASS (positive=…), one of " + ", ".join(map(repr, known[:20])),
        found="scores without answers, and no positive class",
    )


def two_classes(truth: pl.Series, positive: str) -> tuple[pl.Series, str]:
    """Tell those of the positive class from all others; return what the others are called."""
    others = [c for c in truth.explode().drop_nulls().unique() if c != positive]
    other = others[0] if len(others) == 1 else f"not {positive}"
    held = truth.list.contains(pl.lit(positive))
    frame = truth.to_frame("truth").with_columns(held=held)
    read = (
        pl.when("held")
        .then(pl.lit([positive]))
        .when(pl.col("held").is_not_null())
        .then(pl.lit([other]))
    )
    return frame.select(truth=read)["truth"], other


def read_alone(
    predictions: pl.DataFrame,
    instances: pl.DataFrame,
    classes: tuple[str, str],
    cutoff: Cutoff | None,
    *,
    smaller: Smaller,
    model: str | None,
) -> Alone:
    """Turn ``model, instance_id, score`` into answers, at a threshold where one is asked for."""
    table = _checked(predictions)
    models = tuple(table["model"].unique().sort()) or (model or "model",)
    positive = instances["truth"].list.first().eq_missing(classes[0]).to_numpy()
    truth_known = instances["truth"].is_not_null().to_numpy()
    on = None if cutoff is None else cutoff.on
    judged = np.ones(len(positive), dtype=np.bool_) if on is None else ~on
    kept = instances.filter(judged)
    sign = -1.0 if smaller == "positive" else 1.0
    rows, thresholds, texts, notes = [], {}, {}, []
    shared = [] if cutoff is None else [*cutoff.shared]
    for k, name in enumerate(models):
        scores = sign * _of_units(table.filter(model=name), instances["unit_id"], name)
        known = truth_known & np.isfinite(scores)
        usable, at = np.where(known, scores, np.nan), None
        notes += _told(name, scores[judged], positive[judged], known[judged], smaller)
        if cutoff is not None:
            at = set_on(cutoff, scores, positive, known)
            at = sign * at if cutoff.rule.kind == "value" else at
            thresholds[name] = sign * at
            texts[name] = parting(sign * at, sign * usable, falling=sign < 0)
            notes += on_reach(cutoff, name, usable, positive, at, classes=classes, sign=sign)
            if on is not None and not cutoff.shared:
                shared += same_scores(usable, positive, on, name)
        rows.append(_rows(scores[judged], at, classes, k * len(kept)))
    ranked = pl.concat(rows)
    asked = ranked.select("unit", detected=pl.lit(value=True))
    reading = (
        f"Scores are read as those of the class {classes[0]!r}; all others are {classes[1]!r}."
    )
    on_threshold = _on_threshold(cutoff, texts, classes[0], smaller, shared=bool(shared))
    return Alone(
        kept,
        Answers(models, asked, ranked, tells_detection=False, notes=()),
        _missing(ranked["score"], cutoff, smaller),
        thresholds,
        _chosen(cutoff, thresholds, texts, smaller),
        (*shared, *on_threshold, reading, *notes),
    )


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    require_columns(frame, ("model", "instance_id", "score"))
    if not frame.schema["score"].is_numeric() and frame["score"].is_not_null().any():
        raise TableError(
            "a score is a number",
            expected="numbers on any scale",
            found=str(frame.schema["score"]),
            where=place("predictions", column="score"),
        )
    text = pl.col("model", "instance_id").cast(pl.String)
    return frame.select(text, pl.col("score").cast(pl.Float64).fill_nan(None))


def _of_units(rows: pl.DataFrame, unit_ids: pl.Series, model: str) -> FloatArray:
    """Bring one model's scores to the units; NaN where there is none."""
    twice = rows.filter(pl.col("instance_id").is_duplicated())
    if twice.height:
        raise TableError(
            "a person has several scores",
            expected="one score a person and model",
            found=f"{twice['instance_id'][0]!r} of {model!r}",
            where="predictions",
        )
    met = unit_ids.to_frame("instance_id").join(
        rows.select("instance_id", "score", here=pl.lit(value=True)),
        on="instance_id",
        how="left",
        maintain_order="left",
    )
    refuse_no_match(
        "no score is for a unit of the dataset",
        rows["instance_id"],
        unit_ids,
        n_matched=met["here"].count(),
        where=None,
    )
    return np.asarray(met["score"].fill_null(np.nan).to_numpy(), dtype=np.float64)


def _rows(
    scores: FloatArray, threshold: float | None, classes: tuple[str, str], first: int
) -> pl.DataFrame:
    there = np.flatnonzero(~np.isnan(scores))
    given = scores[there] >= (np.inf if threshold is None else threshold)
    labels = np.where(given & (threshold is not None), *classes)
    columns = {"unit": there + first, "label": labels.astype(object), "score": scores[there]}
    schema = {"unit": pl.Int64, "label": pl.String, "score": pl.Float64}
    return pl.DataFrame(columns, schema=schema)


def _missing(scores: pl.Series, cutoff: Cutoff | None, smaller: Smaller) -> dict[str, str]:
    lacks = "answers with a confidence; scores alone have class_calibration_error"
    missing = {"calibration_error": lacks}
    if not len(scores):
        return missing | dict.fromkeys(OF_SCORES, "scores; there are none")
    rises = "scores that rise with the class"
    outside = rises if smaller == "positive" else outside_of_shares(scores)
    if outside:
        high = float(str(scores.abs().max()))
        percents = smaller == "other" and bool((scores >= 0).all()) and 2 < high <= 100
        hint = "; if these are percents, say --option score_scale=100" if percents else ""
        missing["class_calibration_error"] = outside + hint
    return missing | (dict.fromkeys(OF_ANSWERS, _NO_ANSWERS) if cutoff is None else {})


def _told(
    model: str,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    known: npt.NDArray[np.bool_],
    smaller: Smaller,
) -> list[str]:
    """Say who has no score, and whether scores rank the classes at all."""
    n, absent = len(scores), int(np.isnan(scores).sum())
    plain = scores if smaller == "other" else -scores
    notes: list[str] = [*codes_of_missing(plain, what=f"{model!r}", cure=EMPTIED)]
    if absent:
        said = f"{absent:,} of {n:,} people have no score of {model!r}"
        text = f"{said}: every number is about the others alone. Is the file whole?"
        many = n >= _FEWEST and absent >= _MANY * n
        notes.append(Caution(text) if many else f"{said} and count in no metric.")
    if min(int((positive & known).sum()), int((~positive & known).sum())) < _LEAST:
        return notes
    area, noise = area_beyond_chance(scores[known], positive[known])
    whose, curve = f"The scores of {model!r}", f"(area under the curve {area:.2f})"
    turned = "Is a smaller score more likely the class? --smaller positive (smaller='positive')."
    z = (area - 0.5) / noise
    if z < -_CHANCE:
        ask = turned if smaller == "other" else "Leave --smaller out?"
        notes.append(Caution(f"{whose} are lower for the positive class {curve}. {ask}"))
    elif z < _CHANCE:
        ask = "Are they about these people, and this question?"
        notes.append(
            Caution(f"{whose} tell the classes apart no better than chance {curve}. {ask}")
        )
    return notes


def _chosen(
    cutoff: Cutoff | None,
    thresholds: Mapping[str, float],
    texts: Mapping[str, str],
    smaller: Smaller,
) -> dict[str, Any]:
    if cutoff is None:
        return {}
    given = cutoff.rule.kind == "value"
    return {
        "threshold": {
            "rule": cutoff.rule.kind,
            "rate": None if cutoff.rule.kind in ("value", "best-accuracy") else cutoff.rule.number,
            "chosen_on": None if given else cutoff.where or "the people who are judged",
            "n_chosen_on": None if cutoff.on is None else int(cutoff.on.sum()),
            "smaller": smaller,
            "metrics": list(OF_ANSWERS),
            "words": "at its threshold"
            if len(set(thresholds.values())) > 1
            else f"at a score of {next(iter(texts.values()))}",
            "value": {name: at for name, at in thresholds.items() if np.isfinite(at)},
        }
    }


def _on_threshold(
    cutoff: Cutoff | None,
    texts: Mapping[str, str],
    positive: str,
    smaller: Smaller,
    *,
    shared: bool,
) -> list[str]:
    """State each model's threshold; a caution where it was set on those who are judged."""
    if cutoff is None:
        return []
    side = "at most" if smaller == "positive" else "at least"
    notes: list[str] = []
    for name, at in texts.items():
        of = f" of {name!r}" if len(texts) > 1 else ""
        said = f"Scores{of} of {side} {at} are answers {positive!r}"
        set_by = f"{said}: that threshold ({cutoff.rule.words}) was"
        if cutoff.rule.kind == "value":
            notes.append(f"{said} (the threshold as given).")
        elif cutoff.on is None:
            text = (
                f"{set_by} chosen on the same people that it is judged on, so rates look better"
                " than on others. --threshold-on split=val, or a share such as 0.3, sets it on"
                " people who are then left out."
            )
            notes.append(Caution(text))
        else:
            who = "rows that are" if shared else "people who are"
            n = int(cutoff.on.sum())
            notes.append(f"{set_by} set on {cutoff.where}, {n:,} {who} not judged.")
    return notes
