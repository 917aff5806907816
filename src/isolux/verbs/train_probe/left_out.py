"""Who gets no label of a probe: people who withdrew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from isolux.people.held import held_people
from isolux.people.known_ids import ids_by_name, matched
from isolux.people.withdrawal import without_withdrawn
from isolux.people.withdrawn_lists import WithdrawnList, many, read_withdrawn
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

Features = tuple[pl.DataFrame, Path, int]
"""Features, their file, and how many pictures have none."""
_OF_PICTURES = (None, "instance_id", "image_id")  # kinds of ids that a file of features can hold


def not_withdrawn(
    others: Sequence[Features], data: Dataset | str | Path, withdrawn: str | None, **settings: Any
) -> tuple[list[Features], list[str]]:
    """Leave out the features of who withdrew, by the ids of the data and by the features' own."""
    if withdrawn is None or not others:
        return list(others), []
    whole = held_people(data, **settings)
    listed = read_withdrawn(withdrawn).going_by(ids_by_name(whole))
    kept = without_withdrawn(whole, listed, allow_unmatched=True)
    gone = whole.instances.join(kept.instances, on="instance_id", how="anti")["instance_id"]
    left, notes = [], []
    for frame, path, silent in others:
        goes = frame["instance_id"].is_in(gone.implode()) | _named(frame["instance_id"], listed)
        if goes.all():
            raise SpecError(
                "nobody is left to be labelled: everyone withdrew", where=str(path),
                hint="leave this file out of --apply",
            )  # fmt: skip
        left.append((frame.filter(~goes), path, silent))
        if goes.any():
            told = many(int(goes.sum()), "picture", "pictures")
            notes.append(f"{told} of {path.name} of people who withdrew get no label.")
    return left, notes


def _named(ids: pl.Series, listed: WithdrawnList) -> pl.Series:
    """Find the features that the list names itself, of pictures that the data do not know."""
    if listed.column not in _OF_PICTURES:
        return pl.repeat(value=False, n=len(ids), dtype=pl.Boolean, eager=True)
    known = pl.DataFrame({"who": ids, "kind": "instance_id", "id": ids})
    asked = pl.Series(sorted(listed.among(ids).ids), dtype=pl.String)
    return ids.is_in(matched(known, asked)["who"].implode())
