"""Agreement of annotators: whether those who judged the same items gave the same answers.

For whom do they agree less? Items stand for the people in them, so agreement is measured by group
of the people, and among groups of annotators (who are told apart in the column ``model``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from isolux.stats.agreement import (
    MOST_ORDERED,
    MOST_VALUES,
    Scale,
    alpha,
    cohen_kappa,
    fleiss_kappa,
    tallies,
)
from isolux.stats.statistic import FloatArray
from isolux.tasks._scores import measured_info, read_metrics, score_rows, stack_scores
from isolux.tasks.agreement.answers import answers_of, by_item, in_circles, refuse_several
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import Metric, Reference, TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import to_polars

# What agreement of annotators measures: each metric's definition, range and source.

EVIDENCE = "answers"
"""Name of the evidence table."""
KRIPPENDORFF = Reference(
    "krippendorff-alpha",
    "Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of "
    "Pennsylvania, Annenberg School for Communication.",
    "sections C to E",
    "https://repository.upenn.edu/handle/20.500.14332/2089",
)
COHEN = Reference(
    "cohen-kappa",
    "Cohen, J. (1960). A coefficient of agreement for nominal scales. Educational and "
    "Psychological Measurement, 20, 37–46.",
    "",
    "https://doi.org/10.1177/001316446002000104",
)
FLEISS = Reference(
    "fleiss-kappa",
    "Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological "
    "Bulletin, 76, 378–382.",
    "",
    "https://doi.org/10.1037/h0031619",
)
JACCARD = Reference(
    "jaccard-index",
    "Jaccard, P. (1912). The distribution of the flora in the alpine zone. New Phytologist, 11, "
    "37–50.",
    "",
    "https://doi.org/10.1111/j.1469-8137.1912.tb05611.x",
)
REFERENCES = (KRIPPENDORFF, COHEN, FLEISS, JACCARD)


_share = partial(Metric, direction="higher")


_beyond_chance = partial(
    Metric,
    direction="higher",
    low=None,
    unit="own unit",  # none: a pure number, as a run says
    evidence=EVIDENCE,
)


_APART: dict[Scale, str] = {
    "nominal": "two answers are alike or not",
    "ordinal": "the distance of two answers is the number of answers between them",
    "interval": "the distance of two answers is the square of their difference",
}
METRICS: tuple[Metric, ...] = (
    *(
        _beyond_chance(
            name=f"alpha_{scale}",
            title=f"Agreement beyond chance (alpha, {scale})",
            definition="Krippendorff's alpha: one minus the disagreement within items over that "
            f"expected by chance; {apart}. 1: they always agree, 0: as expected by chance.",
            reference=KRIPPENDORFF,
            statistic=alpha(scale),
        )
        for scale, apart in _APART.items()
    ),
    _share(
        name="pairwise_agreement",
        title="Pairwise agreement",
        definition="Share of the pairs of annotators of an item who give the same answer, averaged "
        "over items; it is higher by chance alone if one answer is common.",
        reference=FLEISS,
    ),
    _share(
        name="unanimous",
        title="Unanimous items",
        definition="Share of the items to which all their annotators give the same answer.",
        reference=FLEISS,
    ),
    _share(
        name="mean_jaccard",
        title="Mean pairwise Jaccard index",
        definition="Number of answers that two annotators of an item share, divided by those that "
        "either gives, averaged over pairs and items.",
        reference=JACCARD,
    ),
    _beyond_chance(
        name="fleiss_kappa",
        title="Agreement beyond chance (Fleiss' kappa)",
        definition="Agreement beyond chance divided by its maximum; every item has the same number "
        "of answers.",
        reference=FLEISS,
        statistic=fleiss_kappa(),
    ),
    _beyond_chance(
        name="cohen_kappa",
        title="Agreement beyond chance (Cohen's kappa)",
        definition="Agreement of two annotators beyond chance, divided by its maximum.",
        reference=COHEN,
        statistic=cohen_kappa(),
    ),
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
    worse="annotators agree less about {0} than about {1}",
)
_SETS = 0.5  # of the answers are one of several of their annotator and item: they are sets


def score(
    dataset: Dataset,
    predictions: object,
    *,
    scale: Scale = "nominal",
    annotators_by: str | None = None,
    ignored: Sequence[str] = (),
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
    ignored : sequence of str
        Answers that do not count ("cannot tell"), compared without case. Default: every word is an
        answer like any other.
    metrics : sequence of str
        What to measure. None: alpha of the scale and ``pairwise_agreement``; where an annotator
        gave several answers about an item, ``mean_jaccard``.

    Returns
    -------
    Scores
        ``units``: ``pairwise_agreement``, ``unanimous`` and ``mean_jaccard`` of each item, 0 to 1;
        null with the reason "fewer than two answers". ``model`` names the annotators: all of them,
        or ``region: Asia``. ``evidence["answers"]``: ``model, unit_id, cluster_id, codes,
        numbers``, each item's answers as lists, for the metrics beyond chance.

    Raises
    ------
    SpecError
        A metric that the answers do not allow: several answers of one annotator, items with
        different numbers of answers (Fleiss' kappa), not two annotators (Cohen's).
    UnknownNameError, TableError, JoinError
        No such column or metric; answers of no item, or that are no numbers.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
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
    known = dataset.instances["instance_id"].cast(pl.String)
    words = (ignored,) if isinstance(ignored, str) else tuple(ignored)
    rows, notes = answers_of(to_polars(predictions), known, words)
    named = read_metrics(INFO, metrics)
    names = _asked(rows, scale, named)
    if set(names) - {"mean_jaccard"}:
        refuse_several(rows)
    circled, told = in_circles(rows, annotators_by)
    items, values = by_item(circled, dataset, scale)
    _refuse_kappas(items, names)
    _refuse_many(values, names)
    notes += [*told, *_on_single(items), *_on_scale(values, scale, names)]
    if not named and names == ("mean_jaccard",):
        notes.append(
            Caution(
                "Annotators gave several answers about an item: their sets are compared"
                " (mean_jaccard), and agreement beyond chance is not measured."
            )
        )
    info = measured_info(INFO, names)
    measured = tuple(m if m.evidence is None else replace(m, unit="") for m in info.metrics)
    units = [_unit_scores(items, m.name) for m in measured if m.evidence is None]
    return Scores(
        units=stack_scores(units),
        info=replace(info, metrics=measured),
        evidence={EVIDENCE: items.select("model", "unit_id", "cluster_id", "codes", "numbers")},
        notes=tuple(notes),
        task="agreement",
    )


def _asked(rows: pl.DataFrame, scale: str, metrics: Sequence[str]) -> tuple[str, ...]:
    """Name what is measured, in the order of the metrics; alpha is that of the scale alone."""
    if not metrics:
        twice = rows.select(pl.struct("instance_id", "annotator").is_duplicated().mean()).item()
        sets = rows.height > 0 and float(twice or 0.0) >= _SETS
        chosen = {"mean_jaccard"} if sets else {f"alpha_{scale}", "pairwise_agreement"}
        return tuple(m.name for m in METRICS if m.name in chosen)
    for one in metrics:
        if one.startswith("alpha_") and one != f"alpha_{scale}":
            raise SpecError(
                f"the metric {one!r} is of another scale",
                expected=f"--option scale={one.removeprefix('alpha_')}, or --metric alpha_{scale}",
                found=f"scale={scale}",
                where="metrics",
            )
    return tuple(m.name for m in METRICS if m.name in metrics)


def _refuse_kappas(items: pl.DataFrame, names: Sequence[str]) -> None:
    """Refuse the kappas where items do not have the answers that these are defined for."""
    given = items.filter(pl.col("codes").list.len() > 1)
    for (circle,), own in given.group_by(["model"], maintain_order=True):
        counts = own["codes"].list.len().unique().sort().to_list()
        if "fleiss_kappa" in names and len(counts) > 1:
            raise SpecError(
                "Fleiss' kappa needs as many answers about every item",
                expected="--metric alpha_nominal, which does not",
                found=f"items with {counts[0]} to {counts[-1]} answers ({circle})",
                where="metrics",
            )
        people = own["annotators"].explode().n_unique()
        if "cohen_kappa" in names and people != 2:
            raise SpecError(
                "Cohen's kappa is about two annotators",
                expected="--metric alpha_nominal or fleiss_kappa",
                found=f"{people:,} annotators ({circle})",
                where="metrics",
            )


def _refuse_many(values: pl.Series, names: Sequence[str]) -> None:
    """Refuse to count answers one by one where there are too many different ones."""
    ordinal = "alpha_ordinal" in names
    counted = {"alpha_nominal", "alpha_ordinal", "fleiss_kappa", "cohen_kappa"} & set(names)
    most = MOST_ORDERED if ordinal else MOST_VALUES
    if counted and len(values) > most:
        raise SpecError(
            f"there are {len(values):,} different answers",
            expected=f"at most {most} that are counted one by one; --option scale=interval takes"
            " numbers as they are",
            found=", ".join(map(repr, values.head(3).to_list())) + ", …",
        )


def _on_single(items: pl.DataFrame) -> list[str]:
    """Say how many items were judged by fewer than two, which nothing can be said of."""
    notes: list[str] = []
    for (circle,), own in items.group_by(["model"], maintain_order=True):
        few = int((own["codes"].list.len() < 2).sum())
        told = f"{few:,} of {own.height:,} items have fewer than two answers of {circle}"
        if few == own.height:
            told = f"No item has two answers of {circle}: there is nothing to agree about."
            notes.append(Caution(f"{told} Are the others' answers in other files or columns?"))
        elif few:
            many = few * 10 >= own.height
            text = f"{told}: every number is about the others."
            notes.append(Caution(text) if many else f"{told}.")
    return notes


def _on_scale(values: pl.Series, scale: str, names: Sequence[str]) -> list[str]:
    """Caution where answers look like a scale, and are taken as names."""
    numbers = values.cast(pl.Float64, strict=False)
    is_named = scale == "nominal" and "alpha_nominal" in names
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
    """Give each item its share of agreeing pairs, whether all agree, or its mean Jaccard index."""
    if metric == "mean_jaccard":
        value, given = _jaccard(items)
    else:
        counts = tallies(items)
        given = counts.sum(axis=1)
        pairs = given * (given - 1)
        agree = (counts**2).sum(axis=1) - given
        value = np.divide(agree, pairs, out=np.zeros(len(given)), where=pairs > 0)
        if metric == "unanimous":
            value = (value == 1.0).astype(np.float64)
    few = pl.when(pl.Series(given <= 1)).then(pl.lit("fewer than two answers"))
    return score_rows(items, "agreement", metric, value, reason=few)


def _jaccard(items: pl.DataFrame) -> tuple[FloatArray, FloatArray]:
    """Average over pairs of annotators what their sets of answers share; and count annotators."""
    rows = items.select("codes", "annotators", row=pl.int_range(pl.len()))
    rows = rows.explode("codes", "annotators").drop_nulls("codes").unique()
    sets = rows.group_by("row", "annotators").agg(size=pl.len())
    pairs = sets.join(sets, on="row", suffix="_b").filter(
        pl.col("annotators") < pl.col("annotators_b")
    )
    shared = (
        rows.join(rows, on=["row", "codes"], suffix="_b")
        .filter(pl.col("annotators") < pl.col("annotators_b"))
        .group_by("row", "annotators", "annotators_b")
        .agg(both=pl.len())
    )
    each = pairs.join(shared, on=["row", "annotators", "annotators_b"], how="left").with_columns(
        pl.col("both").fill_null(0)
    )
    mean = each.group_by("row").agg(
        (pl.col("both") / (pl.col("size") + pl.col("size_b") - pl.col("both"))).mean().alias("j")
    )
    value, given = np.zeros(items.height), np.zeros(items.height)
    value[mean["row"].to_numpy()] = mean["j"].to_numpy()
    counted = sets.group_by("row").len()
    given[counted["row"].to_numpy()] = counted["len"].to_numpy()
    return value, given
