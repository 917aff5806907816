"""Generated images: which groups appear in the images of a prompt, with the uncertainty.

A classifier of the user, or people, labelled a perceived attribute of each image. The results are
shares by prompt, their evenness, and their distance to target shares. A classifier makes errors,
more for some groups than others: its confusion matrix corrects them, and the uncertainty of the
matrix is part of every interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.stats.confusion import (
    ConfusionMatrix,
    caution_if_labels_look_swapped,
    read_confusion_matrix,
)
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._word_lists.mentions import NO_PREDICTION, select_first_texts
from isolux.tasks.generated_images.shares import DISTANCE, ENTROPY, GAP, SHARE, row_constants

_MAX_EXCESS_SHARE = 0.02
"""How far a corrected share may lie outside 0 to 1 before a caution doubts the matrix."""


@dataclass(frozen=True, slots=True)
class _TargetShares:
    """The values, the confusion matrix, the target shares and the metrics to measure."""

    values: tuple[str, ...]
    matrix: ConfusionMatrix | None
    target_shares: FloatArray
    metric_names: tuple[str, ...]


def score(
    dataset: Dataset,
    predictions: object,
    *,
    matrix: str | None = None,
    by_people: bool = False,
    aim: Mapping[str, float] | None = None,
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Count of whom pictures are, by an instrument's judgement, and undo its errors.

    Parameters
    ----------
    dataset : Dataset
        Its instances are the pictures; the prompt is an attribute of them (``--by prompt``, or
        ``--by class`` of a folder of pictures a prompt).
    predictions : frame
        ``model, instance_id, label``: the value that a classifier, or people, gave each picture.
        ``model`` is who judged.
    matrix : str, optional
        A file of cases whose true value is known: ``true, labelled, count``. Shares are then those
        of the pictures, not of the judgements, and intervals include the uncertainty of the counts.
        With
        a column ``share`` in place of ``count`` the matrix is taken as exact.
    by_people : bool
        Whether people judged the pictures, so that no matrix is needed.
    aim : mapping of str to float, optional
        The intended shares, which sum to 1; default: equal shares.
    unknown_values : sequence of str
        Judgements that mean "not known", compared without case.
    metrics : sequence of str
        Default: ``judged_share``, ``entropy``, ``distance``, with a matrix ``share``, with an aim
        ``share_beyond_aim``.
    model : str, optional
        What to call the instrument if there is no judgement to say so.

    Returns
    -------
    Scores
        ``units``: ``judged_share``, 0 or 1 for each picture and value (column ``label``); null with
        the reason "no prediction" or "not judged". ``evidence["shares"]``, ``["pictures"]``: the
        judgements, with the matrix and the aim, for the other metrics.

    Raises
    ------
    SpecError, TableError, FileError
        A matrix that cannot be read or undone, or lacks a value; an aim that does not sum to 1.
    UnknownNameError, JoinError
        Judgements that cannot be read, or of other pictures.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> pictures = Dataset(
    ...     name="four pictures",
    ...     info=DatasetInfo(title="Four pictures", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": list("abcd"), "image_id": list("abcd")}),
    ... )
    >>> judged = pl.DataFrame({"model": "net", "instance_id": list("abcd"),
    ...                        "label": ["man", "man", "man", "woman"]})
    >>> score(pictures, judged).units.filter(label="man")["value"].to_list()
    [1.0, 1.0, 1.0, 0.0]
    """
    people = INSTANCES.conform(dataset.instances).select(
        unit_id="instance_id", cluster_id="cluster_id"
    )
    unknown = [judgement.strip().lower() for judgement in unknown_values]
    rows = select_first_texts(people, predictions, model)
    judgement = pl.col("text").str.strip_chars()
    is_unknown = judgement.str.to_lowercase().is_in(unknown) | (judgement == "")
    rows = rows.with_columns(
        said=pl.when(~is_unknown).then(judgement),
        reason=pl.when(pl.col("text").is_null())
        .then(pl.lit(NO_PREDICTION))
        # An image that could not be labelled is in no share; as a value, it would lower all others.
        .when(is_unknown)
        .then(pl.lit("not judged")),
    )
    targets = _read_target_shares(rows["said"].drop_nulls(), matrix, aim, metrics)
    has_judged_share = "judged_share" in targets.metric_names
    tables = [
        _judged_share_rows(rows, attribute_value)
        for attribute_value in targets.values or (None,)
        if has_judged_share
    ]
    selected_metrics = tuple(
        _limit_distance(m, targets.target_shares)
        for m in INFO.metrics
        if m.name in targets.metric_names
    )
    return Scores(
        units=stack_scores(tables),
        info=replace(INFO, metrics=selected_metrics),
        evidence=_build_evidence(rows, targets),
        notes=(*_build_warnings(rows, targets, by_people=by_people), *_note_settings(targets)),
        task="generated_images",
    )


