"""Thresholds: the sample that one is set on, leakage from it, and whether it divides the scores."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.stats.roc import weighted_roc_auc
from isolux.stats.statistic import FloatArray


def select_threshold_sample(
    threshold_on: float | str, dataset: Dataset, units: pl.DataFrame, seed: int
) -> tuple[npt.NDArray[np.bool_], str]:
    """Select the people that the threshold is set on, and describe them: a mask [n] and text."""
    # A threshold that is set and evaluated on the same people makes rates look too good.
    in_sample, description = _threshold_mask(threshold_on, dataset, units, seed)
    if in_sample.all() or not in_sample.any():
        raise SpecError(
            "threshold_on must leave people on either side",
            expected="some to set the threshold on, and others to audit",
            found=f"{'everyone' if in_sample.all() else 'no one'} to set it on ({description})",
        )
    return in_sample, description


def _threshold_mask(
    threshold_on: float | str, dataset: Dataset, units: pl.DataFrame, seed: int
) -> tuple[npt.NDArray[np.bool_], str]:
    """Sample a share of clusters, or select the people with an attribute's value."""
    share = parse_number(str(threshold_on))
    # A random share samples whole clusters, so that no person is on both sides.
    if 0.0 < share < 1.0:
        clusters = pl.coalesce("cluster_id", pl.col("unit_id"))
        # Ranks of sorted names, so that the sample does not depend on the order of rows.
        code = units.select(clusters.rank("dense")).to_series().to_numpy().astype(np.int64) - 1
        is_sampled = np.random.default_rng(seed).random(int(code.max(initial=0)) + 1) < share
        return is_sampled[code], f"a random {100 * share:g} % (seed {seed})"
    in_sample, description = select_by_value(
        str(threshold_on),
        dataset,
        units["unit_id"],
        setting="threshold_on",
        expected="ATTRIBUTE=VALUE, such as split=val, or a share such as 0.3",
    )
    name, _, attribute_value = description.partition("=")
    rows = dataset.instance_attributes().filter(attribute=name)
    # A person with split=val and split=test would be on both sides.
    values_by_unit = rows.drop_nulls("value").group_by("unit_id").agg(pl.col("value").unique())
    ambiguous_ids = values_by_unit.filter(pl.col("value").list.len() > 1)["unit_id"]
    ambiguous_in_sample = units.filter(
        pl.Series(in_sample), pl.col("unit_id").is_in(ambiguous_ids.implode())
    )["unit_id"]
    if len(ambiguous_in_sample):
        raise SpecError(
            f"{len(ambiguous_in_sample):,} people have other values of {name!r} beside"
            f" {attribute_value!r}",
            expected="one value each: people set the threshold, or are judged",
            found=f"{ambiguous_in_sample[0]!r} has several",
            where="threshold_on",
        )
    return in_sample, description


def select_by_value(
    text: str, dataset: Dataset, unit_ids: pl.Series, *, setting: str, expected: str
) -> tuple[npt.NDArray[np.bool_], str]:
    """Select the people with the value of a setting ``ATTRIBUTE=VALUE``: a mask [n] and text."""
    name, equals, attribute_value = text.partition("=")
    name, attribute_value = name.strip(), attribute_value.strip()
    if not equals or not name or not attribute_value:
        raise SpecError(f"{setting} cannot be used", expected=expected, found=repr(text))
    rows = dataset.values_of(name)
    known_values = rows["value"].drop_nulls().unique().sort().to_list()
    # A misspelt value would select no one, and every person would be evaluated.
    if attribute_value not in known_values:
        raise SpecError(
            f"nobody has {name}={attribute_value}",
            expected="one of " + ", ".join(map(repr, known_values[:20])),
            found=repr(attribute_value),
            where=setting,
        )
    matching_ids = dataset.instance_attributes().filter(attribute=name, value=attribute_value)[
        "unit_id"
    ]
    return unit_ids.is_in(matching_ids.unique().implode()).to_numpy(), f"{name}={attribute_value}"


