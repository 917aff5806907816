"""Agreement of annotators: whether annotators of the same items gave the same answers.

Items represent the people in them, so agreement is measured by group of the people, and within
groups of annotators (which the column ``model`` names).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import to_polars
from isolux.stats.agreement import (
    MAX_ORDINAL_VALUES,
    MAX_VALUES,
    Scale,
    count_labels_by_item,
)
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import read_metrics, restrict_task_info, score_rows, stack_scores
from isolux.tasks.agreement.answers import (
    check_single_answers,
    collect_by_item,
    group_annotators,
    read_answers,
    select_annotators,
)
from isolux.tasks.agreement.metrics import (
    EVIDENCE,
    METRICS,
    NOMINAL_KAPPAS,
    REFERENCES,
    SCALED_METRICS,
    WEIGHTED_KAPPAS,
)

INFO = TaskInfo(
    title="Agreement of annotators",
    summary="Whether annotators of the same item give the same answer, beyond chance.",
    references=REFERENCES,
    assumptions=(
        "Annotators answer on their own: who sees another's answer agrees with it more.",
        "Agreement does not mean truth: annotators who share a mistake agree.",
        "Beyond chance depends on how common answers are in a group; see the pairs that agree too.",
    ),
    metrics=METRICS,
    defaults=("alpha_nominal", "pairwise_agreement"),
    predictions="outputs",
    worse_phrase="annotators agree less about {0} than about {1}",
)
# Where this share of the answers is one of several by an annotator for an item, answers are sets.
_MIN_SET_SHARE = 0.5
_EVIDENCE_COLUMNS = ("codes", "numbers", "positions")
# Answers such as 2.1 and 1.1 are one apart, but for rounding.
_MAX_STEP = 1.0 + 1e-9


def score(
    dataset: Dataset,
    predictions: object,
    *,
    scale: Scale = "nominal",
    annotators_by: str | None = None,
    only_annotators: Sequence[str] = (),
    ignored_answers: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> Scores:
    """Compare the answers that several annotators gave about the same items.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, the items that were judged.
    predictions : frame
        ``instance_id, annotator, label``, one row an answer; an empty one is none. Other columns
        say something of the annotators.
    scale : {"nominal", "ordinal", "interval"}
        The distance between two answers: same or not; the number of answers between them; their
        difference. The last two need numbers.
    annotators_by : str, optional
        The column that groups the annotators: agreement is also measured within each group.
    only_annotators : sequence of str
        The annotators whose answers count, by name: two of three for Cohen's kappa. None: all.
    ignored_answers : sequence of str
        Answers that do not count ("cannot tell"), compared without case. Default: every word is an
        answer like any other.
    metrics : sequence of str
        What to measure. None: alpha of the scale and ``pairwise_agreement``; where an annotator
        gave several answers about an item, ``mean_jaccard``. ``cohen_kappa`` and ``fleiss_kappa``
        are of names; the weighted kappas and ``within_one`` of numbers.

    Returns
    -------
    Scores
        ``units``: ``pairwise_agreement``, ``unanimity_rate`` and ``mean_jaccard`` of each item, 0
        to 1; null with the reason "fewer than two answers". ``model`` names the annotators: all of
        them, or ``region: Asia``. ``evidence["answers"]``: ``model, unit_id, cluster_id, codes,
        numbers, positions`` (on an ordinal scale the codes), each item's answers as lists, for the
        metrics beyond chance.

    Raises
    ------
    SpecError
        A metric that the answers do not allow: several answers of one annotator, items with
        different numbers of answers (Fleiss' kappa), not two annotators (Cohen's).
    UnknownNameError, TableError, JoinError
        No such column or metric; answers of no item, or that are no numbers.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> items = Dataset(
    ...     name="two photos",
    ...     info=DatasetInfo(title="Two photos", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["a", "b"]}),
    ... )
    >>> said = pl.DataFrame({"instance_id": list("aabb"), "annotator": list("xyxy"),
    ...                      "label": ["adult", "adult", "adult", "child"]})
    >>> score(items, said).units.select("unit_id", "metric", "value").rows()
    [('a', 'pairwise_agreement', 1.0), ('b', 'pairwise_agreement', 0.0)]
    """
    item_ids = dataset.instances["instance_id"].cast(pl.String)
    ignored_words = (
        (ignored_answers,) if isinstance(ignored_answers, str) else tuple(ignored_answers)
    )
    rows, notes = read_answers(to_polars(predictions), item_ids, ignored_words)
    rows = select_annotators(rows, only_annotators)
    requested = read_metrics(INFO, metrics)
    names = _select_metrics(rows, scale, requested)
    # Only the Jaccard index allows several answers of one annotator.
    if set(names) - {"mean_jaccard"}:
        check_single_answers(rows)
    grouped_rows, group_notes = group_annotators(rows, annotators_by, only_annotators)
    items, values = collect_by_item(grouped_rows, dataset, scale)
    _check_kappas(items, names)
    _check_value_count(values, names)
    notes += [
        *group_notes,
        *_count_single_answers(items),
        *_caution_on_numeric_names(values, scale, names),
    ]
    # The data changed the default, so the report says why agreement beyond chance is missing.
    if not requested and names == ("mean_jaccard",):
        notes.append(
            Caution(
                "Annotators gave several answers about an item: their sets are compared"
                " (mean_jaccard), and agreement beyond chance is not measured."
            )
        )
    task_info = restrict_task_info(INFO, names)
    reported_metrics = tuple(
        m if m.evidence is None else replace(m, unit="") for m in task_info.metrics
    )
    units = [_unit_scores(items, m.name) for m in reported_metrics if m.evidence is None]
    return Scores(
        units=stack_scores(units),
        info=replace(task_info, metrics=reported_metrics),
        evidence={EVIDENCE: items.select("model", "unit_id", "cluster_id", *_EVIDENCE_COLUMNS)},
        notes=tuple(notes),
        task="agreement",
    )


def _select_metrics(rows: pl.DataFrame, scale: str, metrics: Sequence[str]) -> tuple[str, ...]:
    """Select the metrics, in the order of the declaration; only the scale's alpha is allowed."""
    if not metrics:
        duplicate_share = rows.select(
            pl.struct("instance_id", "annotator").is_duplicated().mean()
        ).item()
        # A few duplicates are errors in the file, which check_single_answers refuses; many are
        # sets.
        are_sets = rows.height > 0 and float(duplicate_share or 0.0) >= _MIN_SET_SHARE
        # Alpha and pairwise agreement assume one answer per annotator and item.
        names = {"mean_jaccard"} if are_sets else {f"alpha_{scale}", "pairwise_agreement"}
        return tuple(m.name for m in METRICS if m.name in names)
    for name in metrics:
        if name.startswith("alpha_") and name != f"alpha_{scale}":
            raise SpecError(
                f"the metric {name!r} is of another scale",
                expected=f"--option scale={name.removeprefix('alpha_')}, or --metric alpha_{scale}",
                found=f"scale={scale}",
                where="metrics",
            )
        if name in (SCALED_METRICS if scale == "nominal" else NOMINAL_KAPPAS):
            raise SpecError(
                f"the metric {name!r} is of another scale",
                expected="--option scale=ordinal or interval"
                if scale == "nominal"
                else "--metric quadratic_weighted_kappa or linear_weighted_kappa (two annotators),"
                f" or alpha_{scale}; or --option scale=nominal",
                found=f"scale={scale}",
                where="metrics",
            )
    return tuple(m.name for m in METRICS if m.name in metrics)


