"""Whether predictions and confidences agree with the truth of their own rows, beyond chance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.counts import TIMES, count_people
from isolux.core.errors import JoinError
from isolux.core.notes import Caution
from isolux.stats.statistic import FloatArray
from isolux.tasks._threshold import auc_with_null_se

Codes = npt.NDArray[np.int64]
# With fewer people, agreement by chance is too common for a caution.
_MIN_PEOPLE = 30
# Standard deviations: below the first, agreement counts as chance; a shift of rows is refused
# only beyond the second, since it stops the audit.
_MIN_Z, _SHIFT_Z = 3.0, 6.0
# In a large file even a tiny agreement is significant; below this kappa it is of no use.
_MIN_KAPPA = 0.05
# The variance needs a table of classes by classes.
_MAX_CLASSES = 2_000
# Rows may be shifted from some point on, so blocks of at least this size are tested too.
_MIN_BLOCK_ROWS = 50


def caution_on_chance_agreement(units: pl.DataFrame) -> list[Caution]:
    """Caution where a model's predictions agree with the truth no better than chance."""
    cautions: list[Caution] = []
    for (model,), model_rows in units.group_by(["model"], maintain_order=True):
        valid_rows = model_rows.filter(
            pl.col("unjudged").is_null()
            & pl.col("prediction").is_not_null()
            # With several valid classes, agreement by chance has no simple distribution.
            & (pl.col("truth").list.len() == 1)
        )
        if count_people(valid_rows) < _MIN_PEOPLE:
            continue
        truth = valid_rows["truth"].list.first()
        labels = pl.concat([truth.unique(), valid_rows["prediction"].unique()]).unique().sort()
        # With a constant truth, permuting the predictions changes nothing, so chance cannot be
        # tested.
        if truth.n_unique() < 2 or len(labels) > _MAX_CLASSES:
            continue
        # One coding for both sides, so that equal codes are equal classes.
        enum = pl.Enum(labels)
        t, p = (
            series.cast(enum).to_physical().cast(pl.Int64).to_numpy()
            for series in (truth, valid_rows["prediction"])
        )
        multiplicity = valid_rows[TIMES].to_numpy() if TIMES in valid_rows.columns else None
        # Counts of identical rows have no order of people that could be shifted.
        if multiplicity is None:
            _check_row_shift(str(model), t, p)
        cautions += _build_cautions(
            str(model), (t, p, multiplicity), str(valid_rows["prediction"][0])
        )
    return cautions


def agreement_statistics(
    truth: Codes, answers: Codes, multiplicity: Codes | None = None
) -> tuple[float, float]:
    """Compute agreement: standard deviations above chance, and Cohen's kappa; NaN if undefined.

    Examples
    --------
    >>> z, kappa = agreement_statistics(np.array([0, 1] * 50), np.array([0, 1] * 50))
    >>> round(z, 2), kappa
    (9.95, 1.0)
    """
    counts = np.ones(len(truth), np.int64) if multiplicity is None else multiplicity
    n, n_agreeing = int(counts.sum()), float(counts[truth == answers].sum())
    mean, variance = _chance_agreement_moments(truth, answers, counts)
    # A constant side leaves nothing to permute: agreement is then fixed.
    if variance <= 1e-12 or mean >= n:
        return float("nan"), float("nan")
    # Cohen's kappa: the excess over chance, relative to the largest possible excess.
    return (n_agreeing - mean) / variance**0.5, (n_agreeing - mean) / (n - mean)


def _chance_agreement_moments(
    truth: Codes, answers: Codes, multiplicity: Codes
) -> tuple[float, float]:
    """Compute mean and variance of the number of agreements if predictions were permuted."""
    n_classes = int(max(truth.max(initial=0), answers.max(initial=0))) + 1
    n = int(multiplicity.sum())
    # Row and column totals of the confusion matrix.
    r, c = (
        np.bincount(codes, multiplicity, minlength=n_classes).astype(float)
        for codes in (truth, answers)
    )
    # Expected agreement under permutation: sum of products of the margins over n, as in Cohen's
    # kappa.
    mean = float(r @ c) / n
    # Variance of the permutation distribution of the sum of the diagonal.
    deviations = np.eye(n_classes) - c[:, None] / n - r[None, :] / n + mean / n
    return mean, float((r[:, None] * c[None, :] * deviations**2).sum()) / max(n - 1, 1)


