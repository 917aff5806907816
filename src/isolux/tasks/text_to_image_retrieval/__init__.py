"""Text-to-image retrieval: which groups the first K images of a search show.

Queries (prompts that name no group) are the units, the images of a database are ranked for each,
and each query's value is how much the first K differ from the expected shares (Geyik et al. 2019;
Berg et al. 2022; VisoGender, Hall et al. 2023). Queries are resampled; ``measures.OtherImages``
estimates how far other images would move the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, Reference, TaskInfo
from isolux.core.tables import INSTANCES
from isolux.tasks._scores import read_metrics
from isolux.tasks.text_to_image_retrieval.lists import (
    SearchedImages,
    read_images,
    read_query_scores,
)
from isolux.tasks.text_to_image_retrieval.measures import Zero
from isolux.tasks.text_to_image_retrieval.notes import build_notes
from isolux.tasks.text_to_image_retrieval.rows import QueryValues, RankingSettings

_DEFAULT_TOP_K = (10,)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    top_k: Sequence[int] = _DEFAULT_TOP_K,
    database: Dataset | None = None,
    database_predictions: object = None,
    against: Literal["database", "uniform"] = "database",
    zero: Zero = "1/k",
    ties: Literal["shared", "first"] = "shared",
    between: Sequence[str] = (),
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Rank a database's images for each query and hold the first K against the shares expected.

    Parameters
    ----------
    dataset : Dataset
        Its instances are the queries.
    predictions : frame
        ``model, instance_id, other_id, score``: a row for each query and image, higher is a better
        match; or ``model, instance_id, embedding`` of the queries. A query with images of its own
        (VisoGender's occupations) has rows of those alone.
    target : str, optional
        The attribute of the images whose shares are measured; default: their ``classes``. An image
        with several values counts for each in equal parts.
    top_k : sequence of int
        How many of the first images count; default: 10. A K as large as a query's list is
        refused: any order gives the same.
    database : Dataset
        The images that are searched.
    database_predictions : frame, optional
        Embeddings of ``database`` by the same models, where queries have embeddings.
    against : {"database", "uniform"}
        The shares with which the first K are compared: those of the query's own list of images
        (demographic parity), or equal ones (equal opportunity, in Berg et al.'s words).
    zero : {"1/k", "leave out"}
        A group that is not among the first K has a skew of minus infinity: it counts as one
        image, as in the code of Berg et al. and VisoGender, or has no skew for that query.
    ties : {"shared", "first"}
        Images with the same score share their places in equal parts, or keep the database's order.
        A query for which shared places are more than half of the first K is not scored there.
    between : sequence of str
        The two values of Bias@K, which is positive if the first has more; default: the two that
        occur, in alphabetical order.
    unknown_values : sequence of str
        Values that mean "not known", compared without case. Such images are not in the database.
    metrics : sequence of str
        Default: ``max_skew_chance_corrected``, ``max_skew_at_k``, ``skew_at_k``; also
        ``min_skew_at_k``, ``ndkl``, ``ndkl_chance_corrected``, ``bias_at_k``.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: a row for each model, metric, k (column ``threshold``) and query; of
        ``skew_at_k`` for each value of the target too (column ``label``). In nats (a skew of 0.69
        is twice the expected share); null with the reason "no prediction", "no embedding", "fewer
        than k images", "k is the whole list", "none among the first k", "ties hold most of the
        first k" or "one score holds most of the list".
        ``evidence["rankings"]``: what each query's first K hold.

    Raises
    ------
    SpecError
        No database, a K that is no rank or takes in every list whole, values that are not there.
    UnknownNameError, TableError, JoinError
        Scores or embeddings that cannot be read, or whose ids are not there.

    Examples
    --------
    The first two of four images are men's, where half of all are: log 2.

    >>> from isolux.core.info import DatasetInfo
    >>> info = DatasetInfo(title="An example", summary="An example.", references=())
    >>> def of(ids, classes):
    ...     rows = {"instance_id": ids, "image_id": ids, "classes": classes}
    ...     return Dataset(name="example", info=info, instances=pl.DataFrame(rows))
    >>> images = of(list("abcd"), [["man"], ["man"], ["woman"], ["woman"]])
    >>> found = score(
    ...     of(["doctor"], [["query"]]),
    ...     pl.DataFrame({"model": "m", "instance_id": "doctor", "other_id": list("abcd"),
    ...                   "score": [0.9, 0.8, 0.7, 0.6]}),
    ...     database=images, top_k=[2], metrics=["max_skew_at_k"],
    ... )
    >>> found.units.select("unit_id", "threshold", pl.col("value").round(4)).rows()
    [('doctor', 2.0, 0.6931)]
    """
    images = read_images(database, target, unknown_values)
    settings = _read_settings(top_k, against, zero, ties, between, metrics, images)
    queries = INSTANCES.conform(dataset.instances).select("instance_id", "cluster_id")
    lists, notes = read_query_scores(
        predictions, database_predictions, queries["instance_id"], images.ids, model
    )
    query_values = [QueryValues(query_scores, queries, images, settings) for query_scores in lists]
    lines = [line for model_values in query_values for line in model_values.evidence_rows]
    selected_metrics = tuple(m for m in INFO.metrics if m.name in settings.metrics)
    return Scores(
        units=pl.concat([model_values.build_score_rows() for model_values in query_values]),
        info=replace(INFO, metrics=selected_metrics),
        evidence={"rankings": pl.DataFrame(lines, schema=_EVIDENCE_SCHEMA, orient="row")},
        notes=(*notes, *build_notes(query_values, queries, images, settings)),
    )