def _check_kappas(items: pl.DataFrame, names: Sequence[str]) -> None:
    """Refuse kappas that are not defined for these numbers of answers and annotators."""
    answered = items.filter(pl.col("codes").list.len() > 1)
    for (annotator_group,), group_items in answered.group_by(["model"], maintain_order=True):
        counts = group_items["codes"].list.len().unique().sort().to_list()
        # Fleiss (1971) defines kappa for a constant number of raters; alpha generalises it.
        if "fleiss_kappa" in names and len(counts) > 1:
            raise SpecError(
                "Fleiss' kappa needs as many answers about every item",
                expected="--metric alpha_nominal, which does not",
                found=f"items with {counts[0]} to {counts[-1]} answers ({annotator_group})",
                where="metrics",
            )
        n_annotators = group_items["annotators"].explode().n_unique()
        # Cohen (1960) is about one pair of raters, each with their own distribution of answers.
        of_two = {"cohen_kappa", *WEIGHTED_KAPPAS}
        if of_two & set(names) and n_annotators != 2:
            raise SpecError(
                "Cohen's kappa is about two annotators",
                expected="--metric alpha_nominal or fleiss_kappa; of numbers alpha_ordinal or "
                "alpha_interval",
                found=f"{n_annotators:,} annotators ({annotator_group})",
                where="metrics",
            )


def _check_value_count(values: pl.Series, names: Sequence[str]) -> None:
    """Refuse metrics that count distinct answers where there are too many of them."""
    ordinal = {"alpha_ordinal", *WEIGHTED_KAPPAS}
    counting_metrics = {"alpha_nominal", *ordinal, *NOMINAL_KAPPAS} & set(names)
    # These statistics keep a matrix of values by values; interval alpha needs only sums of squares.
    max_values = MAX_ORDINAL_VALUES if ordinal & set(names) else MAX_VALUES
    if counting_metrics and len(values) > max_values:
        raise SpecError(
            f"there are {len(values):,} different answers",
            expected=f"at most {max_values} that are counted one by one; --option scale=interval"
            " with --metric alpha_interval takes numbers as they are",
            found=", ".join(map(repr, values.head(3).to_list())) + ", …",
        )


