"""Whether answers and confidences agree with the truth of their own rows, beyond chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._threshold import area_beyond_chance
from isolux.vocabulary.counts import TIMES, people_in
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

Codes = npt.NDArray[np.int64]
_LEAST = 30  # people below whom a coincidence is too easy to speak of
_CHANCE, _SURE = 3.0, 6.0
_KAPPA = 0.05
_MOST_CLASSES = 2_000
_BLOCK = 50


def agreement_with_truth(units: pl.DataFrame) -> list[Caution]:
    """Caution where a model's answers agree with the truth no better than chance."""
    found: list[Caution] = []
    for (model,), mine in units.group_by(["model"], maintain_order=True):
        known = mine.filter(
            pl.col("unjudged").is_null()
            & pl.col("prediction").is_not_null()
            & (pl.col("truth").list.len() == 1)
        )
        if people_in(known) < _LEAST:
            continue
        truth = known["truth"].list.first()
        labels = pl.concat([truth.unique(), known["prediction"].unique()]).unique().sort()
        if truth.n_unique() < 2 or len(labels) > _MOST_CLASSES:
            continue
        enum = pl.Enum(labels)
        t, p = (
            labels_of.cast(enum).to_physical().cast(pl.Int64).to_numpy()
            for labels_of in (truth, known["prediction"])
        )
        times = known[TIMES].to_numpy() if TIMES in known.columns else None
        if times is None:
            _refuse_shifted(str(model), t, p)
        found += _caution(str(model), (t, p, times), str(known["prediction"][0]))
    return found


def beyond_chance(truth: Codes, answers: Codes, times: Codes | None = None) -> tuple[float, float]:
    """Count agreements: standard deviations above chance, and Cohen's kappa; NaN where neither is.

    Examples
    --------
    >>> z, kappa = beyond_chance(np.array([0, 1] * 50), np.array([0, 1] * 50))
    >>> round(z, 2), kappa
    (9.95, 1.0)
    """
    counts = np.ones(len(truth), np.int64) if times is None else times
    n, agreed = int(counts.sum()), float(counts[truth == answers].sum())
    mean, variance = _agreements_by_chance(truth, answers, counts)
    if variance <= 1e-12 or mean >= n:
        return float("nan"), float("nan")
    return (agreed - mean) / variance**0.5, (agreed - mean) / (n - mean)


def _agreements_by_chance(truth: Codes, answers: Codes, times: Codes) -> tuple[float, float]:
    """Find mean and variance of the agreements if answers were dealt to people at random."""
    size, n = int(max(truth.max(initial=0), answers.max(initial=0))) + 1, int(times.sum())
    r, c = (np.bincount(one, times, minlength=size).astype(float) for one in (truth, answers))
    mean = float(r @ c) / n
    apart = np.eye(size) - c[:, None] / n - r[None, :] / n + mean / n
    return mean, float((r[:, None] * c[None, :] * apart**2).sum()) / max(n - 1, 1)


def _caution(model: str, pairs: tuple[Codes, Codes, Codes | None], answer: str) -> list[Caution]:
    truth, answers, times = pairs
    if len(np.unique(answers)) == 1:
        return [Caution(f"Every answer of {model!r} is {answer!r}: one answer for everyone.")]
    counts = np.ones(len(truth), np.int64) if times is None else times
    n, agreed = int(counts.sum()), int(counts[truth == answers].sum())
    z, kappa = beyond_chance(truth, answers, times)
    whose, share = f"The answers of {model!r} agree with the truth", f"{100 * (agreed / n):.1f} %"
    figures = f"({share} of {n:,}; kappa {kappa:.2f})"
    if z < -_CHANCE:
        ask = "Are two classes swapped? --label-map would say so."
        return [Caution(f"{whose} less often than chance would {figures}. {ask}")]
    if z < _CHANCE or kappa < _KAPPA:
        ask = "Are they about these people, and this question?"
        return [Caution(f"{whose} no better than chance {figures}. {ask}")]
    return []


def _shifts(n: int) -> Iterator[tuple[str, slice, slice]]:
    """Say how rows may have moved: in words, which are moved, and what stands there."""
    for shift in (-1, 1, -2, 2):
        ahead, behind = max(shift, 0), max(-shift, 0)
        side = "before" if shift > 0 else "after"
        yield f"{abs(shift)} {side}", slice(behind, n - ahead), slice(ahead, n - behind)


