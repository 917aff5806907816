"""Objects in an image, those that a caption names, and cautions about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.formatting import AND_MORE, join_first
from isolux.core.notes import Caution
from isolux.io.settings_files import read_mapping
from isolux.tasks._truth import instances_with_truth
from isolux.tasks._word_lists.lists import WordList
from isolux.tasks._word_lists.mentions import split_words


def read_true_objects(
    dataset: Dataset, objects: str, unknown_values: Sequence[str]
) -> pl.DataFrame:
    """List the objects in each person's image: ``unit_id, objects``; empty where unknown."""
    truth = instances_with_truth(dataset, objects, {}, unknown_values)
    return truth.select(
        "unit_id", objects=pl.col("truth").fill_null(pl.lit([], pl.List(pl.String)))
    )


def read_object_words(file: str | None, image_objects: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Read the words for each object, from a file or its own name."""
    names = image_objects["objects"].explode().drop_nulls().unique().sort().to_list()
    # The plain plural is the commonest other form; irregular ones need a file of words.
    if file is None:
        return {name: (name, f"{name}s") for name in names}
    words_by_object: Mapping[str, object] = read_mapping(file)
    known_words = {
        name: tuple(map(str, words if isinstance(words, list) else [words]))
        for name, words in words_by_object.items()
        if name in names
    }
    # Otherwise every object would fall back to its own name, and the file would have no effect.
    if names and not known_words:
        raise SpecError(
            "the words of objects are of none that is in the pictures",
            expected="names such as " + ", ".join(map(repr, names[:3])),
            found=", ".join(map(repr, list(words_by_object)[:3])),
            where=file,
        )
    return {name: known_words.get(name, (name, f"{name}s")) for name in names}


def add_named_objects(captions: pl.DataFrame, words: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Add ``said_objects``, the objects that each text names; words must be adjacent."""
    # Blanks on both sides, so that a name matches whole words only, also at either end.
    text = pl.format(" {} ", pl.col("_words").list.join(" "))
    name_exprs = [
        pl.when(
            pl.any_horizontal(
                text.str.contains(f" {' '.join(split_words(pl.Series([word]))[0])} ", literal=True)
                for word in synonyms
            )
        ).then(pl.lit(name))
        for name, synonyms in words.items()
    ]
    word_rows = captions.with_columns(
        _words=split_words(captions["text"]).fill_null(pl.Series([[]]))
    )
    empty_list = pl.lit([], dtype=pl.List(pl.String))
    named_objects = pl.concat_list(name_exprs).list.drop_nulls() if name_exprs else empty_list
    return word_rows.with_columns(said_objects=named_objects).drop("_words")


# With fewer images, an object's association with a gender is mostly noise.
_MIN_IMAGES = 10
_MAX_RARE_SHARE = 0.1  # of the objects
_MAX_EMPTY_SHARE = 1 / 3  # of the images
# Names in a note: a longer list would hide its sentence.
_MAX_LISTED_NAMES = 4
_WORD_SEPARATORS = re.compile(r"[\W_]+")


def caution_on_objects(
    captions: pl.DataFrame, words: Mapping[str, Sequence[str]], word_list: WordList
) -> list[str]:
    """Caution about objects that no caption names, and images that list none."""
    scored = captions.filter(pl.col("reason").is_null())
    if not scored.height:
        return []
    # Several models caption the same images.
    pictures = scored.unique("unit_id")
    image_counts = _count_objects(pictures, "objects")
    caption_counts = _count_objects(scored, "said_objects")
    unnamed = [
        name
        for name, n in image_counts.items()
        # A rare object may well go unnamed; a common one that is never named has another word.
        if n >= _MIN_IMAGES and not caption_counts.get(name)
    ]
    text = (
        f"{len(unnamed):,} of {len(image_counts):,} objects are named in no caption: "
        f"{_list_first_names(unnamed)}. Do they have other names there (--object-words FILE), or "
        "are several in one cell (--option separator=…)?"
    )
    notes: list[str] = [Caution(text)] if unnamed else []
    n_empty = int((pictures["objects"].list.len() == 0).sum())
    empty = (
        f"{n_empty:,} of {pictures.height:,} pictures list no object, and count as pictures without"
        " any. If nothing was annotated there, leave them out (--only)."
    )
    is_many = n_empty > _MAX_EMPTY_SHARE * pictures.height
    empty_notes = [Caution(empty) if is_many else empty] if n_empty else []
    return [*notes, *_caution_on_names(image_counts, words, word_list), *empty_notes]


def _caution_on_names(
    image_counts: Mapping[str, int], words: Mapping[str, Sequence[str]], word_list: WordList
) -> list[Caution]:
    """Caution about objects that are words for people, have two spellings, or are rare."""
    people = frozenset().union(*word_list.groups.values())
    person_names = [
        name
        for name in image_counts
        # "boy" as an object goes with a gender by definition, which would count as amplified bias.
        if any(set(split_words(pl.Series([word]))[0]) & people for word in words.get(name, (name,)))
    ]
    names_by_spelling: dict[str, list[str]] = {}
    for name in image_counts:
        names_by_spelling.setdefault(_WORD_SEPARATORS.sub(" ", name.casefold()).strip(), []).append(
            name
        )
    twins = [
        " and ".join(map(repr, spellings))
        for spellings in names_by_spelling.values()
        if len(spellings) > 1
    ]
    twin_list = "; ".join(twins[:_MAX_LISTED_NAMES]) + (
        "; …" if len(twins) > _MAX_LISTED_NAMES else ""
    )
    rare = [name for name, n in image_counts.items() if n < _MIN_IMAGES]
    gendered_text = (
        f"Objects that are words for people of a gender: {_list_first_names(person_names)}. They go"
        " with it by their name alone: leave them out of the objects."
    )
    twin_text = f"Objects differ in their spelling alone: {twin_list}. They count as two."
    rare_text = (
        f"{len(rare):,} of {len(image_counts):,} objects are in fewer than {_MIN_IMAGES} pictures:"
        f" {_list_first_names(rare)}. Each weighs as much as the others in bias amplification, and"
        " one that is there once can only be joined less often: leave them out of the objects."
    )
    # A few rare objects hardly move a mean over many.
    is_rare = rare and len(rare) >= _MAX_RARE_SHARE * len(image_counts)
    cautions = ((person_names, gendered_text), (twins, twin_text), (is_rare, rare_text))
    return [Caution(text) for is_shown, text in cautions if is_shown]


def _count_objects(rows: pl.DataFrame, column: str) -> dict[str, int]:
    """Count the rows that list each object."""
    names = rows.select(pl.col(column).list.unique()).explode(column).drop_nulls()
    return dict(names[column].value_counts().sort(column).iter_rows())


def _list_first_names(names: Sequence[str]) -> str:
    """List the first names, and the number of others."""
    return join_first(map(repr, names), _MAX_LISTED_NAMES, AND_MORE)