def _read_target_shares(
    judgements: pl.Series,
    matrix: str | None,
    aim: Mapping[str, float] | None,
    metrics: Sequence[str],
) -> _TargetShares:
    """Read the matrix and the target shares; refuse values that they do not have."""
    judged_values = sorted(judgements.unique().to_list())
    confusion = None
    if matrix is not None:
        confusion = read_confusion_matrix(
            matrix,
            None,
            None,
            alternative="without a matrix the shares are those of the judgements",
        )
        # A label that the matrix does not have cannot be corrected.
        unmatched_values = [
            judged_value for judged_value in judged_values if judged_value not in confusion.groups
        ]
        if unmatched_values:
            raise SpecError(
                "a picture is judged to be what the confusion matrix does not know",
                expected=", ".join(confusion.groups),
                found=repr(unmatched_values[0]),
                where="matrix",
            )
    _refuse_other_case(judged_values, aim)
    # Values of the target shares count even where no image has them: their absence is a result.
    values = tuple(confusion.groups) if confusion else tuple(sorted({*judged_values, *(aim or {})}))
    # The entropy of a single value is 0 / log 1.
    if judged_values and len(values) < 2:
        raise SpecError(
            "all pictures are judged to be of one value",
            expected="two values or more; aim names those that could have been",
            found=repr(values[0]),
        )
    extra_metrics = (*(("share",) if confusion else ()), *(("share_beyond_aim",) if aim else ()))
    metric_names = read_metrics(INFO, metrics) or (*extra_metrics, *INFO.defaults)
    return _TargetShares(values, confusion, _target_vector(aim, values), metric_names)


def _limit_distance(metric: Metric, aim: FloatArray) -> Metric:
    """Set the maximum of ``distance``: all images of the value with the smallest target."""
    # Total variation is largest where all images have the value with the smallest target.
    max_distance = 1.0 - float(aim.min(initial=1.0))
    if metric.name != "distance" or not 0.0 < max_distance < 1.0:
        return metric
    return replace(metric, high=max_distance)


def _refuse_other_case(judged_values: Sequence[str], aim: Mapping[str, float] | None) -> None:
    """Refuse a target that differs from a label in case only: it would be a third value."""
    value_by_folded_name = {
        judged_value.strip().casefold(): judged_value for judged_value in judged_values
    }
    for name in aim or {}:
        expected_spelling = value_by_folded_name.get(name.strip().casefold(), name)
        if expected_spelling != name and name not in judged_values:
            raise SpecError(
                "an aim is spelt otherwise than the judgements",
                expected=repr(expected_spelling),
                found=repr(name),
                where="aim",
            )


