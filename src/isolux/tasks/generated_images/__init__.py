"""Generated pictures: of whom a model draws pictures for a prompt, and how sure that is.

A classifier of the user's, or people, judged a perceived attribute of each picture. Shares by
prompt come out, how even they are, and how far from shares that are aimed at. A classifier errs,
and not alike for all: with its confusion matrix the errors are undone, and what is not known of the
matrix is in every interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.stats.confusion import Matrix, doubts_of, read_matrix
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import read_metrics, score_rows, stack_scores
from isolux.tasks._words.mentions import NO_ANSWER, first_texts
from isolux.tasks.generated_images.shares import DISTANCE, ENTROPY, GAP, SHARE, constants
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.info import Metric, Reference, TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES

_OUTSIDE = 0.02
"""How far an undone share may lie outside 0 to 1 before the matrix is doubted."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The values, the matrix and the aim."""

    values: tuple[str, ...]
    matrix: Matrix | None
    aim: FloatArray
    named: tuple[str, ...]


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
    >>> from isolux.vocabulary.info import DatasetInfo
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
    unknown = [word.strip().lower() for word in unknown_values]
    rows = first_texts(people, predictions, model)
    word = pl.col("text").str.strip_chars()
    blank = word.str.to_lowercase().is_in(unknown) | (word == "")
    rows = rows.with_columns(
        said=pl.when(~blank).then(word),
        reason=pl.when(pl.col("text").is_null())
        .then(pl.lit(NO_ANSWER))
        .when(blank)
        .then(pl.lit("not judged")),
    )
    asked = _asked(rows["said"].drop_nulls(), matrix, aim, metrics)
    judged = "judged_share" in asked.named
    parts = [_units(rows, value) for value in asked.values or (None,) if judged]
    kept = tuple(_bounded(m, asked.aim) for m in INFO.metrics if m.name in asked.named)
    return Scores(
        units=stack_scores(parts),
        info=replace(INFO, metrics=kept),
        evidence=_evidence(rows, asked),
        notes=(*_doubts(rows, asked, by_people=by_people), *_told(asked)),
        task="generated_images",
    )


def _asked(
    said: pl.Series, matrix: str | None, aim: Mapping[str, float] | None, metrics: Sequence[str]
) -> _Asked:
    met = sorted(said.unique().to_list())
    read = None
    if matrix is not None:
        read = read_matrix(
            matrix, None, None, without="without a matrix the shares are those of the judgements"
        )
        strange = [value for value in met if value not in read.groups]
        if strange:
            raise SpecError(
                "a picture is judged to be what the confusion matrix does not know",
                expected=", ".join(read.groups),
                found=repr(strange[0]),
                where="matrix",
            )
    _refuse_other_case(met, aim)
    values = tuple(read.groups) if read else tuple(sorted({*met, *(aim or {})}))
    if met and len(values) < 2:
        raise SpecError(
            "all pictures are judged to be of one value",
            expected="two values or more; aim names those that could have been",
            found=repr(values[0]),
        )
    more = (*(("share",) if read else ()), *(("share_beyond_aim",) if aim else ()))
    named = read_metrics(INFO, metrics) or (*more, *INFO.defaults)
    return _Asked(values, read, _aimed(aim, values), named)


def _bounded(metric: Metric, aim: FloatArray) -> Metric:
    """Say how far from the aim shares can be at most: all pictures of the value least aimed at."""
    farthest = 1.0 - float(aim.min(initial=1.0))
    if metric.name != "distance" or not 0.0 < farthest < 1.0:
        return metric
    return replace(metric, high=farthest)


def _refuse_other_case(met: Sequence[str], aim: Mapping[str, float] | None) -> None:
    """Refuse an aim of ``Feminine`` where pictures are ``feminine``: it would be a third value."""
    folded = {value.strip().casefold(): value for value in met}
    for name in aim or {}:
        other = folded.get(name.strip().casefold(), name)
        if other != name and name not in met:
            raise SpecError(
                "an aim is spelt otherwise than the judgements",
                expected=repr(other),
                found=repr(name),
                where="aim",
            )


