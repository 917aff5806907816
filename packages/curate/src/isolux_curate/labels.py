"""Consensus: one label an item from several annotators' answers, with its probability.

Sources: Kärkkäinen & Joo (2021), section 3.3 (FairFace: two of three annotators, else three new
ones, else the photo is discarded); Gustafson et al. (2023), section 4 (FACET: votes are summed and
kept); Dawid & Skene (1979); Whitehill et al. (2009).

The majority rule: the label with enough votes, and the status of items without agreement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.stats.annotators import (
    AnnotatorLabels,
    AnnotatorModel,
    fit_dawid_skene,
    fit_glad,
    label_shares_by_item,
)
from isolux.stats.statistic import FloatArray
from isolux_curate.table_folder import write_csv_tables_and_record


def choose_majority_label_or_null(
    answer_rows: pl.DataFrame,
    items: pl.Series,
    label_values: pl.Series,
    min_votes: int,
    votes_requested: int,
) -> tuple[pl.DataFrame, FloatArray]:
    """Take the label with at least ``min_votes`` votes and more than any other.

    Returns ``shares`` [items, values].
    """
    last_round_rows = answer_rows
    if "round" in answer_rows.columns:
        last_round = pl.col("round").cast(pl.Int64).max().over("instance_id")
        last_round_rows = answer_rows.filter(pl.col("round").cast(pl.Int64) == last_round)
    votes, all_votes = (
        _count_votes_by_item_label(rows, items, label_values)
        for rows in (last_round_rows, answer_rows)
    )
    label_index = votes.argmax(axis=1)
    max_votes = votes.max(axis=1)
    second_votes = (
        np.partition(votes, -2, axis=1)[:, -2] if votes.shape[1] > 1 else np.zeros_like(max_votes)
    )
    is_agreed = (max_votes >= min_votes) & (max_votes > second_votes)
    n_votes, n_answers = votes.sum(axis=1), all_votes.sum(axis=1)
    is_final = n_answers > votes_requested
    if "round" in answer_rows.columns:
        rounds = answer_rows.group_by("instance_id").agg(pl.col("round").cast(pl.Int64).max())
        item_rounds = items.to_frame("instance_id").join(rounds, on="instance_id", how="left")
        is_final = (item_rounds["round"].fill_null(1) > 1).to_numpy()
    status = np.where(is_agreed, "agreed", np.where(is_final, "discard", "needs more votes"))
    vote_share = np.divide(
        max_votes, n_votes, out=np.full(len(max_votes), np.nan), where=n_votes > 0
    )
    labels = pl.DataFrame(
        {
            "instance_id": items,
            "label": pl.Series(label_values[label_index.tolist()]).set(pl.Series(~is_agreed), None),
            "chance": pl.Series(vote_share).fill_nan(None),
            "answers": n_answers.astype(np.int64),
            "status": status,
        }
    )
    return labels, np.asarray(all_votes / np.maximum(n_answers[:, None], 1.0))


def _count_votes_by_item_label(
    answer_rows: pl.DataFrame, items: pl.Series, label_values: pl.Series
) -> FloatArray:
    item_index = (
        answer_rows["instance_id"].cast(pl.Enum(items)).to_physical().to_numpy().astype(np.int64)
    )
    value_index = (
        answer_rows["label"].cast(pl.Enum(label_values)).to_physical().to_numpy().astype(np.int64)
    )
    votes = np.bincount(
        item_index * len(label_values) + value_index, minlength=len(items) * len(label_values)
    )
    return np.asarray(votes.reshape(len(items), len(label_values)), dtype=np.float64)


CONSENSUS_FILE = "consensus.json"
Method = Literal["majority", "dawid-skene", "glad"]
AGREED, NEEDS_MORE_VOTES, DISCARD = "agreed", "needs more votes", "discard"
MIN_LABEL_CHANCE, SEED = (
    0.5,
    0,
)  # the probability that a model's label must exceed; the bootstrap's seed
_MAX_CLASSES = 500
_REPLICATES, _LEVEL = 200, 0.95
_MIN_SHARED_ITEMS = 10  # with fewer items in common, error rates of annotators cannot be estimated
_MIN_OTHERS = 2  # other annotators of the same items, below which error rates are not identified


@dataclass(frozen=True, slots=True)
class Consensus:
    """Labels and their probabilities.

    Parameters
    ----------
    labels : polars.DataFrame
        One row an item: ``instance_id, label`` (null where none stands), ``chance`` (0 to 1: of
        the label by the model; of a majority, the share of answers), ``answers`` (how many),
        ``status`` (agreed, needs more votes, discard).
    chances : polars.DataFrame
        ``instance_id`` and a column for each answer: its chance, or its share of the votes.
    annotators : polars.DataFrame
        ``annotator, answers, right, low, high``: the share of an annotator's answers that the
        consensus takes for right, with an interval (null for a majority, which weighs all alike,
        and for annotators whose errors the answers do not determine).
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

    def write(self, out_dir: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``labels.csv``, ``chances.csv``, ``annotators.csv`` and ``consensus.json``."""
        tables = {n: getattr(self, n) for n in ("labels", "chances", "annotators")}
        record = {**self.record, "notes": list(self.notes)}
        folder = write_csv_tables_and_record(
            out_dir,
            tables,
            record,
            record_file=CONSENSUS_FILE,
            folder_kind="consensus folder",
            overwrite=overwrite,
        )
        return folder / "labels.csv"


def find_consensus_labels(
    answers: pl.DataFrame,
    *,
    method: Method = "majority",
    min_votes: int = 2,
    votes_requested: int = 3,
) -> Consensus:
    """Find the label of each item.

    Examples
    --------
    >>> said = pl.DataFrame({"instance_id": list("aaabbb"), "annotator": list("xyzxyz"),
    ...                      "label": ["cat", "cat", "dog", "cat", "dog", "owl"]})
    >>> find_consensus_labels(said).labels.select("instance_id", "label", "status").rows()
    [('a', 'cat', 'agreed'), ('b', None, 'needs more votes')]
    """
    _refuse_impossible_settings(method, min_votes, votes_requested)
    labelled_answers = answers.drop_nulls("label")
    _refuse_unusable_answers(labelled_answers)
    items = answers["instance_id"].unique(maintain_order=True)
    values, annotators_sorted = (
        labelled_answers["label"].unique().sort(),
        labelled_answers["annotator"].unique().sort(),
    )
    encoded_answers = _encode_answers_as_indices(labelled_answers, items, values, annotators_sorted)
    if method == "majority":
        labels, chance = choose_majority_label_or_null(
            labelled_answers, items, values, min_votes, votes_requested
        )
        agreement = _compute_agreement_with_consensus(labelled_answers, labels, annotators_sorted)
        return Consensus(
            labels, _build_label_probability_table(items, values, chance), agreement, ()
        )
    fit_model = fit_dawid_skene if method == "dawid-skene" else fit_glad
    fitted_model = fit_model(encoded_answers)
    notes = (
        ()
        if fitted_model.has_converged
        else (Caution(f"{method} did not settle: read it with care."),)
    )
    can_be_judged, judging_notes = _flag_judgeable_annotators(encoded_answers, annotators_sorted)
    labels = _choose_labels_or_null(
        fitted_model.posterior, items, values, encoded_answers, can_be_judged
    )
    annotators = _bootstrap_annotator_accuracy(
        encoded_answers, annotators_sorted, fitted_model, fit_model
    )
    return Consensus(
        labels,
        _build_label_probability_table(items, values, fitted_model.posterior),
        annotators.with_columns(
            pl.when(pl.Series(can_be_judged)).then(pl.col("right", "low", "high"))
        ),
        (*judging_notes, *notes),
    )


def _refuse_impossible_settings(method: str, min_votes: int, votes_requested: int) -> None:
    if method not in get_args(Method):
        raise SpecError(
            "this is not a method of consensus",
            expected=", ".join(get_args(Method)),
            found=repr(method),
            where="method",
        )
    if not 1 <= min_votes <= votes_requested:
        raise SpecError(
            "no majority can come of this",
            expected="min_votes from 1 to votes_requested",
            found=f"min_votes {min_votes}, votes_requested {votes_requested}",
            where="min_votes",
        )


def _refuse_unusable_answers(answer_rows: pl.DataFrame) -> None:
    if not answer_rows.height:
        raise SpecError("there are no answers", expected="a label in some row", found="none")
    rounds = ["round"] if "round" in answer_rows.columns else []
    duplicates = answer_rows.filter(pl.struct("instance_id", "annotator", *rounds).is_duplicated())
    if duplicates.height:
        first = duplicates.sort("instance_id", "annotator").head(2)
        raise SpecError(
            "an annotator gave an item several answers",
            expected="one answer of an annotator about an item",
            found=f"{first['annotator'][0]!r} about {first['instance_id'][0]!r}:"
            f" {first['label'][0]!r} and {first['label'][1]!r}",
            hint="several marks by one annotator, as for hair types, are not a single answer:"
            " isolux curate publish takes those that more than half of the annotators made",
        )
    classes = answer_rows["label"].n_unique()
    if classes > _MAX_CLASSES:
        raise SpecError(
            f"there are {classes:,} different answers",
            expected=f"at most {_MAX_CLASSES} that are chosen from",
            found=", ".join(map(repr, answer_rows["label"].head(3))) + ", …",
        )


def _encode_answers_as_indices(
    answer_rows: pl.DataFrame, items: pl.Series, label_values: pl.Series, annotators: pl.Series
) -> AnnotatorLabels:
    def encode_column(column: str, categories: pl.Series) -> npt.NDArray[np.int32]:
        return answer_rows[column].cast(pl.Enum(categories)).to_physical().cast(pl.Int32).to_numpy()

    item_index = encode_column("instance_id", items)
    order = np.argsort(item_index, kind="stable")
    annotator_index, label_index = (
        encode_column("annotator", annotators)[order],
        encode_column("label", label_values)[order],
    )
    return AnnotatorLabels(
        item_index[order],
        annotator_index,
        label_index,
        len(items),
        len(annotators),
        len(label_values),
    )


def _choose_labels_or_null(
    posterior: FloatArray,
    items: pl.Series,
    label_values: pl.Series,
    encoded_answers: AnnotatorLabels,
    can_be_judged: npt.NDArray[np.bool_],
) -> pl.DataFrame:
    label_index = posterior.argmax(axis=1)
    n_answers = np.bincount(encoded_answers.item_index, minlength=encoded_answers.n_items)
    max_chance = posterior[np.arange(encoded_answers.n_items), label_index]
    is_tied = (
        np.isclose(posterior, max_chance[:, None]).sum(axis=1) > 1
    )  # ties stay unresolved: the order of answers is arbitrary
    is_weighed = np.zeros(encoded_answers.n_items, dtype=np.bool_)
    is_weighed[encoded_answers.item_index[can_be_judged[encoded_answers.annotator_index]]] = True
    is_unanimous = label_shares_by_item(encoded_answers).max(axis=1, initial=0.0) == 1.0
    has_label = (
        (max_chance > MIN_LABEL_CHANCE) & (n_answers > 1) & ~is_tied & (is_weighed | is_unanimous)
    )  # one answer is no agreement
    return pl.DataFrame(
        {
            "instance_id": items,
            "label": pl.Series(label_values[label_index.tolist()]).set(pl.Series(~has_label), None),
            "chance": pl.Series(np.where(n_answers > 0, max_chance, np.nan)).fill_nan(None),
            "answers": n_answers,
            "status": pl.Series(np.where(has_label, AGREED, NEEDS_MORE_VOTES)),
        }
    )


def _build_label_probability_table(
    items: pl.Series, label_values: pl.Series, probabilities: FloatArray
) -> pl.DataFrame:
    used_names = {"instance_id"}
    names = [f"{label} (answer)" if label in used_names else str(label) for label in label_values]
    columns: Mapping[str, Any] = {n: probabilities[:, k] for k, n in enumerate(names)}
    return pl.DataFrame({"instance_id": items, **columns})


def _compute_agreement_with_consensus(
    answer_rows: pl.DataFrame, labels: pl.DataFrame, annotators: pl.Series
) -> pl.DataFrame:
    """Compute each annotator's share of answers that equal the consensus; without an interval."""
    agreed_labels = labels.filter(status=AGREED).select("instance_id", stands="label")
    counts = (
        answer_rows.join(agreed_labels, on="instance_id", how="left")
        .group_by("annotator")
        .agg(answers=pl.len(), right=(pl.col("label") == pl.col("stands")).mean())
    )
    table = pl.DataFrame({"annotator": annotators}).join(counts, on="annotator", how="left")
    null = pl.lit(None, dtype=pl.Float64)
    return table.with_columns(low=null, high=null).sort("annotator")


def _bootstrap_annotator_accuracy(
    encoded_answers: AnnotatorLabels,
    annotators: pl.Series,
    fitted_model: AnnotatorModel,
    fit_model: Any,
) -> pl.DataFrame:
    """Bootstrap items for percentile intervals of each annotator's share of correct answers."""
    rng = np.random.default_rng(SEED)
    replicates = np.empty((_REPLICATES, encoded_answers.n_annotators))
    for replicate in range(_REPLICATES):
        weights = rng.multinomial(
            encoded_answers.n_items, np.full(encoded_answers.n_items, 1 / encoded_answers.n_items)
        )
        replicate_fit = fit_model(
            encoded_answers,
            item_weights=weights.astype(np.float64),
            start_posterior=fitted_model.posterior,
            max_rounds=200,
            tolerance=1e-4,
        )
        replicates[replicate] = replicate_fit.accuracy
    tail = (1 - _LEVEL) / 2
    with np.errstate(all="ignore"):
        low, high = np.nanquantile(replicates, [tail, 1 - tail], axis=0)
    return pl.DataFrame(
        {
            "annotator": annotators,
            "answers": np.bincount(
                encoded_answers.annotator_index, minlength=encoded_answers.n_annotators
            ),
            "right": fitted_model.accuracy,
            "low": np.fmin(low, fitted_model.accuracy),
            "high": np.fmax(high, fitted_model.accuracy),
        }
    ).with_columns(pl.col("right", "low", "high").fill_nan(None))


def _flag_judgeable_annotators(
    encoded_answers: AnnotatorLabels, annotators: pl.Series
) -> tuple[npt.NDArray[np.bool_], tuple[str, ...]]:
    """Flag annotators whose error rates the answers determine, with cautions about the others.

    Of two annotators who differ, no data say which one errs: error rates are identified from three
    annotators on (Dawid & Skene's model is a latent class model; Kruskal 1977).
    """
    from scipy.sparse import coo_array

    n_labels = len(encoded_answers.item_index)
    has_answered = coo_array(
        (np.ones(n_labels), (encoded_answers.item_index, encoded_answers.annotator_index)),
        shape=(encoded_answers.n_items, encoded_answers.n_annotators),
    ).tocsr()
    has_answered.data[:] = 1.0  # one for several rounds
    n_others = np.diff((has_answered.T @ has_answered).tocsr().indptr) - 1
    is_shared_item = np.asarray(has_answered.sum(axis=1)) > 1
    n_shared = is_shared_item.astype(np.float64) @ has_answered
    if encoded_answers.n_classes == 1:
        sentence = "All answers are the same: how often annotators err cannot be known."
        return np.zeros(encoded_answers.n_annotators, dtype=np.bool_), (Caution(sentence),)
    is_isolated = n_shared < _MIN_SHARED_ITEMS
    is_paired = ~is_isolated & (n_others < _MIN_OTHERS)
    notes = []
    for mask, verb_phrase, consequence in (
        (
            is_isolated,
            f"share fewer than {_MIN_SHARED_ITEMS} items with another",
            "how often they err cannot be known.",
        ),
        (
            is_paired,
            "share items with one other alone",
            "which of two errs cannot be known. Where they differ, there is no label.",
        ),
    ):
        names = [str(annotators[int(k)]) for k in np.flatnonzero(mask)]
        if names:
            name_list = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
            notes.append(
                Caution(
                    f"{len(names):,} of {len(annotators):,} annotators {verb_phrase} ({name_list}):"
                    f" {consequence}"
                )
            )
    return ~(is_isolated | is_paired), tuple(notes)
