"""Age estimation: errors of estimated ages, and who passes an age check.

A regression in years, with the error at a stated composition of ages and the error rates of a
challenge: people who look younger than the challenge age are asked for a proof of age, so a person
under the legal age who looks old enough passes without one (NIST's Face Analysis Technology
Evaluation, age estimation and verification).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.notes import Caution
from isolux.tasks._numbers.errors import (
    CORRELATIONS,
    EVIDENCE,
    GENG,
    PEARSON,
    caution_on_mismatch,
    error_rows,
    pearson_metric,
    read_errors,
    remove_correlation_unit,
)
from isolux.tasks._scores import read_metrics, restrict_task_info
from isolux.tasks.age_estimation.age_composition import (
    AgeComposition,
    assign_cells,
    read_age_composition,
    standardised_error,
)

NIST = Reference(
    "fate-age-estimation",
    "National Institute of Standards and Technology (2024 to date). Face Analysis Technology "
    "Evaluation (FATE): age estimation and verification.",
    "mean absolute error over sexes and ages 18 to 30; Challenge-25 false positive rate",
    "https://pages.nist.gov/frvt/html/frvt_age_estimation.html",
)
# The longest documented life had 122 years.
_TRUE_AGE_RANGE = (0.0, 122.0)
# Estimates may exceed it: a linear regression can estimate an infant below 0.
_ESTIMATED_AGE_RANGE = (-20.0, 150.0)
_FPR, _FNR = "challenge_false_positive_rate", "challenge_false_negative_rate"
# Errors depend on age, so the error at a stated composition is comparable between groups of
# different ages; the plain mean is not.
_STANDARDISED_ERROR = "standardised_absolute_error"


_years_metric = partial(Metric, direction="lower", high=None, unit="years")
METRICS = (
    _years_metric(
        name="mean_absolute_error",
        title="Mean absolute error",
        definition="Mean distance of the estimated age from the true age.",
        reference=GENG,
    ),
    _years_metric(
        name="bias",
        title="Bias",
        definition="Mean of the estimated minus the true age; positive: estimated too old.",
        direction="none",
        # Signed: opposite errors of young and old people cancel in it.
        low=None,
        reference=GENG,
    ),
    Metric(
        name="share_within",
        title="Share of ages estimated within",
        definition="Share of people whose estimate is within this many years of their age: the "
        "cumulative score.",
        direction="higher",
        reference=GENG,
        threshold_phrase="a distance of",
    ),
    _years_metric(
        name=_STANDARDISED_ERROR,
        title="Mean absolute error at a stated age mix",
        definition="Mean over the cells of a stated mix (ages, or sexes and ages) of the mean "
        "absolute error in each, weighted as stated.",
        reference=NIST,
        evidence=EVIDENCE,
        statistic=standardised_error(),
        # An empty cell is not filled in: its error would have to be guessed.
        undefined="it has nobody in one of the mix's cells",
    ),
    Metric(
        name=_FPR,
        title="Underage people who pass",
        definition="Share of people under the legal age whose estimate is at or above the "
        "challenge age: they pass without a proof of age.",
        in_people="Of {people} under the legal age {n} pass without a proof of age",
        direction="lower",
        reference=NIST,
        # Opposite errors: raising the challenge age lowers one and raises the other.
        threshold_phrase="a challenge age of",
        opposite=_FNR,
        meaning="underage people who pass",
    ),
    Metric(
        name=_FNR,
        title="People of legal age who do not pass",
        definition="Share of people of the legal age or older whose estimate is below the "
        "challenge age: they are asked for a proof of age, or turned away.",
        in_people="Of {people} of legal age {n} are asked for a proof of age",
        direction="lower",
        reference=NIST,
        threshold_phrase="a challenge age of",
        opposite=_FPR,
        meaning="people of legal age who do not pass",
    ),
    pearson_metric("prediction", "truth", "estimated and true age"),
)

INFO = TaskInfo(
    title="Age estimation",
    summary="How far estimated ages are from true ages, and who passes an age check.",
    references=(GENG, NIST, PEARSON),
    assumptions=(
        "True and estimated ages are in years; a person of 17.9 years is under a legal age of 18.",
        "Errors move with age: compare groups at a stated age mix, or within bins of age.",
        "False positives depend on how many of the underage people are just below the legal age.",
    ),
    metrics=METRICS,
    defaults=("mean_absolute_error", "bias", "share_within", _FPR, _FNR),
    predictions="numbers",
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str = "age",
    within: Sequence[float] = (5.0,),
    legal_age: float = 18.0,
    challenge_age: Sequence[float] = (25.0,),
    youngest: float = 0.0,
    age_mix: Sequence[str] = (),
    sex: str | None = None,
    metrics: Sequence[str] = (),
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    model: str | None = None,
) -> Scores:
    """Hold an estimated age of each person against the true one.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances.
    predictions : frame
        ``model, instance_id, value`` (or ``score``), in years; null: no estimate.
    target : str
        The numeric attribute with the true age, in years.
    within : sequence of float
        Distances in years of ``share_within`` (column ``threshold``).
    legal_age : float
        The age from which people are of legal age.
    challenge_age : sequence of float
        The estimates from which a person passes without a proof of age (column ``threshold``): 25
        is Challenge-25.
    youngest : float
        Only people under the legal age from this age on count among those who must not pass: any
        model can tell a child of three from an adult.
    age_mix : sequence of str
        Adds ``standardised_absolute_error``: ``18-30`` gives each year of age the same weight,
        ``0-17=20`` and ``18-64=80`` give weights. Ages outside it do not count there.
    sex : str, optional
        With ``age_mix``: an attribute whose values get equal weight within each age, as in NIST's
        table. People of unknown value, or of several, do not count there.
    metrics : sequence of str
        What to measure. None: all that the settings and the ages allow, but ``pearson``.
    unknown_values : sequence of str
        Ages, and values of ``sex``, that mean "not known", compared without case.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: metrics that are means; ``mean_absolute_error`` and ``bias`` in years. Null with
        the reason "unknown truth", "no prediction", "of legal age", "under the legal age" or
        "younger than those who count". ``evidence["errors"]``: ``model, unit_id, cluster_id, truth,
        prediction, error, absolute_error, reason`` and, with a mix, ``cell, cell_weight``.

    Raises
    ------
    SpecError, UnknownNameError
        A setting that cannot be used, no such attribute, a mix with an age that no one has.
    TableError, JoinError
        Numbers that cannot be read, of no unit of the dataset, or of the people of other rows.

    Examples
    --------
    A person of 17 who is taken for 26 passes at Challenge-25; one of 30 taken for 24 is asked.

    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ...     attributes=pl.DataFrame({"unit_kind": "instance", "unit_id": ["a", "b"],
    ...         "attribute": "age", "value": ["17", "30"], "number": [17.0, 30.0]}),
    ... )
    >>> given = pl.DataFrame({"model": "m", "instance_id": ["a", "b"], "value": [26.0, 24.0]})
    >>> found = score(people, given).units.drop_nulls("value")
    >>> found.filter(metric="challenge_false_positive_rate").select("unit_id", "value").rows()
    [('a', 1.0)]
    """
    # Settings are read first, so that a misspelt one fails before the files are matched.
    composition = read_age_composition(age_mix, sex)
    _check_settings(within, legal_age, challenge_age, youngest)
    requested = read_metrics(INFO, metrics)
    errors, notes = read_errors(dataset, predictions, target, unknown_values, model)
    if composition is not None:
        errors, mix_notes = assign_cells(errors, composition, dataset, unknown_values)
        notes += mix_notes
    names = _select_metrics(requested, errors, composition, (legal_age, youngest))
    mix_text = "" if composition is None else composition.words
    fitted_settings = {
        "age_mix": {"value": mix_text, "metrics": [_STANDARDISED_ERROR], "words": f"({mix_text})"}
    }
    return Scores(
        units=_build_score_rows(errors, names, within, legal_age, challenge_age, youngest),
        info=remove_correlation_unit(restrict_task_info(INFO, names)),
        evidence={EVIDENCE: errors},
        notes=(
            *_caution_on_implausible_ages(errors, target),
            *caution_on_mismatch(errors),
            *notes,
            *_count_by_legal_age(errors, legal_age, youngest),
        ),
        task="age_estimation",
        task_choices=fitted_settings if _STANDARDISED_ERROR in names else {},
    )


def _check_settings(
    tolerances: Sequence[float], legal_age: float, challenge_age: Sequence[float], youngest: float
) -> None:
    """Refuse distances, challenge ages and a youngest age that cannot be used."""
    invalid = [d for d in tolerances if not np.isfinite(d) or d < 0]
    if invalid:
        raise SpecError(
            "share_within needs distances in years",
            expected="--within 5 (within=(5,)): finite numbers of at least 0",
            found=repr(invalid[0]),
        )
    too_low_ages = [t for t in challenge_age if not np.isfinite(t) or t < legal_age]
    if too_low_ages:
        raise SpecError(
            "a challenge age is not below the legal age: everyone between them would pass",
            expected=f"{legal_age:g} or more",
            found=f"{too_low_ages[0]:g}",
            where="challenge_age",
        )
    # At the legal age no one would be under it, and the false positive rate would have no cases.
    if not 0.0 <= youngest < legal_age:
        raise SpecError(
            "youngest is an age below the legal age",
            expected=f"0 or more, below {legal_age:g}",
            found=f"{youngest:g}",
            where="youngest",
        )


def _select_metrics(
    requested: Sequence[str],
    errors: pl.DataFrame,
    composition: AgeComposition | None,
    ages: tuple[float, float],
) -> set[str]:
    """Select the metrics: those requested, or all that can be measured."""
    legal_age, youngest = ages
    age = errors["truth"].drop_nulls()
    # A person of exactly the legal age is of legal age.
    minors, adults = (age < legal_age) & (age >= youngest), age >= legal_age
    unmeasurable = {}
    # Without any case the rate is left out rather than shown as 0.
    if len(age) and not minors.any():
        unmeasurable[_FPR] = (
            f"nobody of {youngest:g} or older is under the legal age of {legal_age:g}"
        )
    if len(age) and not adults.any():
        unmeasurable[_FNR] = f"nobody is of the legal age of {legal_age:g}"
    if composition is None:
        unmeasurable[_STANDARDISED_ERROR] = "no age mix is stated: --age-mix 18-30"
    for name in requested:
        if name in unmeasurable:
            raise SpecError(
                f"the metric {name!r} cannot be measured", found=unmeasurable[name], where="metrics"
            )
    names = set(requested) or {m.name for m in METRICS} - CORRELATIONS
    return names - set(unmeasurable)


def _build_score_rows(
    errors: pl.DataFrame,
    names: set[str],
    tolerances: Sequence[float],
    legal_age: float,
    challenge_age: Sequence[float],
    youngest: float,
) -> pl.DataFrame:
    """Build the rows of all metrics that are means."""
    age, estimate = pl.col("truth"), pl.col("prediction")
    adult_reason = pl.when(age >= legal_age).then(pl.lit("of legal age"))
    # Small children are recognised by any model, and would lower the rate
    # (docs/methods/biometrics.md).
    not_minor_reason = adult_reason.when(age < youngest).then(
        pl.lit("younger than those who count")
    )
    minor_reason = pl.when(age < legal_age).then(pl.lit("under the legal age"))
    checks: dict[tuple[str, float | None], tuple[pl.Expr, pl.Expr]] = {}
    # At or above the challenge age a person passes without a proof of age.
    checks |= {(_FPR, float(t)): (estimate >= t, not_minor_reason) for t in challenge_age}
    checks |= {(_FNR, float(t)): (estimate < t, minor_reason) for t in challenge_age}
    return error_rows(errors, "age_estimation", names, tolerances, checks)


def _caution_on_implausible_ages(errors: pl.DataFrame, target: str) -> list[Caution]:
    """Caution where ages are implausible: below 0, or above the longest documented life."""
    notes = []
    for column, subject, (low, high) in (
        ("truth", f"true {target!r}", _TRUE_AGE_RANGE),
        ("prediction", "estimated age", _ESTIMATED_AGE_RANGE),
    ):
        ages = errors[column].drop_nulls()
        # Months, birth years or codes give errors that look like a bad model.
        implausible = ages.filter((ages < low) | (ages > high))
        text = (
            f"{len(implausible):,} of {len(ages):,} values of the {subject} are below {low:g} or"
            f" above {high:g} years"
        )
        notes += (
            [Caution(f"{text} ({implausible[0]:g}): are they ages in years?")]
            if len(implausible)
            else []
        )
    return notes


def _count_by_legal_age(errors: pl.DataFrame, legal_age: float, youngest: float) -> list[str]:
    """Count the people under and of the legal age, whom a challenge's error rates are about."""
    age = errors.unique("unit_id")["truth"].drop_nulls()
    if age.is_empty():
        return []
    n_minors = int(((age < legal_age) & (age >= youngest)).sum())
    # False positives depend on how many underage people are just below the limit
    # (docs/methods/biometrics.md).
    n_near = int(((age < legal_age) & (age >= legal_age - 2)).sum())
    return [
        f"{n_minors:,} people are under the legal age of {legal_age:g}"
        + (f" and at least {youngest:g}" if youngest else "")
        + f" ({n_near:,} by less than two years), {int((age >= legal_age).sum()):,} are of that"
        " age."
    ]
