"""Labels from what several annotators answered: from a table of ratings to a folder of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from isolux.people.held import held_people
from isolux.vocabulary.blanks import on_blanks
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.labels import SEED, SURE, Consensus, Method, find_consensus

_LITTLE = 0.1  # of the items, without a label: said first


def consensus(
    data: Dataset | str | Path,
    *,
    method: Method = "majority",
    least: int = 2,
    asked: int = 3,
    ignored: Sequence[str] = (),
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
    least : int
        For majority: how many annotators must agree.
    asked : int
        For majority: how many annotators are asked at once; an item with more answers and no
        agreement is discarded.
    ignored : sequence of str
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
    [('a', 'cat', 'agreed'), ('b', None, 'ask again')]
    """
    dataset = held_people(
        data, withdrawn=withdrawn, allow_unmatched=allow_unmatched, data_option=data_option
    )
    answers = _answers(dataset, (ignored,) if isinstance(ignored, str) else tuple(ignored))
    found = find_consensus(answers, method=method, least=least, asked=asked)
    settings = {"method": method, "ignored": list(ignored)} | (
        {"least": least, "asked": asked} if method == "majority" else {"sure": SURE, "seed": SEED}
    )
    record = {"data": dataset.name, "inputs": dict(dataset.inputs), "settings": settings}
    notes = (
        *dataset.notes,
        *on_blanks(answers["label"], "--ignored "),
        *found.notes,
        *_on_undecided(found.labels),
    )
    return replace(found, notes=notes, record=record)


def _answers(dataset: Dataset, ignored: Sequence[str]) -> pl.DataFrame:
    if dataset.outputs is None or "annotator" not in dataset.outputs.columns:
        raise SpecError(
            "there are no annotators' answers",
            expected="ratings:FILE, with one row per answer or a column for each annotator",
            found=dataset.name,
        )
    held = dataset.outputs.filter(
        pl.col("instance_id").is_in(dataset.instances["instance_id"].implode())
    )
    none = pl.Series([word.strip().lower() for word in ignored], dtype=pl.String)
    word = pl.col("label").str.strip_chars()
    empty = word.str.len_chars().eq(0) | word.str.to_lowercase().is_in(none.implode())
    return held.with_columns(label=pl.when(~empty.fill_null(value=True)).then(word))


def _on_undecided(labels: pl.DataFrame) -> list[str]:
    """Say how many items have no label, first where they are many."""
    left = int(labels["label"].null_count())
    if not left:
        return []
    told = f"{left:,} of {labels.height:,} items have no label"
    if left < _LITTLE * labels.height:
        return [f"{told}."]
    return [
        Caution(f"{told}, and they are not a random subset. Do most of them come from some groups?")
    ]
