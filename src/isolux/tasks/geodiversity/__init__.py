"""Geodiversity: whether things are recognised in homes of every region and income.

Fairness Indicators' second indicator (Goyal et al. 2022, section 3.2): a photo is a hit if one of
the first five labels is true of it; a home's hit rate is the mean over its photos, a group's the
mean over its homes. The mean over photos (De Vries et al. 2019), where a home counts once for each
of its photos, is measured too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.tables import LABEL_PREDICTIONS, check, to_polars
from isolux.stats.statistic import FloatArray, RankStatistic, WeightedValue
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows, stack_scores
from isolux.tasks._truth import list_truth_values
from isolux.tasks.geodiversity.photos import (
    build_warnings,
    caution_on_invalid_incomes,
    caution_on_missing_predictions,
    join_labels,
    note_homes,
    read_photos,
    score_photos,
)

EVIDENCE = "geodiversity"
"""Name of the evidence table."""
_PAPER = citations.FAIRNESS_INDICATORS.with_location("section 3.2, metrics")
_VRIES = Reference(
    "dollarstreet-recognition",
    "De Vries, T., Misra, I., Wang, C., & van der Maaten, L. (2019). Does object recognition work "
    "for everyone? In CVPR Workshops (pp. 52–59).",
    "hit rate over photos",
    "https://arxiv.org/abs/1906.02659",
)
_MAX_LISTED = 5


def _household_columns(evidence: pl.DataFrame) -> FloatArray:
    """Return household and hit of each photo, ``[n, 2]``; a photo that is not scored is NaN."""
    # Floats, because statistics of ranks take one numeric matrix.
    home = evidence["household"].rank("dense").cast(pl.Float64).to_numpy()
    return np.column_stack([home, evidence["hit"].to_numpy()])


def _mean_over_homes(rows: FloatArray) -> WeightedValue:
    """Average hits within each home, then over homes: ``[m, 2] -> ([m, r] -> [r])``."""
    _, home, n = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
    # A photo's weight is one over the number of its home's photos, so that each home counts once
    # (Goyal et al. 2022, section 3.2).
    share = 1.0 / n[home]

    def weighted_mean(weights: FloatArray, row_index: npt.NDArray[np.int64] | None) -> FloatArray:
        row_weights = weights if row_index is None else weights[row_index]
        numerator, denominator = (rows[:, 1] * share) @ row_weights, share @ row_weights
        means: FloatArray = np.full(np.shape(numerator), np.nan)
        # A replicate may hold none of a small group's homes; its mean is NaN.
        np.divide(numerator, denominator, out=means, where=denominator > 0)
        return means

    return weighted_mean


INFO = TaskInfo(
    title="Geodiversity",
    summary="Whether the first labels of a photo name what it shows, home by home.",
    references=(_PAPER, _VRIES),
    assumptions=(
        "Homes are independent of one another, photos of one home are not.",
        "The labels true of a photo are all that could be right: another right word is a miss.",
        "The classifier was neither trained nor adapted on these photos.",
        "Homes photograph different things: a group's rate also moves with what is in its photos.",
    ),
    metrics=(
        Metric(
            name="household_hit_rate",
            title="Hit rate of homes",
            definition="Mean, over the group's homes, of the share of a home's photos of which one "
            "of the first labels is true.",
            direction="higher",
            evidence=EVIDENCE,
            statistic=RankStatistic(_household_columns, _mean_over_homes),
            reference=_PAPER,
        ),
        Metric(
            name="hit_rate",
            title="Hit rate of photos",
            definition="Share of the group's photos of which one of the first labels is true.",
            in_people="Of {people} the model is right for {n}",
            direction="higher",
            reference=_VRIES,
        ),
    ),
    defaults=("household_hit_rate",),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    top_k: int = 5,
    household: str | None = None,
    prediction_map: Mapping[str, str] | None = None,
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Say of each photo whether one of the first labels is true of it.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, photos of things. Several labels of one are all true; rows of one
        image count once, with all their labels.
    predictions : frame
        Table ``predictions (labels)``, the labels of each photo by rank.
    target : str, optional
        The attribute that says what a photo shows; default: ``classes`` of the instances.
    top_k : int
        How many of the first labels count.
    household : str, optional
        The attribute that names a photo's home. Default: the dataset's own homes, or else the
        clusters of the photos.
    prediction_map : mapping of str to str, optional
        Maps the model's labels to those of the photos; in text ``CLASS=LABEL,LABEL`` or a file. A
        label that is not listed is never right.
    unknown_values : sequence of str
        Truths that mean "not known".
    metrics : sequence of str
        What to measure. Default: ``household_hit_rate``; also ``hit_rate``.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: ``hit_rate``, 1 or 0 for each photo; null with the reason "unknown truth", "no
        prediction", "no home" or "the same photo as another row".
        ``evidence["geodiversity"]``: ``model, unit_id, cluster_id, household, hit, reason``.

    Raises
    ------
    SpecError
        A top_k below 1, no home, no truth, labels of which none is ever true.
    UnknownNameError, TableError, JoinError
        No such metric or attribute; predictions that cannot be read or are of others.

    Examples
    --------
    Home 1 has three photos, one of them a hit; home 2 has one, a hit.

    >>> from isolux.core.info import DatasetInfo
    >>> photos = Dataset(
    ...     name="four photos",
    ...     info=DatasetInfo(title="Four photos", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": list("abcd"), "image_id": list("abcd"),
    ...         "household_id": ["1", "1", "1", "2"], "classes": [["bed"]] * 4}),
    ... )
    >>> labels = pl.DataFrame({"model": "m", "instance_id": list("abcd"), "score": None, "rank": 1,
    ...                        "label": ["bed", "sofa", "sofa", "bed"]})
    >>> found = score(photos, labels, top_k=1, metrics=["household_hit_rate", "hit_rate"])
    >>> found.units["value"].mean()
    0.5
    >>> rate = INFO.metric("household_hit_rate").statistic
    >>> round(float(rate(found.evidence["geodiversity"], np.ones(4))), 3)  # (1/3 + 1) / 2
    0.667
    """
    if isinstance(top_k, bool) or top_k < 1:
        raise SpecError(
            "top_k counts the first labels",
            expected="a whole number of at least 1",
            found=repr(top_k),
        )
    names = read_metrics(INFO, metrics) or INFO.defaults
    photos = read_photos(dataset, target, unknown_values, household)
    table = check(to_polars(predictions), LABEL_PREDICTIONS, source="predictions")
    label_rows = join_labels(table, photos)
    if prediction_map is not None:
        # A label outside the map can be no hit, but still takes one of the first k places.
        mapped_label = pl.col("label").replace_strict(
            dict(prediction_map), default=None, return_dtype=pl.String
        )
        label_rows = label_rows.with_columns(label=mapped_label)
    _refuse_unmatched_labels(label_rows["label"], list_truth_values(dataset, target))
    models = sorted(table["model"].unique()) or [model or "model"]
    outcomes = score_photos(photos, label_rows, models, top_k)
    rows = score_rows(outcomes, "geodiversity", "hit_rate", pl.col("hit"))
    return Scores(
        units=stack_scores([rows] if "hit_rate" in names else []),
        info=restrict_task_info(INFO, names),
        evidence={EVIDENCE: outcomes},
        notes=(
            *caution_on_invalid_incomes(dataset),
            *build_warnings(outcomes, photos, label_rows, top_k),
            *(() if "hit_rate" in names else caution_on_missing_predictions(outcomes)),
            *note_homes(outcomes),
        ),
        task="geodiversity",
    )


def _refuse_unmatched_labels(labels: pl.Series, truth: pl.Series) -> None:
    """Refuse predictions of which no label is true of any photo: every rate would be 0."""
    known_labels = labels.drop_nulls()
    if len(known_labels) and len(truth) and not known_labels.is_in(truth.implode()).any():
        examples = known_labels.value_counts(sort=True).head(_MAX_LISTED)[known_labels.name]
        raise SpecError(
            "no label of the predictions is true of any photo: every hit rate would be 0",
            expected="labels such as " + ", ".join(map(repr, truth.sort().head(_MAX_LISTED))),
            found="labels such as " + ", ".join(map(repr, examples)),
            hint="--prediction-map FILE brings the model's labels to those of the photos",
        )
