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
    pictures = used.unique("unit_id")
    there, said = _counts(pictures, "objects"), _counts(used, "said_objects")
    unnamed = [name for name, n in there.items() if n >= _FEW and not said.get(name)]
    text = (
        f"{len(unnamed):,} of {len(there):,} objects are named in no caption: "
        f"{_listed(unnamed)}. Do they have other names there (--object-words FILE), or are "
        "several in one cell (--option separator=…)?"
    )
    notes: list[str] = [Caution(text)] if unnamed else []
    none = int((pictures["objects"].list.len() == 0).sum())
    empty = (
        f"{none:,} of {pictures.height:,} pictures list no object, and count as pictures without"
        " any. If nothing was annotated there, leave them out (--only)."
    )
    many = none > _EMPTY * pictures.height
    last = [Caution(empty) if many else empty] if none else []
    return [*notes, *_on_names(there, words, listed), *last]


def _on_names(
    there: Mapping[str, int], words: Mapping[str, Sequence[str]], listed: WordList
) -> list[Caution]:
    """Caution about objects that are people, are spelt in two ways, or are in few pictures."""
    people = frozenset().union(*listed.groups.values())
    of_people = [
        name
        for name in there
        if any(set(words_of(pl.Series([one]))[0]) & people for one in words.get(name, (name,)))
    ]
    spelt: dict[str, list[str]] = {}
    for name in there:
        spelt.setdefault(_APART.sub(" ", name.casefold()).strip(), []).append(name)
    twins = [" and ".join(map(repr, one)) for one in spelt.values() if len(one) > 1]
    shown = "; ".join(twins[:_SHOWN]) + ("; …" if len(twins) > _SHOWN else "")
    rare = [name for name, n in there.items() if n < _FEW]
    gendered = (
        f"Objects that are words for people of a gender: {_listed(of_people)}. They go with it by"
        " their name alone: leave them out of the objects."
    )
    alike = f"Objects differ in their spelling alone: {shown}. They count as two."
    seldom = (
        f"{len(rare):,} of {len(there):,} objects are in fewer than {_FEW} pictures:"
        f" {_listed(rare)}. Each weighs as much as the others in bias amplification, and one that"
        " is there once can only be joined less often: leave them out of the objects."
    )
    is_rare = rare and len(rare) >= _MANY * len(there)
    told = ((of_people, gendered), (twins, alike), (is_rare, seldom))
    return [Caution(text) for is_told, text in told if is_told]


def _counts(rows: pl.DataFrame, column: str) -> dict[str, int]:
    names = rows.select(pl.col(column).list.unique()).explode(column).drop_nulls()
    return dict(names[column].value_counts().sort(column).iter_rows())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
