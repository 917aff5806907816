"""Retrieval: whether what lies nearest to a person in a model's space is alike in an attribute.

Fairness Indicators' same-attribute similarity search (Goyal et al. 2022, section 3.3): embeddings
of queries and of a database come in, one precision@K per query goes out, and groups, intervals and
comparisons come from the mean of the queries' values. No classifier is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._embeddings.vectors import Embedded, nearest, read_embeddings
from isolux.tasks._truth import instances_with_truth
from isolux.tasks.retrieval.values import (
    EXCLUDED,
    LACKING,
    Bits,
    Exclude,
    Ints,
    entries_alike,
    exclusion_keys,
    mostly_tied,
    nearness,
    on_rare_values,
    on_ties,
    share_value,
    value_bits,
)
from isolux.vocabulary import works
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES, SCORES

__all__ = ["INFO", "score"]

_KS = (10, 50)  # Fairness Indicators' similarity search looks at 10 and 50 neighbours

GOYAL = works.FAIRNESS_INDICATORS.at("section 3.3")

INFO = TaskInfo(
    predictions="outputs",
    one_by_one=False,
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


_FEWEST, _ROOM = 30, 0.02  # queries, and the excess over chance that is none


@dataclass(frozen=True, slots=True)
class _Side:
    """Queries or database: who they are, what is true of them, what may not be compared."""

    units: pl.DataFrame
    models: tuple[Embedded, ...]


def score(
    dataset: Dataset,
    predictions: object,
    *,
    target: str | None = None,
    top_k: Sequence[int] = _KS,
    database: Dataset | None = None,
    database_predictions: object = None,
    database_target: str | None = None,
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
    database_target : str, optional
        The name of ``target`` there, if it is another.
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

    >>> from isolux.vocabulary.info import DatasetInfo
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
    for name in (metrics,) if isinstance(metrics, str) else metrics:
        INFO.metric(name)
    ks = tuple(sorted(set(top_k))) or _KS
    _refuse(ks, exclude, database, database_predictions)
    queries, notes = _side(dataset, predictions, target, unknown_values, model, "predictions")
    entries, more = queries, notes[:0]
    if database is not None:
        entries, more = _side(
            database,
            database_predictions,
            database_target or target,
            unknown_values,
            model,
            "database_predictions",
        )
    valid = value_bits(queries.units, entries.units)
    keys = exclusion_keys(queries.units, entries.units, exclude)
    parts, rare = [], []
    for one, of_entries in _partners(queries.models, entries.models):
        rows, cautions = _rows(queries.units, one, of_entries, valid, keys, ks)
        parts.append(rows)
        rare += cautions
    return Scores(
        units=SCORES.conform(pl.concat(parts)),
        info=INFO,
        notes=(
            *_by_chance(parts, queries.units, entries),
            *rare,
            *notes,
            *more,
            *_tallies(queries.units, entries, exclude),
        ),
    )


def _refuse(
    ks: Sequence[int], exclude: str, database: Dataset | None, database_predictions: object
) -> None:
    wrong = [k for k in ks if isinstance(k, bool) or not isinstance(k, int) or k < 1]
    if wrong:
        raise SpecError(
            "top_k counts the nearest entries",
            expected="whole numbers of at least 1",
            found=repr(wrong[0]),
        )
    if exclude not in EXCLUDED:
        raise SpecError(
            "exclude is not known",
            expected="one of self, image, cluster, nothing",
            found=repr(exclude),
        )
    if exclude == "nothing" and database is None:
        raise SpecError(
            "each query would find itself",
            expected="a database of others, or exclude='self', 'image' or 'cluster'",
            found="exclude='nothing' and no database",
        )
    if (database is None) is not (database_predictions is None):
        raise SpecError(
            "half a database",
            expected="database and database_predictions, or neither",
            found="only one of them",
        )


def _side(
    dataset: Dataset,
    predictions: object,
    target: str | None,
    unknown_values: Sequence[str],
    model: str | None,
    where: str,
) -> tuple[_Side, tuple[str, ...]]:
    instances = INSTANCES.conform(dataset.instances)
    truth = instances_with_truth(dataset, target, {}, unknown_values)
    units = instances.select("instance_id", "image_id", "cluster_id").with_columns(truth["truth"])
    models, notes = read_embeddings(predictions, units["instance_id"], model=model, where=where)
    return _Side(units, models), notes


def _partners(
    queries: tuple[Embedded, ...], entries: tuple[Embedded, ...]
) -> list[tuple[Embedded, Embedded]]:
    if len(queries) == len(entries) == 1:
        return [(queries[0], entries[0])]
    named = {one.model: one for one in entries}
    missing = [one.model for one in queries if one.model not in named]
    if missing:
        raise SpecError(
            f"the database has no embeddings of the model {missing[0]!r}",
            expected="embeddings by the same models",
            found=", ".join(named),
            where="database_predictions",
        )
    return [(one, named[one.model]) for one in queries]


def _hits(
    query: Embedded, entry: Embedded, valid: tuple[Bits, Bits], keys: tuple[Ints, Ints], k: int
) -> tuple[Ints, Ints, Ints, Ints, FloatArray]:
    """Search for one model."""
    if len(query.vectors) and len(entry.vectors) and query.width != entry.width:
        raise SpecError(
            f"embeddings of {query.model!r} and of the database differ in length",
            expected=f"{query.width} numbers",
            found=f"{entry.width} numbers",
            where="database_predictions",
        )
    asked = np.flatnonzero((query.row >= 0) & valid[0].any(axis=1))
    searched = np.flatnonzero((entry.row >= 0) & valid[1].any(axis=1))
    found = nearest(
        query.vectors[query.row[asked]],
        entry.vectors[entry.row[searched]],
        k + 1,  # one more tells whether the last place was shared
        query_key=keys[0][asked],
        entry_key=keys[1][searched],
    )
    bits = valid[0][asked], valid[1][searched]
    shared = share_value(*bits, found[:, :k])
    alike = entries_alike(*bits, keys[0][asked], keys[1][searched])
    level = nearness(query.vectors[query.row[asked]], entry.vectors[entry.row[searched]], found)
    return asked, found, np.cumsum(shared, axis=1), alike, level


def _rows(
    units: pl.DataFrame,
    query: Embedded,
    entry: Embedded,
    valid: tuple[Bits, Bits],
    keys: tuple[Ints, Ints],
    ks: Sequence[int],
) -> tuple[pl.DataFrame, list[Caution]]:
    """Make the rows of one model and all k; caution where values are rarer than k."""
    asked, found, hits, alike, level = _hits(query, entry, valid, keys, ks[-1])
    unknown = pl.when(pl.col("truth").is_null()).then(pl.lit("unknown truth"))
    why = units.select(unknown).to_series().fill_null(query.reason)
    parts = []
    cautions: list[Caution] = []
    for k in ks:
        value = np.full(units.height, np.nan)
        enough = found[:, k - 1] >= 0
        tied = enough & mostly_tied(level, k)
        judged = enough & (alike > 0)
        value[asked[judged]] = hits[judged, k - 1] / k
        reason = why.to_numpy().copy()
        reason[asked[alike == 0]] = LACKING
        reason[asked[~enough]] = f"fewer than {k} entries to compare with"
        cautions += on_ties(tied, k, query.model)
        parts.append(
            units.select(
                pl.lit(query.model).alias("model"),
                pl.lit("retrieval").alias("task"),
                pl.lit("precision_at_k").alias("metric"),
                pl.lit(float(k)).alias("threshold"),
                pl.lit("instance").alias("unit_kind"),
                pl.col("instance_id").alias("unit_id"),
                "cluster_id",
                pl.Series("value", value).fill_nan(None),
                pl.Series("reason", reason.tolist(), dtype=pl.String),
            )
        )
    rare = on_rare_values(units["truth"][asked], alike, ks, query.model)
    return pl.concat([SCORES.conform(part) for part in parts]), [*cautions, *rare]


def _by_chance(
    parts: Sequence[pl.DataFrame], queries: pl.DataFrame, entries: _Side
) -> list[Caution]:
    """Caution where neighbours share a query's value no more often than the whole database does."""
    known = entries.units["truth"].drop_nulls()
    if not len(known):
        return []
    shares = (
        known.explode()
        .value_counts(name="n")
        .select(truth=pl.col("truth"), share=pl.col("n") / len(known))
    )
    of_query = queries.select(unit_id="instance_id", truth="truth").explode("truth")
    base = of_query.join(shares, on="truth").group_by("unit_id").agg(pl.col("share").sum())
    notes = []
    for part in parts:
        nearest = part.filter(pl.col("threshold") == part["threshold"].min())
        both = nearest.drop_nulls("value").join(base, on="unit_id")
        more = (both["value"] - both["share"]).to_numpy()
        if len(more) < _FEWEST or (both["share"] > 1.0 - 1e-9).all():
            continue
        error = float(more.std(ddof=1)) / len(more) ** 0.5
        if float(more.mean()) <= max(3.0 * error, _ROOM):
            notes.append(
                Caution(
                    f"By the embeddings of {part['model'][0]!r} neighbours share a person's value"
                    f" no more often than anyone in the database does"
                    f" ({np.mean(both['value'].to_numpy()):.2f} and"
                    f" {np.mean(both['share'].to_numpy()):.2f}). Are they of"
                    " these people?"
                )
            )
    return notes