def _build_cautions(
    model: str, pairs: tuple[Codes, Codes, Codes | None], answer: str
) -> list[Caution]:
    """Caution where labels are constant, or agree with the truth no better than chance."""
    truth, answers, multiplicity = pairs
    # A constant answer has no variance; kappa would be 0 whatever the truth.
    if len(np.unique(answers)) == 1:
        return [Caution(f"Every answer of {model!r} is {answer!r}: one answer for everyone.")]
    counts = np.ones(len(truth), np.int64) if multiplicity is None else multiplicity
    n, n_agreeing = int(counts.sum()), int(counts[truth == answers].sum())
    z, kappa = agreement_statistics(truth, answers, multiplicity)
    statement = f"The answers of {model!r} agree with the truth"
    share = f"{100 * (n_agreeing / n):.1f} %"
    figures = f"({share} of {n:,}; kappa {kappa:.2f})"
    if z < -_MIN_Z:
        question = "Are classes swapped, in the truth or in the answers?"
        return [Caution(f"{statement} less often than chance would {figures}. {question}")]
    if z < _MIN_Z or kappa < _MIN_KAPPA:
        question = "Are they about these people, and this question?"
        return [Caution(f"{statement} no better than chance {figures}. {question}")]
    return []


def _row_shifts(n: int) -> Iterator[tuple[str, slice, slice]]:
    """Yield possible shifts of rows: a description, the slice of truth and that of predictions."""
    # A lost or added row shifts the rows after it by one, two of them by two.
    for shift in (-1, 1, -2, 2):
        lead, lag = max(shift, 0), max(-shift, 0)
        direction = "before" if shift > 0 else "after"
        yield f"{abs(shift)} {direction}", slice(lag, n - lead), slice(lead, n - lag)


def _check_row_shift(model: str, truth: Codes, answers: Codes) -> None:
    """Refuse predictions that agree with the truth of neighbouring rows, not of their own."""
    for start, stop in _row_blocks(len(truth)):
        t, p = truth[start:stop], answers[start:stop]
        own_z, _ = agreement_statistics(t, p)
        # Also skips NaN: rows that fit, or that cannot be tested, are not searched for a shift.
        if not own_z < _MIN_Z:
            continue
        for description, truth_slice, answer_slice in _row_shifts(len(t)):
            z, _ = agreement_statistics(t[truth_slice], p[answer_slice])
            if (
                z > _SHIFT_Z
                and _shifted_agreement_z(t[truth_slice], p[answer_slice], t[answer_slice])
                > _SHIFT_Z
            ):
                share = float((t[truth_slice] == p[answer_slice]).mean())
                raise JoinError(
                    f"the answers of {model!r} belong to other rows",
                    expected="each answer in the row of the person that it is about",
                    found=f"in rows {start + 1:,} to {stop:,}, {100 * (t == p).mean():.0f} % agree"
                    f" with their own row's truth and {100 * share:.0f} % with that of the row"
                    f" {description} it",
                    hint="a row was lost or put in: join by an id (--id, --prediction-id)",
                )


def _shifted_agreement_z(truth: Codes, answers: Codes, own_truth: Codes) -> float:
    """Compute z of the agreements with another row's truth, within classes of the own truth.

    Stratified, since in sorted files a row's neighbours have its class anyway.
    """
    n_agreeing = mean = variance = 0.0
    for class_code in np.unique(own_truth):
        in_class = own_truth == class_code
        n = int(in_class.sum())
        _, codes = np.unique(
            np.concatenate([truth[in_class], answers[in_class]]), return_inverse=True
        )
        t, p = codes[:n], codes[n:]
        chance_moments = _chance_agreement_moments(t, p, np.ones(n, np.int64))
        mean, variance = mean + chance_moments[0], variance + chance_moments[1]
        n_agreeing += float((t == p).sum())
    return (n_agreeing - mean) / variance**0.5 if variance > 1e-12 else 0.0