def parse_number(text: str) -> float:
    """Parse a number; NaN where the text is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


# Names of attributes that identify people: the same value on both sides is the same person.
_PERSON_ATTRIBUTE = re.compile(
    r"(?i)(subject|person|participant|patient|identity|household|family)([_ ]?id)?"
)
_LEAKAGE_ADVICE = "so rates look better than on others. Split by subject, not by row"
# Scores identify rows where at least this share of them is distinct.
_MIN_DISTINCT_SHARE = 0.9
# A caution from this share of evaluated people whose scores also occur in the threshold sample.
_MAX_SHARED_SHARE = 0.1
# With fewer people on either side, equal scores and different rates occur by chance.
_MIN_PEOPLE = 20
# Rates differ beyond chance from this many standard errors, and by more than two splits of one
# population may from this log odds ratio.
_MIN_STANDARD_ERRORS = 4.0
_MIN_LOG_ODDS_RATIO = 1.0
# Two missing ids are not the same person.
_MISSING_IDS = ("", "-", "unknown", "none", "null", "nan", "n/a", "na")
_PERSON_COLUMNS = {
    "subject_id": "a subject",
    "cluster_id": "a cluster",
    "image_id": "a picture",
}


def caution_on_leakage(
    dataset: Dataset, instances: pl.DataFrame, in_sample: npt.NDArray[np.bool_], source: str
) -> list[Caution]:
    """Caution where a subject, a household or an image is both evaluated and in the sample.

    Shapes: ``in_sample`` [n].
    """
    membership = pl.DataFrame({"who": instances["unit_id"], "on": in_sample})
    overlaps = []
    for name, ids in _list_id_tables(dataset):
        matched = membership.join(ids, on="who").drop_nulls("id")
        is_split = pl.col("on").any() & (~pl.col("on")).any()
        shared_rows = matched.filter(is_split.over("id"))
        if shared_rows.height:
            n_evaluated = shared_rows.filter(~pl.col("on"))["who"].n_unique()
            overlaps.append((n_evaluated, shared_rows["id"].n_unique(), name))
    if not overlaps:
        return []
    # Only the id that most people share is reported: a subject's images share an image id, too.
    people, shared_ids, name = max(overlaps)
    text = (
        f"{people:,} of {int((~in_sample).sum()):,} people judged share {name} with a row that the"
        f" threshold was set on ({shared_ids:,} on both sides of {source}), {_LEAKAGE_ADVICE}."
    )
    return [Caution(text)]


def _list_id_tables(dataset: Dataset) -> list[tuple[str, pl.DataFrame]]:
    """List the ids that two rows may share: a name and a table ``who, id`` for each."""
    people = INSTANCES.conform(dataset.instances)
    tables = [
        (words, people.select(who="instance_id", id=pl.col(column).cast(pl.String)))
        for column, words in _PERSON_COLUMNS.items()
    ]
    rows = dataset.instance_attributes()
    has_value = ~pl.col("value").str.strip_chars().str.to_lowercase().is_in(_MISSING_IDS)
    for name in rows["attribute"].unique(maintain_order=True):
        if _PERSON_ATTRIBUTE.fullmatch(name):
            attribute_rows = rows.filter((pl.col("attribute") == name) & has_value)
            tables.append((f"their {name!r}", attribute_rows.select(who="unit_id", id="value")))
    return tables


def caution_on_repeated_scores(
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    in_sample: npt.NDArray[np.bool_],
    model: str,
) -> list[Caution]:
    """Caution where scores that identify rows occur on both sides: the same rows, twice.

    Shapes: ``scores`` [n], ``positive, in_sample`` [n].

    Examples
    --------
    >>> scores, side = np.arange(100) / 7, np.arange(200) % 2 == 1
    >>> twice, positive = np.repeat(scores, 2), np.ones(200, dtype=bool)
    >>> print(caution_on_repeated_scores(twice, positive, side, "m")[0][:78])
    100 of 100 people judged have the very score of 'm' and the class of a row tha
    >>> caution_on_repeated_scores(np.arange(200) / 7, positive, side, "m")
    []
    """
    frame = pl.DataFrame({"score": scores, "of": positive, "on": in_sample}).filter(
        ~np.isnan(scores)
    )
    samples = evaluated, threshold_rows = frame.filter(~pl.col("on")), frame.filter("on")
    # Scores of few distinct values (percents) repeat without being the same rows.
    if any(sample.height < _MIN_PEOPLE for sample in samples) or any(
        sample["score"].n_unique() < _MIN_DISTINCT_SHARE * sample.height for sample in samples
    ):
        return []
    # The class is compared as well, because different people may have an equal score by chance.
    n_repeated = evaluated.join(threshold_rows, on=["score", "of"], how="semi").height
    text = (
        f"{n_repeated:,} of {evaluated.height:,} people judged have the very score of {model!r} and"
        " the class of a row that the threshold was set on. Are they the same people? If so, rates"
        " look better than on others."
    )
    return [Caution(text)] if n_repeated >= _MAX_SHARED_SHARE * evaluated.height else []


def caution_on_rate_difference(
    is_reached: npt.NDArray[np.bool_],
    in_sample: npt.NDArray[np.bool_],
    *,
    subject: str,
    source: str,
    model: str,
) -> list[Caution]:
    """Caution where far more, or far fewer, reach the threshold than in its own sample.

    Shapes: ``reached, in_sample`` [m].

    Examples
    --------
    >>> on = np.arange(400) < 200
    >>> reached = (np.arange(400) % 10 == 0) & on
    >>> print(caution_on_rate_difference(
    ...     reached,
    ...     on,
    ...     subject="people",
    ...     source="split=val",
    ...     model="m",
    ... )[0][:75])
    Of the 200 people by which the threshold of 'm' was set (split=val) 10.0 %
    >>> caution_on_rate_difference(
    ...     np.arange(400) % 10 == 0,
    ...     on,
    ...     subject="people",
    ...     source="split=val",
    ...     model="m",
    ... )
    []
    """
    n, m = int(in_sample.sum()), int((~in_sample).sum())
    if min(n, m) < _MIN_PEOPLE:
        return []
    a, b = int(is_reached[in_sample].sum()), int(is_reached[~in_sample].sum())
    # Half a person is added to each count, so that odds of 0 have a logarithm.
    log_odds = [np.log((k + 0.5) / (size - k + 0.5)) for k, size in ((a, n), (b, m))]
    share = (a + b) / (n + m)
    # Pooled, as in the z test of two proportions.
    standard_error = (share * (1.0 - share) * (1.0 / n + 1.0 / m)) ** 0.5
    text = (
        f"Of the {n:,} {subject} by which the threshold of {model!r} was set ({source})"
        f" {100 * a / n:.1f} % reach it, and of the {m:,} that are judged {100 * b / m:.1f} %:"
        " more than chance explains. Are all scores of one model, on one scale?"
    )
    # Both are needed: in large samples a tiny difference is significant, in small ones a large one
    # is not.
    is_different = (
        abs(log_odds[0] - log_odds[1]) >= _MIN_LOG_ODDS_RATIO
        and abs(a / n - b / m) > _MIN_STANDARD_ERRORS * standard_error
    )
    return [Caution(text)] if is_different else []


def auc_with_null_se(scores: FloatArray, is_positive: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Compute the area under the curve, and its standard error if scores were uninformative."""
    p, q = int(is_positive.sum()), int((~is_positive).sum())
    area = float(weighted_roc_auc(scores, is_positive, np.ones(len(scores))))
    # The variance of the Mann-Whitney statistic under the null hypothesis.
    return area, float(np.sqrt((p + q + 1) / (12.0 * p * q)))


