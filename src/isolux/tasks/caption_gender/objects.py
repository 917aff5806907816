"""What is in a picture, which of it a caption names, and what looks wrong there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from isolux.io.settings_files import read_mapping
from isolux.tasks._truth import instances_with_truth
from isolux.tasks._words.lists import WordList
from isolux.tasks._words.mentions import words_of
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution


def true_objects(dataset: Dataset, objects: str, unknown_values: Sequence[str]) -> pl.DataFrame:
    """List what is in each person's picture: ``unit_id, objects``; empty where nothing is said."""
    found = instances_with_truth(dataset, objects, {}, unknown_values)
    return found.select(
        "unit_id", objects=pl.col("truth").fill_null(pl.lit([], pl.List(pl.String)))
    )


def read_object_words(file: str | None, there: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Give each object the words that name it, in a file or its own name."""
    names = there["objects"].explode().drop_nulls().unique().sort().to_list()
    if file is None:
        return {name: (name, f"{name}s") for name in names}
    told: Mapping[str, object] = read_mapping(file)
    found = {
        name: tuple(map(str, words if isinstance(words, list) else [words]))
        for name, words in told.items()
        if name in names
    }
    if names and not found:
        raise SpecError(
            "the words of objects are of none that is in the pictures",
            expected="names such as " + ", ".join(map(repr, names[:3])),
            found=", ".join(map(repr, list(told)[:3])),
            where=file,
        )
    return {name: found.get(name, (name, f"{name}s")) for name in names}


def with_said_objects(judged: pl.DataFrame, words: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Add ``said_objects``, those that each text names, words in a row."""
    text = pl.format(" {} ", pl.col("_words").list.join(" "))
    named = [
        pl.when(
            pl.any_horizontal(
                text.str.contains(f" {' '.join(words_of(pl.Series([word]))[0])} ", literal=True)
                for word in said
            )
        ).then(pl.lit(name))
        for name, said in words.items()
    ]
    whole = judged.with_columns(words_of(judged["text"]).fill_null(pl.Series([[]])).alias("_words"))
    none = pl.lit([], dtype=pl.List(pl.String))
    found = pl.concat_list(named).list.drop_nulls() if named else none
    return whole.with_columns(said_objects=found).drop("_words")


_FEW = 10  # pictures with an object: fewer say little of whom it goes with
_MANY = 0.1  # of the objects
_EMPTY = 1 / 3  # of the pictures
_SHOWN = 4
_APART = re.compile(r"[\W_]+")


def doubts(judged: pl.DataFrame, words: Mapping[str, Sequence[str]], listed: WordList) -> list[str]:
    """Caution about objects that captions never name, that are people, that are two, or rare."""
    used = judged.filter(pl.col("reason").is_null())
    if not used.height:
        return []
    there = _counts(used.unique("unit_id"), "objects")
    said = _counts(used, "said_objects")
    unnamed = [name for name, n in there.items() if n >= _FEW and not said.get(name)]
    notes: list[str] = []
    if unnamed:
        notes.append(
            Caution(
                f"{len(unnamed):,} of {len(there):,} objects are named in no caption: "
                f"{_listed(unnamed)}. Do they have other names there (--object-words FILE), or are "
                "several in one cell (--separator)?"
            )
        )
    return [*notes, *_of_people(there, words, listed), *_twice(there), *_rare(there), *_none(used)]


def _counts(rows: pl.DataFrame, column: str) -> dict[str, int]:
    names = rows.select(pl.col(column).list.unique()).explode(column).drop_nulls()
    return dict(names[column].value_counts().sort(column).iter_rows())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def _of_people(
    there: Mapping[str, int], words: Mapping[str, Sequence[str]], listed: WordList
) -> list[Caution]:
    """Objects that are called as a gender is: they go with it by their name alone."""
    people = frozenset().union(*listed.groups.values())
    found = [
        name for name in there
        if any(set(words_of(pl.Series([one]))[0]) & people for one in words.get(name, (name,)))
    ]  # fmt: skip
    if not found:
        return []
    return [
        Caution(
            f"Objects that are words for people of a gender: {_listed(found)}. They go with it by"
            " their name alone: leave them out of the objects."
        )
    ]


def _twice(there: Mapping[str, int]) -> list[Caution]:
    seen: dict[str, list[str]] = {}
    for name in there:
        seen.setdefault(_APART.sub(" ", name.casefold()).strip(), []).append(name)
    twins = [" and ".join(map(repr, one)) for one in seen.values() if len(one) > 1]
    if not twins:
        return []
    shown = "; ".join(twins[:_SHOWN]) + ("; …" if len(twins) > _SHOWN else "")
    return [Caution(f"Objects differ in their spelling alone: {shown}. They count as two.")]


def _rare(there: Mapping[str, int]) -> list[Caution]:
    rare = [name for name, n in there.items() if n < _FEW]
    if len(rare) < _MANY * len(there) or not rare:
        return []
    return [
        Caution(
            f"{len(rare):,} of {len(there):,} objects are in fewer than {_FEW} pictures:"
            f" {_listed(rare)}. Each weighs as much as the others in bias amplification, and one"
            " that is there once can only be joined less often: leave them out of the objects."
        )
    ]


def _none(used: pl.DataFrame) -> list[str]:
    each = used.unique("unit_id")
    none = int((each["objects"].list.len() == 0).sum())
    if not none:
        return []
    text = (
        f"{none:,} of {each.height:,} pictures list no object, and count as pictures without any."
        " If nothing was annotated there, leave them out (--only)."
    )
    return [Caution(text) if none > _EMPTY * each.height else text]
