"""Retrieval: whether a person's nearest neighbours in a model's embeddings share an attribute.

Fairness Indicators' same-attribute similarity search (Goyal et al. 2022, section 3.3): from
embeddings of queries and of a database to one precision@K per query; groups, intervals and
comparisons use the mean of the queries' values. No classifier is trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.grouping import UNKNOWN_VALUES
from isolux.core.info import Metric, TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES
from isolux.tasks._embeddings.vectors import (
    ModelEmbeddings,
    find_nearest,
    pair_models,
    read_embeddings,
)
from isolux.tasks._scores import read_metrics, score_rows
from isolux.tasks._truth import instances_with_truth
from isolux.tasks.retrieval.values import (
    NO_MATCHING_ENTRY,
    Bits,
    Exclude,
    Ints,
    caution_on_rare_values,
    caution_on_ties,
    count_matching_entries,
    exclusion_keys,
    flag_shared_values,
    is_mostly_tied,
    neighbour_cosines,
    value_bits,
)

_DEFAULT_TOP_K = (10, 50)  # Fairness Indicators' similarity search looks at 10 and 50 neighbours

GOYAL = citations.FAIRNESS_INDICATORS.with_location("section 3.3")

INFO = TaskInfo(
    predictions="outputs",
    # Queries share one database, so their values are not independent.
    has_independent_scores=False,
    title="Same-attribute retrieval",
    summary="Whether the images nearest to a person's among embeddings share an attribute.",
    references=(GOYAL,),
    assumptions=(
        "Embeddings are compared by the cosine of their angle, all pairs, without approximation.",
        "Precision also moves with how common the query's value is in the database.",
        "One database is given: intervals are about other queries, not about another database.",
    ),
    metrics=(
        Metric(
            name="precision_at_k",
            title="Precision at K",
            definition="Share of the K entries nearest to a query that have its value of the "
            "attribute.",
            direction="higher",
            reference=GOYAL,
        ),
    ),
    defaults=("precision_at_k",),
)


# The fewest queries for a comparison with chance; a smaller excess over chance counts as none.
_MIN_QUERIES = 30
_MIN_EXCESS = 0.02


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    top_k: Sequence[int] = _DEFAULT_TOP_K,
    database: Dataset | None = None,
    database_predictions: object = None,
    exclude: Exclude = "self",
    unknown_values: Sequence[str] = UNKNOWN_VALUES,
    metrics: Sequence[str] = (),
    model: str | None = None,
) -> Scores:
    """Search a database for each person's nearest and count those that share an attribute's value.

    Parameters
    ----------
    dataset : Dataset
        Its instances are the queries.
    predictions : frame
        ``model, instance_id, embedding``: a list or array of finite numbers, of one length for
        each model; null where there is none. Divided by its L2 norm.
    target : str, optional
        The attribute that should be shared; default: ``classes`` of the instances. Several values
        of one person are all valid: any that is shared counts.
    top_k : sequence of int
        The numbers of nearest entries; default: 10 and 50, as in the paper.
    database : Dataset, optional
        The people who are searched. Default: the dataset itself.
    database_predictions : frame, optional
        Embeddings of ``database`` by the same models. Names must agree, unless each side has one.
    exclude : {"self", "image", "cluster", "nothing"}
        Entries that a query is not compared with: those with its own ``instance_id``, from its own
        image (and itself), or of its own cluster (the person, say). ``"nothing"`` only with a
        ``database``: a query is always its own nearest.
    unknown_values : sequence of str
        Values that mean "not known", compared without case. Such entries are not in the
        database, such queries are null.
    metrics : sequence of str
        ``precision_at_k``, the only one.
    model : str, optional
        What to call the model if there is no prediction to say so.

    Returns
    -------
    Scores
        ``units``: one row per model, k (column ``threshold``) and instance; 0 to 1, higher is
        better; null with the reason "unknown truth", "no prediction", "no embedding", "embedding
        of length zero", "fewer than k entries to compare with" or "no entry to compare with has its
        value". Of equally near entries the
        first in the database is taken.

    Raises
    ------
    SpecError
        A k that is not a rank, no truth, a value that no entry has, models that do not correspond.
    UnknownNameError, TableError, JoinError
        Embeddings that cannot be read, or whose ids are not in the dataset.

    Examples
    --------
    Two women and two men; the second woman lies nearest to a man.

    >>> from isolux.core.info import DatasetInfo
    >>> people = Dataset(
    ...     name="four people",
    ...     info=DatasetInfo(title="Four people", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a", "b", "c", "d"],
    ...             "image_id": ["a", "b", "c", "d"],
    ...             "classes": [["woman"], ["woman"], ["man"], ["man"]],
    ...         }
    ...     ),
    ... )
    >>> space = [[1.0, 0.0], [0.7, 0.7], [0.3, 0.9], [0.0, 1.0]]
    >>> vectors = pl.DataFrame({"model": "m", "instance_id": list("abcd"), "embedding": space})
    >>> score(people, vectors, top_k=[1]).units.select("unit_id", "value").rows()
    [('a', 1.0), ('b', 0.0), ('c', 1.0), ('d', 1.0)]
    """
    read_metrics(INFO, metrics)
    ks = tuple(sorted(set(top_k))) or _DEFAULT_TOP_K
    _check_settings(ks, exclude, database, database_predictions)
    read_settings = (target, unknown_values, model)
    queries, query_embeddings, notes = _read_units(
        dataset, predictions, read_settings, "predictions"
    )
    # Without a database of its own, a dataset is searched in itself.
    entries, entry_embeddings, database_notes = queries, query_embeddings, notes[:0]
    if database is not None:
        entries, entry_embeddings, database_notes = _read_units(
            database, database_predictions, read_settings, "database_predictions"
        )
    unit_bits = value_bits(queries, entries)
    unit_keys = exclusion_keys(queries, entries, exclude)
    tables, value_cautions = [], []
    for query, entry in pair_models(query_embeddings, entry_embeddings, "the database has no"):
        rows, cautions = _model_rows(queries, query, entry, unit_bits, unit_keys, ks)
        tables.append(rows)
        value_cautions += cautions
    return Scores(
        units=pl.concat(tables),
        info=INFO,
        notes=(
            *_caution_on_chance_matches(tables, queries, entries),
            *value_cautions,
            *notes,
            *database_notes,
            *_note_counts(queries, entries, entry_embeddings, exclude),
        ),
    )


_ReadSettings = tuple[str | None, Sequence[str], str | None]
"""The target, the values that mean unknown, and the default name of a model."""


def _check_settings(
    ks: Sequence[int], exclude: str, database: Dataset | None, database_predictions: object
) -> None:
    invalid = [k for k in ks if isinstance(k, bool) or not isinstance(k, int) or k < 1]
    is_incomplete = (database is None) is not (database_predictions is None)
    for is_wrong, problem, expected, setting in (
        (
            bool(invalid),
            "top_k counts the nearest entries",
            "whole numbers of at least 1",
            repr(invalid[0]) if invalid else "",
        ),
        (
            exclude == "nothing" and database is None,
            "each query would find itself",
            "a database of others, or exclude='self', 'image' or 'cluster'",
            "exclude='nothing' and no database",
        ),
        (
            is_incomplete,
            "half a database",
            "database and database_predictions, or neither",
            "only one of them",
        ),
    ):
        if is_wrong:
            raise SpecError(problem, expected=expected, found=setting)


def _read_units(
    dataset: Dataset, predictions: object, settings: _ReadSettings, source: str
) -> tuple[pl.DataFrame, tuple[ModelEmbeddings, ...], tuple[str, ...]]:
    target, unknown_values, model = settings
    instances = INSTANCES.conform(dataset.instances)
    truth = instances_with_truth(dataset, target, {}, unknown_values)
    units = instances.select("image_id", "cluster_id", "instance_id", unit_id="instance_id")
    units = units.with_columns(truth["truth"])
    models, notes = read_embeddings(predictions, units["unit_id"], model=model, source=source)
    return units, models, notes


def _model_rows(
    units: pl.DataFrame,
    query: ModelEmbeddings,
    entry: ModelEmbeddings,
    unit_bits: tuple[Bits, Bits],
    unit_keys: tuple[Ints, Ints],
    ks: Sequence[int],
) -> tuple[pl.DataFrame, list[Caution]]:
    """Build one model's rows for all k; caution where values are rarer than k."""
    query_rows = np.flatnonzero((query.row_index >= 0) & unit_bits[0].any(axis=1))
    # Entries of unknown value are not in the database: as neighbours they would count as misses.
    entry_rows = np.flatnonzero((entry.row_index >= 0) & unit_bits[1].any(axis=1))
    vectors = query.vectors[query.row_index[query_rows]], entry.vectors[entry.row_index[entry_rows]]
    own_keys = unit_keys[0][query_rows], unit_keys[1][entry_rows]
    bits = unit_bits[0][query_rows], unit_bits[1][entry_rows]
    # One neighbour more than the largest k shows whether the last one is tied.
    neighbours = find_nearest(*vectors, ks[-1] + 1, query_key=own_keys[0], entry_key=own_keys[1])
    # One search for the largest k serves all smaller ones.
    hits = np.cumsum(flag_shared_values(*bits, neighbours[:, : ks[-1]]), axis=1)
    n_with_value = count_matching_entries(*bits, *own_keys)
    cosines = neighbour_cosines(*vectors, neighbours)
    unknown = pl.when(pl.col("truth").is_null()).then(pl.lit("unknown truth"))
    base_reason = units.select(unknown).to_series().fill_null(query.reason).to_numpy()
    tables: list[pl.DataFrame] = []
    cautions: list[Caution] = []
    for k in ks:
        has_k_entries = neighbours[:, k - 1] >= 0
        cautions += caution_on_ties(has_k_entries & is_mostly_tied(cosines, k), k, query.model)
        # Without any entry of its value a query could only score 0, whatever the model.
        is_scored = has_k_entries & (n_with_value > 0)
        precision, reason = np.full(units.height, np.nan), base_reason.copy()
        precision[query_rows[is_scored]] = hits[is_scored, k - 1] / k
        reason[query_rows[n_with_value == 0]] = NO_MATCHING_ENTRY
        reason[query_rows[~has_k_entries]] = f"fewer than {k} entries to compare with"
        rows = units.with_columns(reason=pl.Series(reason.tolist(), dtype=pl.String))
        tables.append(
            score_rows(
                rows,
                "retrieval",
                "precision_at_k",
                precision,
                model=query.model,
                threshold=float(k),
            )
        )
    value_cautions = caution_on_rare_values(
        units["truth"][query_rows], n_with_value, ks, query.model
    )
    return pl.concat(tables), [*cautions, *value_cautions]


