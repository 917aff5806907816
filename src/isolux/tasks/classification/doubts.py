"""Whether answers and confidences agree with the truth of their own rows, beyond chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.roc import auc
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.counts import TIMES, people_in
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.notes import Caution

Codes = npt.NDArray[np.int64]
_LEAST = 30  # people below whom a coincidence is too easy to speak of
_CHANCE, _SURE = 3.0, 6.0
_KAPPA = 0.05
_MOST_CLASSES = 2_000
_SHIFTS = (-1, 1, -2, 2)
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
    n = len(truth) if times is None else int(times.sum())
    size = int(max(truth.max(initial=0), answers.max(initial=0))) + 1
    r = np.bincount(truth, times, minlength=size).astype(float)
    c = np.bincount(answers, times, minlength=size).astype(float)
    mean = float(r @ c) / n
    apart = np.eye(size) - c[:, None] / n - r[None, :] / n + mean / n
    variance = float((r[:, None] * c[None, :] * apart**2).sum()) / max(n - 1, 1)
    agreed = float(_sum(truth == answers, times))
    if variance <= 1e-12 or mean >= n:
        return float("nan"), float("nan")
    return (agreed - mean) / variance**0.5, (agreed - mean) / (n - mean)


def _sum(which: npt.NDArray[np.bool_], times: Codes | None) -> int:
    return int(which.sum() if times is None else times[which].sum())


def _caution(model: str, pairs: tuple[Codes, Codes, Codes | None], answer: str) -> list[Caution]:
    truth, answers, times = pairs
    n = len(truth) if times is None else int(times.sum())
    if len(np.unique(answers)) == 1:
        return [Caution(f"Every answer of {model!r} is {answer!r}: one answer for everyone.")]
    z, kappa = beyond_chance(truth, answers, times)
    share = f"{100 * (_sum(truth == answers, times) / n):.1f} % of {n:,}"
    if z < -_CHANCE:
        return [
            Caution(
                f"The answers of {model!r} agree with the truth less often than chance would"
                f" ({share}; kappa {kappa:.2f}). Are two classes swapped? --label-map would say so."
            )
        ]
    if z < _CHANCE or kappa < _KAPPA:
        return [
            Caution(
                f"The answers of {model!r} agree with the truth no better than chance ({share};"
                f" kappa {kappa:.2f}). Are they about these people, and this question?"
            )
        ]
    return []


def _refuse_shifted(model: str, truth: Codes, answers: Codes) -> None:
    for start, stop in _runs(len(truth)):
        t, p = truth[start:stop], answers[start:stop]
        own, _ = beyond_chance(t, p)
        if not own < _CHANCE:
            continue
        for shift in _SHIFTS:
            ahead, behind = max(shift, 0), max(-shift, 0)
            moved_t, moved_p = t[behind : len(t) - ahead], p[ahead : len(p) - behind]
            z, _ = beyond_chance(moved_t, moved_p)
            if z > _SURE and _beyond_own(moved_t, moved_p, t[ahead : len(t) - behind]) > _SURE:
                share = float((moved_t == moved_p).mean())
                raise JoinError(
                    f"the answers of {model!r} belong to other rows",
                    expected="each answer in the row of the person that it is about",
                    found=f"in rows {start + 1:,} to {stop:,}, {100 * (t == p).mean():.0f} % agree"
                    f" with their own row's truth and {100 * share:.0f} % with that of the row"
                    f" {abs(shift)} {'before' if shift > 0 else 'after'} it",
                    hint="a row was lost or put in: join by an id (--id, --prediction-id)",
                )


def _beyond_own(truth: Codes, answers: Codes, own: Codes) -> float:
    """Count agreements with another row's truth among people whose own truth is one."""
    agreed = mean = variance = 0.0
    for value in np.unique(own):
        here = own == value
        n = int(here.sum())
        labels, coded = np.unique(np.concatenate([truth[here], answers[here]]), return_inverse=True)
        r, c = (np.bincount(part, minlength=len(labels)) for part in (coded[:n], coded[n:]))
        expected = float(r @ c) / n
        apart = np.eye(len(labels)) - c[:, None] / n - r[None, :] / n + expected / n
        variance += float((r[:, None] * c[None, :] * apart**2).sum()) / max(n - 1, 1)
        agreed += float((coded[:n] == coded[n:]).sum())
        mean += expected
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
        area, noise = _area(sure, right)
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


def _area(sure: FloatArray, right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Tell how well confidences part right answers from wrong ones, and its noise by chance."""
    p, q = int(right.sum()), int((~right).sum())
    area = float(auc(sure, right, np.ones(len(sure))))
    return area, float(np.sqrt((p + q + 1) / (12.0 * p * q)))


def _refuse_shifted_confidences(model: str, sure: FloatArray, right: npt.NDArray[np.bool_]) -> None:
    n = len(sure)
    for shift in _SHIFTS:
        ahead, behind = max(shift, 0), max(-shift, 0)
        moved, own = right[behind : n - ahead], right[ahead : n - behind]
        area, noise = _area(sure[ahead : n - behind], moved)
        if area > 0.5 + _AREA_SURE * noise and _is_beyond_own_confidence(
            sure[ahead : n - behind], moved, own
        ):
            raise JoinError(
                f"the confidences of {model!r} belong to other rows",
                expected="each confidence in the row of its answer",
                found=f"they tell right answers from wrong ones in the row {abs(shift)}"
                f" {'before' if shift > 0 else 'after'} (area under the curve {area:.2f}), and not"
                " in their own",
                hint="a row was lost or put in: join by an id that names people",
            )


def _is_beyond_own_confidence(
    sure: FloatArray, moved: npt.NDArray[np.bool_], own: npt.NDArray[np.bool_]
) -> bool:
    """Tell whether it is so among the right answers alone, or among the wrong ones."""
    for here in (own, ~own):
        if min(int(moved[here].sum()), int((~moved[here]).sum())) >= _MIN_OF_EITHER:
            area, noise = _area(sure[here], moved[here])
            if area > 0.5 + _AREA_CHANCE * noise:
                return True
    return False