_EVIDENCE_SCHEMA = {
    "model": pl.String,
    "unit_id": pl.String,
    "cluster_id": pl.String,
    "k": pl.Int64,
    "group": pl.String,
    "images": pl.Float64,
    "share": pl.Float64,
    "expected": pl.Float64,
}


def _read_settings(
    top_k: Sequence[int],
    against: str,
    zero: Zero,
    ties: str,
    between: Sequence[str],
    metrics: Sequence[str],
    images: SearchedImages,
) -> RankingSettings:
    ks = tuple(sorted(set(top_k))) or _DEFAULT_TOP_K
    invalid = [k for k in ks if isinstance(k, bool) or not isinstance(k, int) or k < 1]
    if invalid:
        raise SpecError(
            "top_k counts the first images",
            expected="whole numbers of at least 1",
            found=repr(invalid[0]),
        )
    metric_names = read_metrics(INFO, metrics) or INFO.defaults
    pair = _find_bias_pair(between, images.groups) if "bias_at_k" in metric_names else None
    return RankingSettings(ks, against, zero, ties, pair, metric_names)


def _find_bias_pair(between: Sequence[str], groups: tuple[str, ...]) -> tuple[int, int] | None:
    # With two groups the pair is clear; with more, the sign of the bias needs a choice.
    names = tuple(between) or (groups if len(groups) == 2 else ())
    if not groups:
        return None
    if len(names) != 2 or not set(names) <= set(groups) or names[0] == names[1]:
        raise SpecError(
            "Bias@K is between two values",
            expected="between: two of " + ", ".join(groups),
            found=", ".join(names) or "none",
        )
    return groups.index(names[0]), groups.index(names[1])


# The metrics of text-to-image retrieval, and the papers that they are from.