def _caution_on_chance_matches(
    tables: Sequence[pl.DataFrame], queries: pl.DataFrame, entries: pl.DataFrame
) -> list[Caution]:
    """Caution where neighbours share a query's value no more often than the database does."""
    known_values = entries["truth"].drop_nulls()
    if not len(known_values):
        return []
    counts = known_values.explode().value_counts(name="n")
    shares = counts.select(truth=pl.col("truth"), share=pl.col("n") / len(known_values))
    of_query = queries.select("unit_id", "truth").explode("truth")
    base_rates = of_query.join(shares, on="truth").group_by("unit_id").agg(pl.col("share").sum())
    notes = []
    for table in tables:
        # At the smallest k the excess over chance is largest, if there is any.
        smallest_k_rows = table.filter(threshold=table["threshold"].min())
        scored_queries = smallest_k_rows.drop_nulls("value").join(base_rates, on="unit_id")
        precision, share = scored_queries["value"].to_numpy(), scored_queries["share"].to_numpy()
        # Paired by query: queries of common values have a high precision by chance alone.
        excess = precision - share
        # Too few queries, or a database with a single value, for a comparison with chance.
        if len(excess) < _MIN_QUERIES or (share > 1.0 - 1e-9).all():
            continue
        excess_se = float(excess.std(ddof=1)) / len(excess) ** 0.5
        # An excess within 3 standard errors, or below 2 percentage points, counts as chance.
        if float(excess.mean()) <= max(3.0 * excess_se, _MIN_EXCESS):
            text = (
                f"By the embeddings of {table['model'][0]!r} neighbours share a person's value no"
                f" more often than anyone in the database does ({np.mean(precision):.2f} and"
                f" {np.mean(share):.2f}). Are they of these people?"
            )
            notes.append(Caution(text))
    return notes


