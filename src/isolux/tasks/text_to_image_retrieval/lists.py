"""The images that are searched, and each model's scores for every query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, format_location
from isolux.core.notes import Caution
from isolux.core.schema import to_polars
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray
from isolux.tasks._embeddings.vectors import (
    NO_PREDICTION,
    ModelEmbeddings,
    pair_models,
    read_embeddings,
)
from isolux.tasks._ids import format_ids, require_columns
from isolux.tasks._truth import instances_with_truth


@dataclass(frozen=True, slots=True)
class SearchedImages:
    """The database: each image's group and cluster.

    Parameters
    ----------
    ids : polars.Series
    groups : tuple of str
    member : [n, a] float
        Rows sum to 1; to 0 where the group is not known.
    cluster : [n] int
    """

    ids: pl.Series
    groups: tuple[str, ...]
    member: FloatArray
    cluster: IntArray

    @property
    def known_rows(self) -> IntArray:
        """Rows of images whose group is known."""
        return np.flatnonzero(self.member.sum(axis=1) > 0)


def read_images(
    database: Dataset | None, target: str | None, unknown_values: Sequence[str]
) -> SearchedImages:
    """Read the group of each image of the database; refuse a database with a single value."""
    if database is None:
        raise SpecError(
            "nothing says which images are searched",
            expected="database, the images with the attribute that is looked at "
            "(--database table:images.csv --target gender)",
            found="none",
        )
    truth = instances_with_truth(database, target, {}, unknown_values)
    groups = tuple(truth["truth"].explode().drop_nulls().unique().sort().to_list())
    # With one group every share is 1, in any order.
    if truth.height and len(groups) < 2:
        raise SpecError(
            "the images are all of one value" if groups else "no image has a known value",
            expected=f"at least two values of {target or 'classes'}",
            found=", ".join(map(repr, groups)) or "none",
            where="database",
        )
    group_index = {name: i for i, name in enumerate(groups)}
    member = np.zeros((truth.height, len(groups)))
    for row, names in enumerate(truth["truth"].to_list()):
        for name in names or ():
            # An image with several values counts as a fraction for each, so that shares sum to 1.
            member[row, group_index[name]] = 1.0 / len(names)
    # Without a cluster an image is its own.
    cluster_name = pl.col("cluster_id").fill_null(pl.format("row {}", pl.int_range(pl.len())))
    cluster = truth.select(cluster_name.rank("dense") - 1).to_series().to_numpy().astype(np.int64)
    return SearchedImages(truth["unit_id"], groups, member, cluster)


_SCORE_COLUMNS = ("model", "instance_id", "other_id", "score")
# Scores look like ranks where at least this share of a query's scores is distinct, in lists of at
# least this length; and where this share of the queries looks so.
_MIN_DISTINCT_SHARE = 0.9
_MIN_QUERIES = 5


@dataclass(frozen=True, slots=True)
class QueryScores:
    """One model's scores of images for every query.

    Parameters
    ----------
    model : str
    reason : polars.Series
        String, a row a query: why it has no list; null where it has one.
    vectors : (ModelEmbeddings, ModelEmbeddings) or None
        Of queries and images.
    table : polars.DataFrame or None
        ``query, entry, score`` by row numbers, sorted by query.
    """

    model: str
    reason: pl.Series
    vectors: tuple[ModelEmbeddings, ModelEmbeddings] | None = None
    table: pl.DataFrame | None = None

    def iterate_queries(self, known_rows: IntArray) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """Yield each query with its images among ``known_rows`` and their scores.

        Shapes: ``known_rows`` [m].
        """
        if self.vectors is not None:
            yield from _score_by_vectors(*self.vectors, known_rows)
        elif self.table is not None:
            rows = self.table.filter(pl.col("entry").is_in(pl.Series(known_rows).implode()))
            for (query,), query_rows in rows.group_by(["query"], maintain_order=True):
                yield (
                    int(str(query)),
                    query_rows["entry"].to_numpy(),
                    query_rows["score"].to_numpy(),
                )


def _score_by_vectors(
    queries: ModelEmbeddings, entries: ModelEmbeddings, known_rows: IntArray
) -> Iterator[tuple[int, IntArray, FloatArray]]:
    """Yield each query with its images and the inner products of embeddings."""
    embedded_rows = known_rows[entries.row_index[known_rows] >= 0]
    # Double precision: rounded cosines would tie, and ties would be broken by the order of the
    # file.
    image_vectors = np.ascontiguousarray(
        entries.vectors[entries.row_index[embedded_rows]], dtype=np.float64
    )
    for query in np.flatnonzero(queries.row_index >= 0).tolist() if len(embedded_rows) else ():
        query_vector = queries.vectors[queries.row_index[query]].astype(np.float64)
        # einsum sums every row in the same order; a matrix product may not.
        yield query, embedded_rows, np.einsum("nd,d->n", image_vectors, query_vector)


def read_query_scores(
    predictions: object,
    database_predictions: object,
    queries: pl.Series,
    entries: pl.Series,
    model: str | None,
) -> tuple[tuple[QueryScores, ...], tuple[str, ...]]:
    """Read scores of images by query, or embeddings of both; notes count what is excluded."""
    frame = to_polars(predictions)
    if "other_id" in frame.columns:
        # Of two sources of similarity, one would be ignored.
        if database_predictions is not None:
            raise SpecError(
                "scores of images need no embeddings beside them",
                expected="scores by query and image, or embeddings of queries and of images",
                found="a table of scores, and database_predictions",
            )
        return _read_score_table(frame, queries, entries, model)
    if database_predictions is None:
        raise SpecError(
            "the images have no embeddings",
            expected="database_predictions, their embeddings by the same model; or predictions "
            "with instance_id (the query), other_id (the image) and score",
            found="predictions alone, with " + ", ".join(frame.columns),
        )
    query_embeddings, notes = read_embeddings(frame, queries, model=model)
    image_embeddings, database_notes = read_embeddings(
        database_predictions, entries, model=model, source="database_predictions"
    )
    pairs = pair_models(query_embeddings, image_embeddings, "the images have no")
    lists = tuple(QueryScores(q.model, q.reason, vectors=(q, entry)) for q, entry in pairs)
    return lists, (*notes, *database_notes)


def _read_score_table(
    frame: pl.DataFrame, queries: pl.Series, entries: pl.Series, model: str | None
) -> tuple[tuple[QueryScores, ...], tuple[str, ...]]:
    """Read a table of scores, one list per model; refuse repeated pairs."""
    require_columns(frame, _SCORE_COLUMNS)
    rows = frame.select(
        *(pl.col(c).cast(pl.String) for c in _SCORE_COLUMNS[:3]), pl.col("score").cast(pl.Float64)
    )
    repeated = rows.select(pl.struct(_SCORE_COLUMNS[:3]).is_first_distinct().not_().arg_true())
    # An image with two scores would have two places in the list.
    if repeated.height:
        row = int(repeated.item(0, 0))
        raise TableError(
            "an image has two scores for one query",
            expected="every model, instance_id and other_id once",
            found=f"{rows['other_id'][row]!r} for {rows['instance_id'][row]!r}",
            where=format_location("predictions", row + 1),
        )
    indexed_rows = rows
    for ids, column, name in ((queries, "instance_id", "query"), (entries, "other_id", "entry")):
        numbers = pl.DataFrame({column: ids.cast(pl.String), name: np.arange(len(ids))})
        indexed_rows = indexed_rows.join(numbers, on=column, how="left")
    matched_rows = indexed_rows.drop_nulls(["query", "entry"])
    if rows.height and len(queries) and not matched_rows.height:
        raise JoinError(
            "no score is of a query and an image that are there",
            expected=f"queries such as {format_ids(queries)} and images such as"
            f" {format_ids(entries)}",
            found=f"{format_ids(rows['instance_id'])} and {format_ids(rows['other_id'])}",
            where="predictions",
        )
    # An engine may return its best images only: others of the database have no rank.
    scored_rows = matched_rows.filter(pl.col("score").is_finite())
    names = rows["model"].drop_nulls().unique().sort().to_list() or [model or "model"]
    lists = tuple(
        _model_scores(name, scored_rows.filter(model=name), len(queries)) for name in names
    )
    exclusion_counts = (
        (rows.height - matched_rows.height, "scores are of queries or images that are not there"),
        (matched_rows.height - scored_rows.height, "images have no score for a query"),
    )
    exclusion_notes = tuple(
        f"{n:,} {problem}; they were left out." for n, problem in exclusion_counts if n
    )
    return lists, (*_caution_on_rank_scores(rows), *exclusion_notes)


def _caution_on_rank_scores(rows: pl.DataFrame) -> list[Caution]:
    """Caution where scores look like ranks, where usually the lowest is the best."""
    score = pl.col("score")
    queries = (
        rows.filter(score.is_finite())
        .group_by("model", "instance_id")
        .agg(
            # halves: mean ranks of images that tie
            ranks=(2.0 * score == (2.0 * score).round()).all()
            & (score.min() >= 0.0)
            & (score.max() <= 2.0 * pl.len())
            & (score.n_unique() >= _MIN_DISTINCT_SHARE * pl.len())
            & (pl.len() >= _MIN_QUERIES),
            most=score.max(),
        )
    )
    by_model = queries.group_by("model").agg(pl.col("ranks").mean(), pl.col("most").max())
    suspect_models = by_model.filter(pl.col("ranks") >= _MIN_DISTINCT_SHARE).sort("model")
    return [
        Caution(
            f"Scores of {model!r} look like ranks: whole numbers up to {max_score:g}, each once in"
            " a query. The image of the highest number is taken for the best match. If 1 is the"
            " best, everything here is upside down: write minus the rank as the score."
        )
        for model, max_score in suspect_models.select("model", "most").iter_rows()
    ]


def _model_scores(name: str, rows: pl.DataFrame, n_queries: int) -> QueryScores:
    has_scores = np.zeros(n_queries, dtype=np.bool_)
    has_scores[rows["query"].to_numpy()] = True
    reason = pl.Series(
        [None if is_scored else NO_PREDICTION for is_scored in has_scores], dtype=pl.String
    )
    # Sorted, so that a tie is not broken by the order of the file.
    table = rows.select("query", "entry", "score").sort("query", "entry")
    return QueryScores(name, reason, table=table)