def _target_vector(aim: Mapping[str, float] | None, values: Sequence[str]) -> FloatArray:
    """Return the target shares in the order of the values; equal ones by default."""
    if aim is None:
        # Equal shares are the reference of Cho et al. (section 4.2).
        return np.full(len(values), 1.0 / max(len(values), 1))
    unmatched_values = [name for name in aim if name not in values]
    total = sum(aim.values())
    # Rounded shares such as 0.333 three times are accepted, and rescaled below.
    if unmatched_values or min(aim.values()) < 0 or abs(total - 1.0) > 1e-3:
        raise SpecError(
            "the shares aimed at cannot be used",
            expected="shares of " + ", ".join(values) + " that sum to 1",
            found=", ".join(f"{name}={share:g}" for name, share in aim.items()),
            where="aim",
        )
    return np.array([aim.get(attribute_value, 0.0) for attribute_value in values]) / total


def _judged_share_rows(rows: pl.DataFrame, attribute_value: str | None) -> pl.DataFrame:
    is_judged = pl.col("said") == pl.lit(attribute_value, dtype=pl.String)
    return score_rows(rows, "generated_images", "judged_share", is_judged, label=attribute_value)


def _build_evidence(rows: pl.DataFrame, targets: _TargetShares) -> dict[str, pl.DataFrame]:
    """Build the evidence: each image's label and constants, once, and once for each value."""
    index_by_value = {attribute_value: i for i, attribute_value in enumerate(targets.values)}
    code = pl.col("said").replace_strict(index_by_value, default=None, return_dtype=pl.Int64)
    # Without counts nothing is known about the precision of the matrix.
    is_exact = targets.matrix is None or targets.matrix.counts is None
    # The identity: labels are taken as they are.
    counts = np.eye(len(targets.values))
    if targets.matrix is not None:
        matrix_counts = targets.matrix.counts
        counts = targets.matrix.share if matrix_counts is None else matrix_counts
    base_rows = rows.select("model", "unit_id", "cluster_id", "reason", "said", judged=code)

    def constants_column(value_index: int) -> pl.Expr:
        row_values = row_constants(value_index, counts, targets.target_shares, exact=is_exact)
        return pl.lit(row_values, dtype=pl.List(pl.Float64)).alias("constants")

    of_value = [
        base_rows.with_columns(constants_column(i), of_label=pl.lit(attribute_value))
        for i, attribute_value in enumerate(targets.values)
    ]
    picture_rows = base_rows.with_columns(constants_column(0))
    empty = picture_rows.with_columns(of_label=pl.lit(None, dtype=pl.String)).clear()
    return {"pictures": picture_rows, "shares": pl.concat(of_value) if of_value else empty}


def _build_warnings(rows: pl.DataFrame, targets: _TargetShares, *, by_people: bool) -> list[str]:
    """Caution where shares are uncorrected, or the matrix does not fit these judgements."""
    if targets.matrix is None:
        text = (
            "These shares are the classifier's: no confusion matrix was given, so its errors "
            "are in every number and in no interval. Judge some pictures by hand and give "
            "--matrix FILE (true, labelled, count), or say --by-people if people judged."
        )
        # People's labels have errors too, but there is rarely a confusion matrix of them.
        return [] if by_people or not targets.values else [Caution(text)]
    notes: list[str] = [*caution_if_labels_look_swapped(targets.matrix)]
    for (model,), model_rows in rows.drop_nulls("said").group_by("model", maintain_order=True):
        share = np.array(
            [(model_rows["said"] == v).mean() for v in targets.values], dtype=np.float64
        )
        # A negative corrected share means that the matrix was counted on other images.
        corrected = np.linalg.solve(targets.matrix.share.T, share)
        text = (
            f"By the confusion matrix {corrected.min():.0%} of the pictures that {model!r} judged"
            f" would be {targets.values[int(corrected.argmin())]!r}: it errs otherwise here than"
            " where the matrix was counted. Count it on pictures such as these."
        )
        notes += [Caution(text)] if corrected.min() < -_MAX_EXCESS_SHARE else []
    return notes