def _refuse_shifted(model: str, truth: Codes, answers: Codes) -> None:
    for start, stop in _runs(len(truth)):
        t, p = truth[start:stop], answers[start:stop]
        own, _ = beyond_chance(t, p)
        if not own < _CHANCE:
            continue
        for words, moved, place in _shifts(len(t)):
            z, _ = beyond_chance(t[moved], p[place])
            if z > _SURE and _beyond_own(t[moved], p[place], t[place]) > _SURE:
                share = float((t[moved] == p[place]).mean())
                raise JoinError(
                    f"the answers of {model!r} belong to other rows",
                    expected="each answer in the row of the person that it is about",
                    found=f"in rows {start + 1:,} to {stop:,}, {100 * (t == p).mean():.0f} % agree"
                    f" with their own row's truth and {100 * share:.0f} % with that of the row"
                    f" {words} it",
                    hint="a row was lost or put in: join by an id (--id, --prediction-id)",
                )


def _beyond_own(truth: Codes, answers: Codes, own: Codes) -> float:
    """Count agreements with another row's truth among people whose own truth is one."""
    agreed = mean = variance = 0.0
    for value in np.unique(own):
        here = own == value
        n = int(here.sum())
        _, coded = np.unique(np.concatenate([truth[here], answers[here]]), return_inverse=True)
        t, p = coded[:n], coded[n:]
        by_chance = _agreements_by_chance(t, p, np.ones(n, np.int64))
        mean, variance = mean + by_chance[0], variance + by_chance[1]
        agreed += float((t == p).sum())
    return (agreed - mean) / variance**0.5 if variance > 1e-12 else 0.0


def _runs(n: int) -> Iterator[tuple[int, int]]:
    """Everyone, and then up to twenty runs of rows."""
    yield 0, n
    step = max(_BLOCK, -(-n // 20))
    if n >= 2 * step:
        yield from ((start, start + step) for start in range(0, n - step + 1, step))


_MIN_OF_EITHER = 10  # right answers, and wrong ones
_AREA_CHANCE, _AREA_SURE = 2.0, 6.0
_VISIBLE = 0.04  # of the area: noise above which a weak relation would not be seen


def confidences_of_answers(units: pl.DataFrame, confidence: pl.Series) -> list[Caution]:
    """Caution where a model is no surer of its right answers than of its wrong ones.

    Examples
    --------
    >>> sure = pl.Series([0.9, 0.5] * 400)
    >>> people = pl.DataFrame({"model": "m", "correct": [True, True, False, False] * 200})
    >>> print(confidences_of_answers(people, sure)[0][:85])
    'm' is no more confident when it is right than when it is wrong (area under the curve
    """
    rows = units.select("model", "correct", sure=confidence)
    told = []
    for (model,), mine in rows.group_by(["model"], maintain_order=True):
        known = mine.drop_nulls()
        right = known["correct"].to_numpy()
        sure = known["sure"].cast(pl.Float64).to_numpy()
        few = min(int(right.sum()), int((~right).sum()))
        if few < _MIN_OF_EITHER or known["sure"].n_unique() == 1:
            continue
        area, noise = area_beyond_chance(sure, right)
        if area > 0.5 + _AREA_CHANCE * noise:
            continue
        _refuse_shifted_confidences(str(model), sure, right)
        if noise <= _VISIBLE:
            told.append(
                Caution(
                    f"{model!r} is no more confident when it is right than when it is wrong (area "
                    f"under the curve {area:.2f}; by chance 0.50). Are these the confidences of "
                    "these answers?"
                )
            )
    return told


def _refuse_shifted_confidences(model: str, sure: FloatArray, right: npt.NDArray[np.bool_]) -> None:
    for words, moved, place in _shifts(len(sure)):
        area, noise = area_beyond_chance(sure[place], right[moved])
        is_sure = area > 0.5 + _AREA_SURE * noise
        if is_sure and _is_beyond_own_confidence(sure[place], right[moved], right[place]):
            raise JoinError(
                f"the confidences of {model!r} belong to other rows",
                expected="each confidence in the row of its answer",
                found=f"they tell right answers from wrong ones in the row {words} (area under the"
                f" curve {area:.2f}), and not in their own",
                hint="a row was lost or put in: join by an id that names people",
            )


def _is_beyond_own_confidence(
    sure: FloatArray, moved: npt.NDArray[np.bool_], own: npt.NDArray[np.bool_]
) -> bool:
    """Tell whether it is so among the right answers alone, or among the wrong ones."""
    for here in (own, ~own):
        if min(int(moved[here].sum()), int((~moved[here]).sum())) >= _MIN_OF_EITHER:
            area, noise = area_beyond_chance(sure[here], moved[here])
            if area > 0.5 + _AREA_CHANCE * noise:
                return True
    return False
