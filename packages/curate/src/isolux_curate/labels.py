"""Consensus: one label an item, of what several annotators answered, with how sure it is.

Sources: Kärkkäinen & Joo (2021), section 3.3 (FairFace: two of three annotators, else three new
ones, else the photo is discarded); Gustafson et al. (2023), section 4 (FACET: votes are summed and
kept); Dawid & Skene (1979); Whitehill et al. (2009).

The majority rule: who has enough votes, and what becomes of an item on which nobody agrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.annotators import Answers, Fitted, dawid_skene_of_answers, glad
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.table_folder import write_tables


def voted(
    held: pl.DataFrame, items: pl.Series, values: pl.Series, least: int, asked: int
) -> tuple[pl.DataFrame, FloatArray]:
    """Take the answer with at least ``least`` votes and more than any other.

    Returns ``shares`` [items, values].
    """
    counted = held
    if "round" in held.columns:
        last = pl.col("round").cast(pl.Int64).max().over("instance_id")
        counted = held.filter(pl.col("round").cast(pl.Int64) == last)
    votes, all_votes = (_tallied(rows, items, values) for rows in (counted, held))
    best = votes.argmax(axis=1)
    most = votes.max(axis=1)
    second = np.partition(votes, -2, axis=1)[:, -2] if votes.shape[1] > 1 else np.zeros_like(most)
    agreed = (most >= least) & (most > second)
    total, every = votes.sum(axis=1), all_votes.sum(axis=1)
    again = every > asked
    if "round" in held.columns:
        rounds = held.group_by("instance_id").agg(pl.col("round").cast(pl.Int64).max())
        joined = items.to_frame("instance_id").join(rounds, on="instance_id", how="left")
        again = (joined["round"].fill_null(1) > 1).to_numpy()
    status = np.where(agreed, "agreed", np.where(again, "discard", "ask again"))
    share = np.divide(most, total, out=np.full(len(most), np.nan), where=total > 0)
    labels = pl.DataFrame(
        {
            "instance_id": items,
            "label": pl.Series(values[best.tolist()]).set(pl.Series(~agreed), None),
            "chance": pl.Series(share).fill_nan(None),
            "answers": every.astype(np.int64),
            "status": status,
        }
    )
    return labels, np.asarray(all_votes / np.maximum(every[:, None], 1.0))


def _tallied(rows: pl.DataFrame, items: pl.Series, values: pl.Series) -> FloatArray:
    item = rows["instance_id"].cast(pl.Enum(items)).to_physical().to_numpy().astype(np.int64)
    value = rows["label"].cast(pl.Enum(values)).to_physical().to_numpy().astype(np.int64)
    flat = np.bincount(item * len(values) + value, minlength=len(items) * len(values))
    return np.asarray(flat.reshape(len(items), len(values)), dtype=np.float64)


MARK = "consensus.json"
Method = Literal["majority", "dawid-skene", "glad"]
AGREED, ASK, DISCARD = "agreed", "ask again", "discard"
SURE, SEED = 0.5, 0  # the chance that a model's label must exceed; of annotators' intervals
_MOST_CLASSES = 500
_REPLICATES, _LEVEL = 200, 0.95
_SHARED = 10  # items that two annotators judge in common, below which no one knows who errs


@dataclass(frozen=True, slots=True)
class Consensus:
    """Labels, and how sure they are.

    Parameters
    ----------
    labels : polars.DataFrame
        One row an item: ``instance_id, label`` (null where none stands), ``chance`` (0 to 1: of
        the label by the model; of a majority, the share of answers), ``answers`` (how many),
        ``status`` (agreed, ask again, discard).
    chances : polars.DataFrame
        ``instance_id`` and a column for each answer: its chance, or its share of the votes.
    annotators : polars.DataFrame
        ``annotator, answers, right, low, high``: the share of an annotator's answers that the
        consensus takes for right, with an interval (null for a majority, which weighs all alike).
    notes : tuple of str
    record : mapping of str to object
        The data, their hashes, the settings.

    Examples
    --------
    See ``isolux_curate.consensus``.
    """

    labels: pl.DataFrame
    chances: pl.DataFrame
    annotators: pl.DataFrame
    notes: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    def write(self, out: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``labels.csv``, ``chances.csv``, ``annotators.csv`` and ``consensus.json``."""
        tables = {n: getattr(self, n) for n in ("labels", "chances", "annotators")}
        told = {**self.record, "notes": list(self.notes)}
        folder = write_tables(
            out, tables, told, mark=MARK, what="consensus folder", overwrite=overwrite
        )
        return folder / "labels.csv"