def _note_counts(
    queries: pl.DataFrame, entries: pl.DataFrame, models: Sequence[ModelEmbeddings], exclude: str
) -> tuple[str, ...]:
    """Count queries and entries, and state the share of each value in the database."""
    n_unknown = queries["truth"].null_count()
    notes = []
    if n_unknown:
        notes.append(
            f"{n_unknown:,} of {queries.height:,} queries have no known value: not scored."
        )
    for embedded in models:
        known_entries = entries.filter(
            pl.Series(embedded.row_index >= 0), pl.col("truth").is_not_null()
        )
        if not known_entries.height:
            continue
        counts = known_entries["truth"].explode().value_counts().sort("truth")
        counts = counts.sort("count", descending=True, maintain_order=True)
        shares = ", ".join(
            f"{v} {n / known_entries.height:.1%}" for v, n in counts.head(10).iter_rows()
        )
        n_excluded = entries.height - known_entries.height
        model_phrase = f" of {embedded.model}" if len(models) > 1 else ""
        notes.append(
            f"The database{model_phrase} has {known_entries.height:,} entries ({shares}"
            + (f" and {counts.height - 10:,} more values" if counts.height > 10 else "")
            + ")"
            + (
                f"; {n_excluded:,} without an embedding or a known value are not in it."
                if n_excluded
                else "."
            )
        )
    if exclude != "nothing":
        exclusion_phrases = {
            "self": "itself",
            "image": "entries of its image",
            "cluster": "its own cluster",
        }
        notes.append(f"A query is not compared with {exclusion_phrases[exclude]}.")
    return tuple(notes)