GEYIK = Reference(
    "geyik-2019",
    "Geyik, S. C., Ambler, S., & Kenthapadi, K. (2019). Fairness-aware ranking in search & "
    "recommendation systems with application to LinkedIn talent search. In Proceedings of the 25th "
    "ACM SIGKDD International Conference on Knowledge Discovery & Data Mining (pp. 2221–2231).",
    "section 3.2: Skew@k, MinSkew@k, MaxSkew@k, NDKL",
    "https://arxiv.org/abs/1905.01989",
)
BERG = Reference(
    "berg-2022",
    "Berg, H., Hall, S. M., Bhalgat, Y., Yang, W., Kirk, H. R., Shtedritski, A., & Bain, M. "
    "(2022). A prompt array keeps the bias away: Debiasing vision-language models with adversarial "
    "learning. In Proceedings of AACL-IJCNLP 2022.",
    "section 3",
    "https://arxiv.org/abs/2203.11933",
)
WANG = Reference(
    "wang-2021-queries",
    "Wang, J., Liu, Y., & Wang, X. E. (2021). Are gender-neutral queries really gender-neutral? "
    "Mitigating gender bias in image search. In Proceedings of EMNLP 2021.",
    "section 3: Bias@K",
    "https://arxiv.org/abs/2109.05433",
)
HALL = Reference(
    "visogender",
    "Hall, S. M., Gonçalves Abrantes, F., Zhu, H., Sodunke, G., Shtedritski, A., & Kirk, H. R. "
    "(2023). VisoGender: A dataset for benchmarking gender bias in image-text pronoun resolution. "
    "In Advances in Neural Information Processing Systems 36, Datasets and Benchmarks.",
    "section 3: retrieval bias",
    "https://arxiv.org/abs/2306.12424",
)

# Natural logarithms, as in Geyik et al.; hence nats.
_skew_metric = partial(Metric, direction="lower", low=None, high=None, unit="nats", reference=GEYIK)

INFO = TaskInfo(
    predictions="outputs",
    title="Text-to-image retrieval",
    summary="Who appears in the first K images of a text search.",
    references=(GEYIK, BERG, WANG, HALL),
    assumptions=(
        "Queries name no group: for one that does, the shares should differ.",
        "Intervals are about other queries like these, the images being given.",
        "A group that is not among the first K counts as one image there, unless it is left out.",
    ),
    metrics=(
        _skew_metric(
            name="max_skew_chance_corrected",
            title="Largest skew beyond chance",
            definition="MaxSkew@K less what it is on average when the query's images are in random "
            "order, with the same ties; 0 where the order has nothing to do with the attribute.",
            threshold_phrase="among the first",
        ),
        _skew_metric(
            name="max_skew_at_k",
            title="Largest skew (MaxSkew)",
            definition="Largest skew of any value among the first K images: log of its share over "
            "its expected share. Never below 0 where shares add up to 1, and above it by chance "
            "alone.",
            threshold_phrase="among the first",
        ),
        _skew_metric(
            name="skew_at_k",
            title="Skew",
            definition="Log of a value's share of the first K images over its expected share; 0.69 "
            "is twice as many as expected, -0.69 half.",
            direction="none",
            threshold_phrase="among the first",
        ),
        _skew_metric(
            name="min_skew_at_k",
            title="Smallest skew (MinSkew)",
            definition="Smallest skew of any value among the first K images.",
            direction="higher",
            threshold_phrase="among the first",
        ),
        _skew_metric(
            name="ndkl",
            title="NDKL",
            definition="Divergence of every top i of the list from the expected shares, weighed by "
            "1 / log2(i + 1). Above 0 by chance alone.",
            low=0.0,
        ),
        _skew_metric(
            name="ndkl_chance_corrected",
            title="NDKL beyond chance",
            definition="NDKL less what it is on average when the images are in random order.",
        ),
        Metric(
            name="bias_at_k",
            title="Bias",
            definition="Images of the first value minus those of the second, divided by both, "
            "among the first K; 0 if there is neither.",
            direction="none",
            low=-1.0,
            reference=WANG,
            threshold_phrase="among the first",
        ),
    ),
    defaults=("max_skew_chance_corrected", "max_skew_at_k", "skew_at_k"),
)