def find_consensus(
    answers: pl.DataFrame,
    *,
    method: Method = "majority",
    least: int = 2,
    asked: int = 3,
) -> Consensus:
    """Find the label of each item.

    Examples
    --------
    >>> said = pl.DataFrame({"instance_id": list("aaabbb"), "annotator": list("xyzxyz"),
    ...                      "label": ["cat", "cat", "dog", "cat", "dog", "owl"]})
    >>> find_consensus(said).labels.select("instance_id", "label", "status").rows()
    [('a', 'cat', 'agreed'), ('b', None, 'ask again')]
    """
    _refuse_settings(method, least, asked)
    held = answers.drop_nulls("label")
    _refuse_answers(held)
    items = answers["instance_id"].unique(maintain_order=True)
    values, people = held["label"].unique().sort(), held["annotator"].unique().sort()
    given = _numbered(held, items, values, people)
    if method == "majority":
        labels, chance = voted(held, items, values, least, asked)
        right = _agreeing(held, labels, people)
        return Consensus(labels, _wide(items, values, chance), right, ())
    fit = dawid_skene_of_answers if method == "dawid-skene" else glad
    fitted = fit(given)
    notes = () if fitted.settled else (Caution(f"{method} did not settle: read it with care."),)
    told = _on_shared(given, people)
    labels = _labels(fitted.chance, items, values, given)
    annotators = _with_intervals(given, people, fitted, fit)
    return Consensus(labels, _wide(items, values, fitted.chance), annotators, (*told, *notes))


def _refuse_settings(method: str, least: int, asked: int) -> None:
    if method not in get_args(Method):
        raise SpecError(
            "this is not a method of consensus",
            expected=", ".join(get_args(Method)),
            found=repr(method),
            where="method",
        )
    if not 1 <= least <= asked:
        raise SpecError(
            "no majority can come of this",
            expected="least from 1 to asked",
            found=f"least {least}, asked {asked}",
            where="least",
        )


def _refuse_answers(held: pl.DataFrame) -> None:
    if not held.height:
        raise SpecError("there are no answers", expected="a label in some row", found="none")
    rounds = ["round"] if "round" in held.columns else []
    twice = held.filter(pl.struct("instance_id", "annotator", *rounds).is_duplicated())
    if twice.height:
        first = twice.sort("instance_id", "annotator").head(2)
        raise SpecError(
            "an annotator gave an item several answers",
            expected="one answer of an annotator about an item",
            found=f"{first['annotator'][0]!r} about {first['instance_id'][0]!r}:"
            f" {first['label'][0]!r} and {first['label'][1]!r}",
            hint="several marks by one annotator, as for skin tones, are not a single answer: "
            "isolux curate publish merges them into one value",
        )
    classes = held["label"].n_unique()
    if classes > _MOST_CLASSES:
        raise SpecError(
            f"there are {classes:,} different answers",
            expected=f"at most {_MOST_CLASSES} that are chosen from",
            found=", ".join(map(repr, held["label"].head(3))) + ", …",
        )