def _tallies(queries: pl.DataFrame, entries: _Side, exclude: str) -> tuple[str, ...]:
    """Say who was asked and searched for, and how common each value is there."""
    unknown = queries["truth"].null_count()
    notes = []
    if unknown:
        notes.append(f"{unknown:,} of {queries.height:,} queries have no known value: not scored.")
    for one in entries.models:
        known = entries.units.filter(pl.Series(one.row >= 0) & pl.col("truth").is_not_null())
        if not known.height:
            continue
        counts = (
            known["truth"]
            .explode()
            .value_counts()
            .sort("truth")
            .sort("count", descending=True, maintain_order=True)
        )
        shares = ", ".join(f"{v} {n / known.height:.1%}" for v, n in counts.head(10).iter_rows())
        left = entries.units.height - known.height
        of = f" of {one.model}" if len(entries.models) > 1 else ""
        notes.append(
            f"The database{of} has {known.height:,} entries ({shares}"
            + (f" and {counts.height - 10:,} more values" if counts.height > 10 else "")
            + ")"
            + (f"; {left:,} without an embedding or a known value are not in it." if left else ".")
        )
    if exclude != "nothing":
        what = {"self": "itself", "image": "entries of its image", "cluster": "its own cluster"}
        notes.append(f"A query is not compared with {what[exclude]}.")
    return tuple(notes)
