"""Consensus labels from several annotators' answers: from ratings to a folder of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.placeholders import caution_on_placeholder_labels
from isolux.people.sources import load_people_or_take_dataset
from isolux_curate.labels import MIN_LABEL_CHANCE, SEED, Consensus, Method, find_consensus_labels

_MIN_CAUTION_SHARE = 0.1  # share of items without a label; from here on a caution


def consensus(
    data: Dataset | str | Path,
    *,
    method: Method = "majority",
    min_votes: int = 2,
    votes_requested: int = 3,
    ignored_answers: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    data_option: Sequence[str] = (),
) -> Consensus:
    r"""Merge several annotators' answers into one label per item, with its certainty.

    Parameters
    ----------
    data : Dataset or str
        ``ratings:FILE``, or such a dataset.
    method : {"majority", "dawid-skene", "glad"}
        majority (FairFace's rule), dawid-skene (each annotator errs in their own way) or glad (a
        skill for each annotator, a difficulty for each item).
    min_votes : int
        For majority: how many annotators must agree.
    votes_requested : int
        For majority: how many annotators are asked at once; an item with more answers and no
        agreement is discarded.
    ignored_answers : sequence of str
        Answers that do not count ("cannot tell").
    withdrawn : str, optional
        File with the ids of people who withdrew.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    data_option : sequence of str
        A setting of the table, NAME=VALUE (``annotator=worker``).

    Returns
    -------
    Consensus
        ``.labels``, ``.chances``, ``.annotators``, ``.notes``; ``.write(folder)``.

    Raises
    ------
    SpecError
        No annotators' answers; two answers of one annotator about an item.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("photo,rater_1,rater_2,rater_3\na,cat,cat,dog\nb,cat,owl,dog\n")
    ...     consensus(f"ratings:{file}").labels.select("instance_id", "label", "status").rows()
    [('a', 'cat', 'agreed'), ('b', None, 'needs more votes')]
    """
    dataset = load_people_or_take_dataset(
        data, withdrawn=withdrawn, allow_unmatched=allow_unmatched, data_option=data_option
    )
    answers = _read_answers_blanking_ignored(
        dataset, (ignored_answers,) if isinstance(ignored_answers, str) else tuple(ignored_answers)
    )
    consensus_labels = find_consensus_labels(
        answers, method=method, min_votes=min_votes, votes_requested=votes_requested
    )
    settings = {"method": method, "ignored_answers": list(ignored_answers)} | (
        {"min_votes": min_votes, "votes_requested": votes_requested}
        if method == "majority"
        else {"min_probability": MIN_LABEL_CHANCE, "seed": SEED}
    )
    record = {"data": dataset.name, "inputs": dict(dataset.inputs), "settings": settings}
    notes = (
        *dataset.notes,
        *caution_on_placeholder_labels(answers["label"], "--ignored-answers "),
        *consensus_labels.notes,
        *_note_unlabelled_items(consensus_labels.labels),
    )
    return replace(consensus_labels, notes=notes, record=record)


def _read_answers_blanking_ignored(
    dataset: Dataset, ignored_answers: Sequence[str]
) -> pl.DataFrame:
    if (
        dataset.bundled_predictions is None
        or "annotator" not in dataset.bundled_predictions.columns
    ):
        raise SpecError(
            "there are no annotators' answers",
            expected="ratings:FILE, with one row per answer or a column for each annotator",
            found=dataset.name,
        )
    answer_rows = dataset.bundled_predictions.filter(
        pl.col("instance_id").is_in(dataset.instances["instance_id"].implode())
    )
    ignored_words = pl.Series([word.strip().lower() for word in ignored_answers], dtype=pl.String)
    word = pl.col("label").str.strip_chars()
    is_empty = word.str.len_chars().eq(0) | word.str.to_lowercase().is_in(ignored_words.implode())
    return answer_rows.with_columns(label=pl.when(~is_empty.fill_null(value=True)).then(word))


def _note_unlabelled_items(labels: pl.DataFrame) -> list[str]:
    """Note how many items have no label, as a caution if they are many."""
    n_unlabelled = int(labels["label"].null_count())
    if not n_unlabelled:
        return []
    text = f"{n_unlabelled:,} of {labels.height:,} items have no label"
    if n_unlabelled < _MIN_CAUTION_SHARE * labels.height:
        return [f"{text}."]
    return [
        Caution(f"{text}, and they are not a random subset. Do most of them come from some groups?")
    ]