def _numbered(held: pl.DataFrame, items: pl.Series, values: pl.Series, who: pl.Series) -> Answers:
    def codes(name: str, known: pl.Series) -> npt.NDArray[np.int32]:
        return held[name].cast(pl.Enum(known)).to_physical().cast(pl.Int32).to_numpy()

    item = codes("instance_id", items)
    order = np.argsort(item, kind="stable")
    by, said = codes("annotator", who)[order], codes("label", values)[order]
    return Answers(item[order], by, said, len(items), len(who), len(values))


def _labels(
    chance: FloatArray, items: pl.Series, values: pl.Series, given: Answers
) -> pl.DataFrame:
    best = chance.argmax(axis=1)
    count = np.bincount(given.item, minlength=given.items)
    top = chance[np.arange(given.items), best]
    tied = np.isclose(chance, top[:, None]).sum(axis=1) > 1  # no order of answers breaks a tie
    stands = (top > SURE) & (count > 1) & ~tied  # one answer is no agreement
    return pl.DataFrame(
        {
            "instance_id": items,
            "label": pl.Series(values[best.tolist()]).set(pl.Series(~stands), None),
            "chance": pl.Series(np.where(count > 0, top, np.nan)).fill_nan(None),
            "answers": count,
            "status": pl.Series(np.where(stands, AGREED, ASK)),
        }
    )


def _wide(items: pl.Series, values: pl.Series, chance: FloatArray) -> pl.DataFrame:
    taken = {"instance_id"}
    names = [f"{value} (answer)" if value in taken else str(value) for value in values]
    columns: Mapping[str, Any] = {n: chance[:, k] for k, n in enumerate(names)}
    return pl.DataFrame({"instance_id": items, **columns})


def _agreeing(held: pl.DataFrame, labels: pl.DataFrame, people: pl.Series) -> pl.DataFrame:
    """Count how often each annotator said what stands; a majority has no interval for that."""
    agreed = labels.filter(status=AGREED).select("instance_id", stands="label")
    counted = (
        held.join(agreed, on="instance_id", how="left")
        .group_by("annotator")
        .agg(answers=pl.len(), right=(pl.col("label") == pl.col("stands")).mean())
    )
    table = pl.DataFrame({"annotator": people}).join(counted, on="annotator", how="left")
    none = pl.lit(None, dtype=pl.Float64)
    return table.with_columns(low=none, high=none).sort("annotator")


def _with_intervals(given: Answers, people: pl.Series, fitted: Fitted, fit: Any) -> pl.DataFrame:
    """Fit anew on resampled items: the percentiles of each annotator's share of right answers."""
    rng = np.random.default_rng(SEED)
    drawn = np.empty((_REPLICATES, given.annotators))
    for r in range(_REPLICATES):
        weights = rng.multinomial(given.items, np.full(given.items, 1 / given.items))
        again = fit(
            given, weights=weights.astype(np.float64), start=fitted.chance, rounds=200, close=1e-4
        )
        drawn[r] = again.right
    tail = (1 - _LEVEL) / 2
    with np.errstate(all="ignore"):
        low, high = np.nanquantile(drawn, [tail, 1 - tail], axis=0)
    return pl.DataFrame(
        {
            "annotator": people,
            "answers": np.bincount(given.who, minlength=given.annotators),
            "right": fitted.right,
            "low": np.fmin(low, fitted.right),
            "high": np.fmax(high, fitted.right),
        }
    ).with_columns(pl.col("right", "low", "high").fill_nan(None))


def _on_shared(given: Answers, people: pl.Series) -> tuple[str, ...]:
    """Caution about annotators who judged almost nothing that another judged too."""
    several = np.bincount(given.item, minlength=given.items) > 1
    shared = np.bincount(given.who, several[given.item], given.annotators)
    alone = [str(people[int(k)]) for k in np.flatnonzero(shared < _SHARED)]
    if not alone:
        return ()
    named = ", ".join(alone[:3]) + (", …" if len(alone) > 3 else "")
    return (
        Caution(
            f"{len(alone):,} of {len(people):,} annotators share fewer than {_SHARED} items with"
            f" another ({named}): how often they err is all but a guess."
        ),
    )