def _aimed(aim: Mapping[str, float] | None, values: Sequence[str]) -> FloatArray:
    if aim is None:
        return np.full(len(values), 1.0 / max(len(values), 1))
    strange = [name for name in aim if name not in values]
    total = sum(aim.values())
    if strange or min(aim.values()) < 0 or abs(total - 1.0) > 1e-3:
        raise SpecError(
            "the shares aimed at cannot be used",
            expected="shares of " + ", ".join(values) + " that sum to 1",
            found=", ".join(f"{name}={share:g}" for name, share in aim.items()),
            where="aim",
        )
    return np.array([aim.get(value, 0.0) for value in values]) / total


def _units(rows: pl.DataFrame, value: str | None) -> pl.DataFrame:
    judged = pl.col("said") == pl.lit(value, dtype=pl.String)
    return score_rows(rows, "generated_images", "judged_share", judged, label=value)


def _evidence(rows: pl.DataFrame, asked: _Asked) -> dict[str, pl.DataFrame]:
    """Give each picture's judgement with what undoes it: once, and once for each value."""
    place = {value: i for i, value in enumerate(asked.values)}
    code = pl.col("said").replace_strict(place, default=None, return_dtype=pl.Int64)
    exact = asked.matrix is None or asked.matrix.counts is None
    counts = np.eye(len(asked.values))
    if asked.matrix is not None:
        held = asked.matrix.counts
        counts = asked.matrix.share if held is None else held
    bare = rows.select("model", "unit_id", "cluster_id", "reason", "said", judged=code)

    def told(which: int) -> pl.Expr:
        fixed = constants(which, counts, asked.aim, exact=exact)
        return pl.lit(fixed, dtype=pl.List(pl.Float64)).alias("constants")

    of_value = [
        bare.with_columns(told(i), of_label=pl.lit(value)) for i, value in enumerate(asked.values)
    ]
    whole = bare.with_columns(told(0))
    empty = whole.with_columns(of_label=pl.lit(None, dtype=pl.String)).clear()
    return {"pictures": whole, "shares": pl.concat(of_value) if of_value else empty}


def _doubts(rows: pl.DataFrame, asked: _Asked, *, by_people: bool) -> list[str]:
    """Caution where shares are the instrument's, or the matrix is not that of these judgements."""
    if asked.matrix is None:
        text = (
            "These shares are the classifier's: no confusion matrix was given, so its errors "
            "are in every number and in no interval. Judge some pictures by hand and give "
            "--matrix FILE (true, labelled, count), or say --by-people if people judged."
        )
        return [] if by_people or not asked.values else [Caution(text)]
    notes: list[str] = [*doubts_of(asked.matrix)]
    for (model,), part in rows.drop_nulls("said").group_by("model", maintain_order=True):
        share = np.array([(part["said"] == v).mean() for v in asked.values], dtype=np.float64)
        undone = np.linalg.solve(asked.matrix.share.T, share)
        text = (
            f"By the confusion matrix {undone.min():.0%} of the pictures that {model!r} judged"
            f" would be {asked.values[int(undone.argmin())]!r}: it errs otherwise here than where"
            " the matrix was counted. Count it on pictures such as these."
        )
        notes += [Caution(text)] if undone.min() < -_OUTSIDE else []
    return notes


def _told(asked: _Asked) -> tuple[str, ...]:
    if not asked.values:
        return ()
    shares = zip(asked.values, asked.aim, strict=True)
    notes = [f"Distances are to {', '.join(f'{value} {share:.1%}' for value, share in shares)}."]
    matrix = asked.matrix
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


# The metrics of generated pictures, and where they are from.

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
            pooled=False,
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
            pooled=False,
            reference=CHO,
        ),
    ),
    defaults=("judged_share", "entropy", "distance"),
    worse="the pictures for {0} are farther from the aim than those for {1}",
)