def caution_on_constant_outcome(
    model: str,
    scores: FloatArray,
    threshold: float,
    *,
    none_phrase: str,
    all_phrase: str,
    passes_below: bool = False,
    question: str = "Is the threshold on the scale of the scores?",
) -> list[Caution]:
    """Caution where no score, or every score, reaches the threshold: it decides nothing.

    Shapes: ``scores`` [m].

    Examples
    --------
    >>> (said,) = caution_on_constant_outcome(
    ...     "m",
    ...     np.array([0.1, 0.9]),
    ...     50.0,
    ...     none_phrase="no answer is 'yes'",
    ...     all_phrase="every answer is 'yes'",
    ... )
    >>> print(said.removesuffix(" Is the threshold on the scale of the scores?"))
    No score of 'm' reaches the threshold of 50: scores run from 0.1 to 0.9, so no answer is 'yes'.
    >>> caution_on_constant_outcome("m", np.array([0.1, 0.9]), 0.5, none_phrase="", all_phrase="")
    []
    """
    valid_scores = scores[~np.isnan(scores)]
    is_reached = valid_scores <= threshold if passes_below else valid_scores >= threshold
    # With a threshold on another scale (50 for scores up to 1) all rates are 0 or 1 in every group,
    # which reads as no difference.
    if not len(valid_scores) or (is_reached.any() and not is_reached.all()):
        return []
    low = f"{valid_scores.min():g}"
    high = f"{valid_scores.max():g}"
    threshold_text = f"{threshold:g}"
    if threshold_text in (low, high):  # just beyond an extreme: print enough digits to differ
        threshold_text = repr(float(threshold))
    subject, consequence = (
        ("Every score", all_phrase) if is_reached.any() else ("No score", none_phrase)
    )
    text = (
        f"{subject} of {model!r} reaches the threshold of {threshold_text}: scores run from {low}"
        f" to {high}"
    )
    return [Caution(f"{text}, so {consequence}. {question}")]