def _note_settings(targets: _TargetShares) -> tuple[str, ...]:
    if not targets.values:
        return ()
    shares = zip(targets.values, targets.target_shares, strict=True)
    share_list = ", ".join(f"{attribute_value} {share:.1%}" for attribute_value, share in shares)
    notes = [f"Distances are to {share_list}."]
    matrix = targets.matrix
    if matrix is not None and matrix.counts is not None:
        totals = zip(matrix.groups, matrix.counts.sum(axis=1), strict=True)
        n = ", ".join(f"{int(total):,} {name}" for name, total in totals)
        notes.append(
            f"The classifier's errors are undone by a matrix counted on {n}; what these leave open "
            "is in every interval. It is taken to err here as it did there."
        )
    elif matrix is not None:
        notes.append("The confusion matrix has shares and no counts: intervals take it as exact.")
    return tuple(notes)


# The metrics of generated images, and where they are from.

GREENLAND = Reference(
    "greenland-1988",
    "Greenland, S. (1988). Variance estimation for epidemiologic effect estimates under "
    "misclassification. Statistics in Medicine 7(7), 745-757.",
    "the matrix method",
    "https://doi.org/10.1002/sim.4780070704",
)
BIANCHI = Reference(
    "bianchi-2023",
    "Bianchi, F., Kalluri, P., Durmus, E., Ladhak, F., Cheng, M., Nozza, D., Hashimoto, T., "
    "Jurafsky, D., Zou, J., & Caliskan, A. (2023). Easily accessible text-to-image generation "
    "amplifies demographic stereotypes at large scale. In Proceedings of FAccT 2023.",
    "shares of perceived groups by prompt",
    "https://arxiv.org/abs/2211.03759",
)
CHO = Reference(
    "dall-eval",
    "Cho, J., Zala, A., & Bansal, M. (2023). DALL-Eval: Probing the reasoning skills and social "
    "biases of text-to-image generation models. In Proceedings of ICCV 2023.",
    "section 4.2: distance to a uniform distribution",
    "https://arxiv.org/abs/2202.04053",
)

INFO = TaskInfo(
    title="Generated pictures",
    summary=(
        "Who appears in the pictures that a model generates for a prompt, corrected for the "
        "judge's errors."
    ),
    references=(GREENLAND, BIANCHI, CHO),
    assumptions=(
        "This judges how a generated person is perceived; nobody actually belongs to that group.",
        "The classifier errs here as it did where its matrix was counted, whatever the prompt.",
        "Pictures of a prompt are independent of one another, or clusters say which are not.",
    ),
    metrics=(
        Metric(
            name="share",
            title="Share of pictures",
            definition="Share of pictures of that value, the classifier's errors undone.",
            direction="none",
            evidence="shares",
            statistic=SHARE,
            reference=GREENLAND,
        ),
        Metric(
            name="share_beyond_aim",
            title="Share beyond the aim",
            definition="Share of pictures of that value minus the intended share.",
            direction="none",
            low=-1.0,
            evidence="shares",
            statistic=GAP,
            reference=CHO,
        ),
        Metric(
            name="judged_share",
            title="Share of judgements",
            definition="Share of pictures that were judged to be of that value, errors and all.",
            direction="none",
            reference=BIANCHI,
        ),
        Metric(
            name="entropy",
            title="Evenness of shares",
            definition="Entropy of the shares over that of equal ones: 1 where all values are as "
            "often, 0 where all pictures are of one.",
            direction="none",
            evidence="pictures",
            statistic=ENTROPY,
            # Shares of everyone are a mixture, whose entropy may be higher than that of every
            # group.
            has_overall_among_groups=False,
            reference=BIANCHI,
        ),
        Metric(
            name="distance",
            title="Distance to the aim",
            definition="Half the sum of differences between shares and those aimed at: the share "
            "of pictures that would have to be of another value. Above 0 by chance alone.",
            direction="lower",
            high=None,
            evidence="pictures",
            statistic=DISTANCE,
            has_overall_among_groups=False,
            reference=CHO,
        ),
    ),
    defaults=("judged_share", "entropy", "distance"),
    worse_phrase="the pictures for {0} are farther from the aim than those for {1}",
)
