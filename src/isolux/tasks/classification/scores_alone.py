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

from isolux.stats.roc import auc
from isolux.stats.statistic import FloatArray
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._numbers.reading import EMPTIED, codes_of_missing
from isolux.tasks._threshold import same_scores
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
        if self.thresholds:
            return units
        return units.with_columns(
            prediction=pl.lit(None, dtype=pl.String), correct=pl.lit(None, dtype=pl.Boolean)
        )

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
    reading = (
        f"Scores are read as those of the class {classes[0]!r}; all others are {classes[1]!r}."
    )
    truth_known = instances["truth"].is_not_null().to_numpy()
    judged = np.ones(len(positive), dtype=np.bool_)
    if cutoff is not None and cutoff.on is not None:
        judged = ~cutoff.on
    kept = instances.filter(judged)
    sign = -1.0 if smaller == "positive" else 1.0
    rows, thresholds, texts, notes = [], {}, {}, []
    shared = [] if cutoff is None else [*cutoff.shared]
    for k, name in enumerate(models):
        scores = sign * _of_units(table.filter(model=name), instances["unit_id"], name)
        known = truth_known & np.isfinite(scores)
        if cutoff is not None:
            at = set_on(cutoff, scores, positive, known)
            thresholds[name] = sign * at if cutoff.rule.kind == "value" else at
            texts[name] = parting(
                sign * thresholds[name], np.where(known, sign * scores, np.nan), falling=sign < 0
            )
        if cutoff is not None and cutoff.on is not None and not cutoff.shared:
            shared += same_scores(np.where(known, scores, np.nan), positive, cutoff.on, name)
        notes += _told(name, scores[judged], positive[judged], known[judged], smaller)
        if cutoff is not None:
            notes += on_reach(
                cutoff, name, np.where(known, scores, np.nan), positive, thresholds[name],
                classes=classes, sign=sign,
            )  # fmt: skip
        rows.append(_rows(scores[judged], thresholds.get(name), classes, k * len(kept)))
    ranked = pl.concat(rows)
    asked = ranked.select("unit", detected=pl.lit(value=True))
    thresholds = {name: sign * at for name, at in thresholds.items()}
    return Alone(
        kept,
        Answers(models, asked, ranked, tells_detection=False, notes=()),
        _missing(ranked["score"], cutoff, smaller),
        thresholds,
        _chosen(cutoff, thresholds, texts, smaller),
        (
            *shared,
            *_on_threshold(cutoff, texts, classes[0], smaller, shared=bool(shared)),
            reading,
            *notes,
        ),
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
        on="instance_id", how="left", maintain_order="left",
    )  # fmt: skip
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
    given = (
        np.zeros(len(there), dtype=np.bool_) if threshold is None else scores[there] >= threshold
    )
    labels = pl.Series(given).replace_strict({True: classes[0], False: classes[1]},
                                             return_dtype=pl.String)  # fmt: skip
    return pl.DataFrame({"unit": there + first, "label": labels, "score": scores[there]},
                        schema_overrides={"unit": pl.Int64})  # fmt: skip


def _missing(scores: pl.Series, cutoff: Cutoff | None, smaller: Smaller) -> dict[str, str]:
    missing = {"calibration_error": "answers with a confidence; scores alone have"
                                    " class_calibration_error"}  # fmt: skip
    if not len(scores):
        return missing | dict.fromkeys(OF_SCORES, "scores; there are none")
    outside = "scores that rise with the class" if smaller == "positive" else None
    outside = outside or outside_of_shares(scores)
    if outside:
        high = scores.abs().max()
        percents = smaller == "other" and bool((scores >= 0).all()) and 2 < float(str(high)) <= 100
        hint = "; if these are percents, say --score-scale 100" if percents else ""
        missing["class_calibration_error"] = outside + hint
    if cutoff is None:
        missing |= dict.fromkeys(OF_ANSWERS, _NO_ANSWERS)
    return missing


def _told(
    model: str,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    known: npt.NDArray[np.bool_],
    smaller: Smaller,
) -> list[str]:
    """Say who has no score, and whether scores rank the classes at all."""
    n, absent = len(scores), int(np.isnan(scores).sum())
    notes: list[str] = [
        *codes_of_missing(
            scores if smaller == "other" else -scores, what=f"{model!r}", cure=EMPTIED
        )
    ]
    if absent:
        said = f"{absent:,} of {n:,} people have no score of {model!r}"
        many = n >= _FEWEST and absent >= _MANY * n
        notes.append(
            Caution(f"{said}: every number is about the others alone. Is the file whole?")
            if many
            else f"{said} and count in no metric."
        )
    p, q = int((positive & known).sum()), int((~positive & known).sum())
    if min(p, q) < _LEAST:
        return notes
    area = float(auc(scores[known], positive[known], np.ones(int(known.sum()))))
    z = (area - 0.5) / np.sqrt((p + q + 1) / (12.0 * p * q))
    turned = "--smaller positive (smaller='positive')"
    if z < -_CHANCE:
        ask = (
            f"Is a smaller score more likely the class? {turned}."
            if smaller == "other"
            else "Leave --smaller out?"
        )
        notes.append(
            Caution(
                f"The scores of {model!r} are lower for the positive class (area under the curve"
                f" {area:.2f}). {ask}"
            )
        )
    elif z < _CHANCE:
        notes.append(
            Caution(
                f"The scores of {model!r} tell the classes apart no better than chance (area under"
                f" the curve {area:.2f}). Are they about these people, and this question?"
            )
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
        if cutoff.rule.kind == "value":
            notes.append(f"{said} (the threshold as given).")
        elif cutoff.on is None:
            notes.append(
                Caution(
                    f"{said}: that threshold ({cutoff.rule.words}) was chosen on the same people"
                    " that it is judged on, so rates look better than on others. --threshold-on"
                    " split=val, or a share such as 0.3, sets it on people who are then left out."
                )
            )
        else:
            who = "rows that are" if shared else "people who are"
            notes.append(
                f"{said}: that threshold ({cutoff.rule.words}) was set on {cutoff.where},"
                f" {int(cutoff.on.sum()):,} {who} not judged."
            )
    return notes