def _count_single_answers(items: pl.DataFrame) -> list[str]:
    """Count items with fewer than two answers, whose agreement is undefined."""
    notes: list[str] = []
    for (annotator_group,), group_items in items.group_by(["model"], maintain_order=True):
        n_single = int((group_items["codes"].list.len() < 2).sum())
        summary = (
            f"{n_single:,} of {group_items.height:,} items have fewer than two answers of"
            f" {annotator_group}"
        )
        if n_single == group_items.height:
            summary = (
                f"No item has two answers of {annotator_group}: there is nothing to agree about."
            )
            notes.append(Caution(f"{summary} Are the others' answers in other files or columns?"))
        elif n_single:
            # A tenth, as for missing predictions of models.
            is_many = n_single * 10 >= group_items.height
            text = f"{summary}: every number is about the others."
            notes.append(Caution(text) if is_many else f"{summary}.")
    return notes


def _caution_on_numeric_names(values: pl.Series, scale: str, names: Sequence[str]) -> list[str]:
    """Caution where answers are numbers but are compared as names."""
    numbers = values.cast(pl.Float64, strict=False)
    is_named = scale == "nominal" and "alpha_nominal" in names
    # Two or three numbers are usually codes of classes.
    if not is_named or len(values) < 4 or numbers.null_count():
        return []
    return [
        Caution(
            f"All {len(values):,} answers are numbers, taken as names: 1 and 2 disagree as much as"
            " 1 and 10. --option scale=ordinal (ranks) or scale=interval (differences) takes them"
            " as a scale."
        )
    ]


def _unit_scores(items: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Score each item: share of agreeing pairs, unanimity, or mean Jaccard index."""
    if metric == "mean_jaccard":
        scores, n_answers = _mean_jaccard(items)
    elif metric == "within_one":
        scores, n_answers = _share_of_pairs_within_one(items)
    else:
        counts = count_labels_by_item(items)
        n_answers = counts.sum(axis=1)
        # Ordered pairs of different annotators who agree: sum of c (c - 1) over answers (Fleiss).
        pairs = n_answers * (n_answers - 1)
        n_agreeing = (counts**2).sum(axis=1) - n_answers
        # Counts are whole numbers, so that a share of 1 is exact and unanimity can be tested by
        # equality.
        scores = np.divide(n_agreeing, pairs, out=np.zeros(len(n_answers)), where=pairs > 0)
        if metric == "unanimity_rate":
            scores = (scores == 1.0).astype(np.float64)
    reason = pl.when(pl.Series(n_answers <= 1)).then(pl.lit("fewer than two answers"))
    return score_rows(items, "agreement", metric, scores, reason=reason)


def _share_of_pairs_within_one(items: pl.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Share the pairs of answers that differ by at most 1; also count answers: two ``[n]``."""
    answers = items.select("numbers", row=pl.int_range(pl.len())).with_columns(
        other="numbers", n=pl.col("numbers").list.len()
    )
    # Ordered pairs, an answer with itself among them, which is taken off below.
    pairs = answers.explode("numbers").explode("other").drop_nulls("numbers")
    close_pairs = pairs.filter((pl.col("numbers") - pl.col("other")).abs() <= _MAX_STEP)
    n_close = np.bincount(close_pairs["row"].to_numpy(), minlength=items.height).astype(float)
    n_answers = answers["n"].cast(pl.Float64).to_numpy()
    n_pairs = n_answers * (n_answers - 1)
    shares = np.divide(n_close - n_answers, n_pairs, out=np.zeros(len(n_close)), where=n_pairs > 0)
    return shares, n_answers


def _mean_jaccard(items: pl.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Average the Jaccard index over pairs of annotators; also count annotators: two ``[n]``."""
    rows = items.select("codes", "annotators", row=pl.int_range(pl.len()))
    # unique: an annotator who gave an answer twice still has it once in their set.
    rows = rows.explode("codes", "annotators").drop_nulls("codes").unique()
    sets = rows.group_by("row", "annotators").agg(size=pl.len())
    # Each pair of annotators of an item once.
    pairs = sets.join(sets, on="row", suffix="_b").filter(
        pl.col("annotators") < pl.col("annotators_b")
    )
    shared_counts = (
        rows.join(rows, on=["row", "codes"], suffix="_b")
        .filter(pl.col("annotators") < pl.col("annotators_b"))
        .group_by("row", "annotators", "annotators_b")
        .agg(both=pl.len())
    )
    pair_rows = pairs.join(
        shared_counts, on=["row", "annotators", "annotators_b"], how="left"
    ).with_columns(pl.col("both").fill_null(0))
    # Jaccard (1912): shared answers over those of either, |A and B| / (|A| + |B| - |A and B|).
    mean = pair_rows.group_by("row").agg(
        j=(pl.col("both") / (pl.col("size") + pl.col("size_b") - pl.col("both"))).mean()
    )
    jaccard, n_annotators = np.zeros(items.height), np.zeros(items.height)
    jaccard[mean["row"].to_numpy()] = mean["j"].to_numpy()
    annotator_counts = sets.group_by("row").len()
    n_annotators[annotator_counts["row"].to_numpy()] = annotator_counts["len"].to_numpy()
    return jaccard, n_annotators
