"""The group that is true of each person, in the names of a word list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from isolux.tasks._truth import instances_with_truth, values_of_truth
from isolux.tasks._words.lists import WordList
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError

__all__ = ["people_by_group"]


def people_by_group(
    dataset: Dataset,
    target: str | None,
    words: WordList,
    label_map: Mapping[str, Sequence[str]] | None,
    unknown_values: Sequence[str],
) -> pl.DataFrame:
    """List the people with their group."""
    own = {str(old).strip().lower(): new for new, olds in (label_map or {}).items()
           for old in ((olds,) if isinstance(olds, str) else olds)}  # fmt: skip
    strange = [new for new in own.values() if new not in words.groups]
    if strange:
        raise SpecError(
            f"the word list has no group {strange[0]!r}",
            expected="one of " + ", ".join(words.groups),
            found=repr(strange[0]),
            where="label_map",
        )
    known = {**words.values, **own}
    values = values_of_truth(dataset, target).to_list()
    if values and not any(str(value).strip().lower() in known for value in values):
        raise SpecError(
            f"no value of {target or 'classes'!r} is one that the word list knows",
            expected=", ".join(sorted(known)),
            found=", ".join(map(repr, sorted(map(str, values))[:8])),
            where="target",
            hint=f'say which is which: --label-map "{next(iter(words.groups))}={values[0]}"',
        )
    people = instances_with_truth(dataset, target, {}, unknown_values)
    groups = pl.col("truth").list.eval(
        pl.element().str.strip_chars().str.to_lowercase().replace_strict(known, default=None)
    )
    unique = groups.list.drop_nulls().list.unique()
    n = unique.list.len().fill_null(0)
    return people.select(
        "unit_id",
        "cluster_id",
        truth=pl.when(n == 1).then(unique.list.first()),
        reason=pl.when(pl.col("truth").is_null())
        .then(pl.lit("unknown truth"))
        .when(n == 0)
        .then(pl.lit("no words for this value"))
        .when(n > 1)
        .then(pl.lit("several groups are true")),
    )