def _row_blocks(n: int) -> Iterator[tuple[int, int]]:
    """Yield all rows, and then up to twenty blocks of rows."""
    yield 0, n
    # At most twenty blocks, so that the check stays fast and rarely refuses a correct file by
    # chance.
    step = max(_MIN_BLOCK_ROWS, -(-n // 20))
    if n >= 2 * step:
        yield from ((start, start + step) for start in range(0, n - step + 1, step))


# At least so many correct and so many incorrect predictions.
_MIN_PER_OUTCOME = 10
# Standard errors of the area above 0.5: below the first, confidences are uninformative; beyond the
# second, in another row, rows are shifted.
_MIN_AREA_Z, _SHIFT_AREA_Z = 2.0, 6.0
# With a larger standard error of the area, a weak association could not be detected.
_MAX_AREA_SE = 0.04


def caution_on_confidences(units: pl.DataFrame, confidence: pl.Series) -> list[Caution]:
    """Caution where a model is no more confident when it is correct than when it is not.

    Examples
    --------
    >>> sure = pl.Series([0.9, 0.5] * 400)
    >>> people = pl.DataFrame({"model": "m", "correct": [True, True, False, False] * 200})
    >>> print(caution_on_confidences(people, sure)[0][:85])
    'm' is no more confident when it is right than when it is wrong (area under the curve
    """
    rows = units.select("model", "correct", sure=confidence)
    cautions = []
    for (model,), model_rows in rows.group_by(["model"], maintain_order=True):
        valid_rows = model_rows.drop_nulls()
        is_correct = valid_rows["correct"].to_numpy()
        confidences = valid_rows["sure"].cast(pl.Float64).to_numpy()
        n_rarer = min(int(is_correct.sum()), int((~is_correct).sum()))
        # A constant confidence ranks nothing.
        if n_rarer < _MIN_PER_OUTCOME or valid_rows["sure"].n_unique() == 1:
            continue
        area, null_se = auc_with_null_se(confidences, is_correct)
        if area > 0.5 + _MIN_AREA_Z * null_se:
            continue
        _check_confidence_shift(str(model), confidences, is_correct)
        if null_se <= _MAX_AREA_SE:
            cautions.append(
                Caution(
                    f"{model!r} is no more confident when it is right than when it is wrong (area "
                    f"under the curve {area:.2f}; by chance 0.50). Are these the confidences of "
                    "these answers?"
                )
            )
    return cautions


def _check_confidence_shift(
    model: str, confidences: FloatArray, is_correct: npt.NDArray[np.bool_]
) -> None:
    """Refuse confidences that separate the outcomes of neighbouring rows, not of their own."""
    for description, outcome_slice, confidence_slice in _row_shifts(len(confidences)):
        area, null_se = auc_with_null_se(confidences[confidence_slice], is_correct[outcome_slice])
        is_shifted = area > 0.5 + _SHIFT_AREA_Z * null_se
        if is_shifted and _separates_within_outcome(
            confidences[confidence_slice], is_correct[outcome_slice], is_correct[confidence_slice]
        ):
            raise JoinError(
                f"the confidences of {model!r} belong to other rows",
                expected="each confidence in the row of its answer",
                found=f"they tell right answers from wrong ones in the row {description} (area"
                f" under the curve {area:.2f}), and not in their own",
                hint="a row was lost or put in: join by an id that names people",
            )


def _separates_within_outcome(
    confidences: FloatArray,
    shifted_outcomes: npt.NDArray[np.bool_],
    own_outcomes: npt.NDArray[np.bool_],
) -> bool:
    """Return whether the association also holds within the own outcome: correct or incorrect."""
    # Within one own outcome: in a sorted file, neighbours are correct together.
    for mask in (own_outcomes, ~own_outcomes):
        if (
            min(int(shifted_outcomes[mask].sum()), int((~shifted_outcomes[mask]).sum()))
            >= _MIN_PER_OUTCOME
        ):
            area, null_se = auc_with_null_se(confidences[mask], shifted_outcomes[mask])
            if area > 0.5 + _MIN_AREA_Z * null_se:
                return True
    return False
