"""Select classes of people from WordNet, and candidate photos by their captions.

Concepts: the synsets of WordNet under *person* that remain after FACET's rules.

FACET (section 3) takes all synsets under *person*, leaves out offensive ones, those that are not in
ImageNet-21k or have fewer than 500 examples there, and those more than five steps below *person*.
The rest it chose by hand: occupations, sports, art and leisure, on roughly the same basic level, of
which none lies under another (A.1): *doctor* is one of them, and *surgeon*, below it, is not. That
choice has no rule, so the 52 classes of the paper cannot be made by this file alone: what stands
after the rules is a list for people to choose from, and their choice is checked. WordNet's
instances (*Einstein*, of *physicist*) are real people, and never stand.

Candidates: photos whose caption and tags contain terms of a class, most terms first.

FACET (section 5.1, appendix A.2.1): a class has terms, the lemmas of its synset and related nouns
(*flute* for *flutist*); captions are lemmatised; the overlap counts terms. Of a first 50 photos a
class the share of true positives says how much to over-sample; later rounds go to classes that
are short.

FACET lemmatises with NLTK. Here a word stands for everything that WordNet's rules of inflection
(morphy) make of it, and matches if one of these is a term: a caption needs no dictionary, and a
rare wrong match (a *fluted* column, for *flute*) is left out by the people of the stage ``count``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import FileError, SpecError, UnknownNameError, format_location

PERSON_SYNSET = "n00007846"
"""*person, individual, someone* in WordNet 3.0, as ImageNet numbers it."""
MIN_EXAMPLES, DEEPEST = 500, 5  # in ImageNet-21k, and steps below person: FACET's
_SYNSET_LINE = re.compile(r"^(\d{8}) \d\d n ([0-9a-f]{2}) ")
_INSTANCE_POINTER = "@i"  # instance hypernym: of one individual
_HYPERNYM_POINTERS = ("@", _INSTANCE_POINTER)
_SCHEMA: dict[str, Any] = {
    "synset": pl.String,
    "lemmas": pl.List(pl.String),
    "parents": pl.List(pl.String),
    "is_instance": pl.Boolean,
}


def read_wordnet_nouns(path: str | Path) -> pl.DataFrame:
    """Read WordNet's file of nouns, ``data.noun`` (the format is wndb(5WN))."""
    file = Path(path).expanduser()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("  ") or not line:  # the licence at its head
            continue
        synset_match = _SYNSET_LINE.match(line)
        if synset_match is None:
            raise FileError(
                "this is not a file of WordNet's nouns",
                expected="data.noun, as wndb(5WN) says",
                found=line[:60],
                where=format_location(str(path), number),
            )
        rows.append(_parse_synset(line.partition(" | ")[0].split(), int(synset_match[2], 16)))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _parse_synset(cells: list[str], n_words: int) -> tuple[str, list[str], list[str], bool]:
    lemmas = [cells[4 + 2 * k].replace("_", " ").lower() for k in range(n_words)]
    pointer_start = 4 + 2 * n_words
    pointers = [
        cells[pointer_start + 1 + 4 * k : pointer_start + 4 + 4 * k]
        for k in range(int(cells[pointer_start]))
    ]
    parents = [
        f"n{offset}"
        for pointer_type, offset, part_of_speech in pointers
        if pointer_type in _HYPERNYM_POINTERS and part_of_speech == "n"
    ]
    is_instance = any(pointer_type == _INSTANCE_POINTER for pointer_type, _, _ in pointers)
    return f"n{cells[0]}", lemmas, parents, is_instance


def list_concepts_with_exclusion_reasons(
    nouns: pl.DataFrame,
    *,
    offensive_synsets_or_lemmas: Collection[str] = (),
    imagenet_synsets: Collection[str] | None = None,
    n_examples_by_synset: Mapping[str, int] | None = None,
    chosen_synsets: Collection[str] = (),
    root_synset: str = PERSON_SYNSET,
) -> pl.DataFrame:
    """Apply FACET's rules to all synsets under a root, with the reason for each excluded one.

    Of chosen synsets, none may lie under another one.

    Examples
    --------
    >>> nouns = pl.DataFrame({"synset": ["n1", "n2", "n3"], "is_instance": [False] * 3,
    ...                       "lemmas": [["person"], ["doctor"], ["surgeon"]],
    ...                       "parents": [[], ["n1"], ["n2"]]})
    >>> concepts = list_concepts_with_exclusion_reasons(nouns, root_synset="n1",
    ...                                                 chosen_synsets=["n2", "n3"])
    >>> concepts.select("synset", "depth", "reason").rows()
    [('n2', 1, None), ('n3', 2, 'under the chosen doctor')]
    """
    depth = _compute_depths_below_root(nouns, root_synset)
    table = nouns.filter(
        pl.col("synset").is_in([s for s in depth if s != root_synset])
    ).with_columns(depth=pl.col("synset").replace_strict(depth, return_dtype=pl.Int64))
    offensive_entries = {entry.strip().lower() for entry in offensive_synsets_or_lemmas}
    is_offensive = pl.col("synset").is_in(list(offensive_entries)) | (
        pl.col("lemmas").list.set_intersection(list(offensive_entries)).list.len() > 0
    )
    rules: list[tuple[pl.Expr, pl.Expr]] = [
        (pl.col("is_instance"), pl.lit("a real person")),
        (is_offensive, pl.lit("offensive by the list")),
    ]
    if imagenet_synsets is not None:
        rules.append(
            (~pl.col("synset").is_in(list(imagenet_synsets)), pl.lit("not in ImageNet-21k"))
        )
    if n_examples_by_synset is not None:
        n_examples = pl.col("synset").replace_strict(
            dict(n_examples_by_synset), default=0, return_dtype=pl.Int64
        )
        too_few_examples = pl.format("{} examples, fewer than {}", n_examples, pl.lit(MIN_EXAMPLES))
        rules.append((n_examples < MIN_EXAMPLES, too_few_examples))
    too_deep = pl.format("{} steps below, more than {}", "depth", pl.lit(DEEPEST))
    rules.append((pl.col("depth") > DEEPEST, too_deep))
    upper_by_synset = _find_chosen_above_each(nouns, chosen_synsets)
    upper_lemma = pl.col("synset").replace_strict(
        upper_by_synset, default=None, return_dtype=pl.String
    )
    rules.append((upper_lemma.is_not_null(), pl.format("under the chosen {}", upper_lemma)))
    reasons = pl.coalesce(pl.when(is_broken).then(rule_reason) for is_broken, rule_reason in rules)
    first_lemma = pl.col("lemmas").list.first()
    return (
        table.with_columns(reason=reasons)
        .sort("depth", first_lemma)
        .select("synset", "lemmas", "depth", "reason")
    )


def _find_chosen_above_each(nouns: pl.DataFrame, chosen_synsets: Collection[str]) -> dict[str, str]:
    """Find for chosen synsets that lie under another chosen one the first lemma of that one."""
    lemmas = dict(nouns.select("synset", pl.col("lemmas").list.first()).iter_rows())
    for synset in chosen_synsets:
        if synset not in lemmas:
            raise UnknownNameError("synset", synset, lemmas)
    upper = {s: sorted(_find_ancestors(nouns, [s]) & set(chosen_synsets)) for s in chosen_synsets}
    return {
        synset: str(lemmas[upper_synsets[0]])
        for synset, upper_synsets in upper.items()
        if upper_synsets
    }


def _compute_depths_below_root(nouns: pl.DataFrame, root_synset: str) -> dict[str, int]:
    """Compute each synset's depth below the root by breadth-first search."""
    children: dict[str, list[str]] = {}
    for synset, parents in nouns.select("synset", "parents").iter_rows():
        for parent in parents:
            children.setdefault(parent, []).append(synset)
    if root_synset not in set(nouns["synset"]):
        raise UnknownNameError("synset", root_synset, nouns["synset"].head(50))
    depth, level = {root_synset: 0}, [root_synset]
    while level:
        level = [c for parent in level for c in children.get(parent, ()) if c not in depth]
        depth |= dict.fromkeys(level, 1 + max(depth.values()))
    return depth


def _find_ancestors(nouns: pl.DataFrame, synsets: list[str]) -> set[str]:
    """Find all ancestors of some synsets."""
    parents = dict(nouns.select("synset", "parents").iter_rows())
    ancestors: set[str] = set()
    level = list(synsets)
    while level:
        level = [p for synset in level for p in parents.get(synset, ()) if p not in ancestors]
        ancestors |= set(level)
    return ancestors


FIRST_ROUND_PHOTOS = 50
"""Photos of each class in the first round."""
_INFLECTIONS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
    ("es", "e"),
    ("es", ""),
    ("ed", "e"),
    ("ed", ""),
    ("ing", "e"),
    ("ing", ""),
)
"""Inflections of nouns and verbs, from morphy(7WN)."""
_IRREGULAR = {
    "people": "person",
    "children": "child",
    "women": "woman",
    "feet": "foot",
    "wives": "wife",
    "thieves": "thief",
    "ran": "run",
    "rode": "ride",
    "sang": "sing",
    "taught": "teach",
}
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_MIN_RATE = 0.02  # a lower rate would give one class the whole budget


def list_possible_base_forms(word: str) -> set[str]:
    """List the words that a word may be an inflection of, including itself.

    Examples
    --------
    >>> (
    ...     sorted(list_possible_base_forms("nurses")),
    ...     "play" in list_possible_base_forms("playing"),
    ...     "child" in list_possible_base_forms("children"),
    ... )
    (['nurs', 'nurse', 'nurses'], True, True)
    """
    word = word.lower()
    base_forms = {word, _IRREGULAR.get(word, word)}
    base_forms |= {
        word.removesuffix(ending) + replacement
        for ending, replacement in _INFLECTIONS
        if word.endswith(ending) and len(word) > len(ending) + 1
    }
    if len(word) > 5 and (double := re.match(r"(.*)([b-df-hj-np-tv-z])\2(?:ing|ed)$", word)):
        base_forms.add(double[1] + double[2])  # running: run
    return base_forms


def build_class_term_table(
    lemmas_by_class: Mapping[str, Sequence[str]],
    related_by_class: Mapping[str, Sequence[str]] | None = None,
) -> pl.DataFrame:
    """Join a class's lemmas and related nouns: ``class, term``, in small letters, each once.

    Examples
    --------
    >>> lemmas = {"flutist": ["flutist", "flute player"]}
    >>> table = build_class_term_table(lemmas, {"flutist": ["flute"]})
    >>> table["term"].to_list()
    ['flutist', 'flute player', 'flute']
    """
    rows = [
        (name, " ".join(term.lower().replace("_", " ").split()))
        for name, class_lemmas in lemmas_by_class.items()
        for term in dict.fromkeys([*class_lemmas, *(related_by_class or {}).get(name, ())])
    ]
    table = pl.DataFrame(rows, schema={"class": pl.String, "term": pl.String}, orient="row")
    return table.unique(maintain_order=True)


def count_matching_terms_by_class(photos: pl.DataFrame, terms: pl.DataFrame) -> pl.DataFrame:
    """Count the terms of each class in a photo's caption and tags.

    Examples
    --------
    >>> photos = pl.DataFrame({"image_id": ["a", "b"], "caption": ["A flutist plays.", "A dog"],
    ...                        "tags": ["flute,stage", ""]})
    >>> terms = build_class_term_table({"flutist": ["flutist"]}, {"flutist": ["flute"]})
    >>> count_matching_terms_by_class(photos, terms).rows()
    [('a', 'flutist', 2)]
    """
    text_columns = [name for name in ("caption", "tags") if name in photos.columns]
    if not text_columns or "image_id" not in photos.columns:
        raise SpecError(
            "nothing says what photos show",
            expected="columns image_id, and caption or tags",
            found=", ".join(photos.columns),
        )
    terms_by_text: dict[str, list[tuple[str, str]]] = {}
    longest = 1
    for name, term in terms.select("class", "term").iter_rows():
        terms_by_text.setdefault(term, []).append((name, term))
        longest = max(longest, term.count(" ") + 1)
    rows: list[tuple[str, str, int]] = []
    for image, *texts in photos.select("image_id", *text_columns).iter_rows():
        term_pairs = {
            pair
            for text in texts
            if text
            for pair in _find_inflected_terms(text, terms_by_text, longest)
        }
        n_terms: dict[str, int] = {}
        for name, _ in term_pairs:
            n_terms[name] = n_terms.get(name, 0) + 1
        rows += [(image, name, n_terms[name]) for name in sorted(n_terms)]
    schema = {"image_id": pl.String, "class": pl.String, "overlap": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _find_inflected_terms(
    text: str, terms_by_text: Mapping[str, Sequence[tuple[str, str]]], max_term_words: int
) -> Iterable[tuple[str, str]]:
    """Find terms of one or more words in a text; a term's last word may be inflected."""
    words = [word.lower() for word in _WORD.findall(text)]
    for start in range(len(words)):
        for length in range(1, min(max_term_words, len(words) - start) + 1):
            first_words = words[start : start + length - 1]
            for form in list_possible_base_forms(words[start + length - 1]):
                yield from terms_by_text.get(" ".join([*first_words, form]), ())


def pick_photos_by_term_matches(
    term_matches: pl.DataFrame,
    *,
    n_wanted_per_class: int = FIRST_ROUND_PHOTOS,
    yield_by_class: Mapping[str, float] | None = None,
    n_by_class: Mapping[str, int] | None = None,
    excluded_ids: Iterable[str] = (),
) -> pl.DataFrame:
    """Choose the photos of a round: for each class those with the most terms, ties at random.

    Examples
    --------
    >>> matched = pl.DataFrame({"image_id": list("abcd"), "class": ["nurse"] * 4,
    ...                         "overlap": [1, 3, 1, 2]})
    >>> pick_photos_by_term_matches(matched, n_wanted_per_class=2)["image_id"].to_list()
    ['b', 'd']
    """
    candidates = term_matches.filter(~pl.col("image_id").is_in(list(excluded_ids)))
    random_order = pl.Series("lot", np.random.default_rng(0).random(candidates.height))
    ordered = candidates.with_columns(random_order).sort(
        ["overlap", "lot"], descending=[True, False]
    )
    n_wanted = {}
    for name in term_matches["class"].unique().sort():
        n_missing = max(n_wanted_per_class - (n_by_class or {}).get(name, 0), 0)
        rate = 1.0 if yield_by_class is None else max(yield_by_class.get(name, 1.0), _MIN_RATE)
        n_wanted[name] = int(np.ceil(n_missing / rate))
    class_by_image: dict[str, tuple[str, int]] = {}
    # Rare classes first: a photo with two classes is used for the one with fewer candidates.
    for name in ordered["class"].value_counts().sort("count", "class")["class"]:
        class_rows = ordered.filter(
            pl.col("class") == name, ~pl.col("image_id").is_in(list(class_by_image))
        )
        for image, overlap in (
            class_rows.head(n_wanted[name]).select("image_id", "overlap").iter_rows()
        ):
            class_by_image[image] = (name, overlap)
    rows = [(image, name, overlap) for image, (name, overlap) in class_by_image.items()]
    schema = {"image_id": pl.String, "class": pl.String, "overlap": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort(
        "class", "overlap", descending=[False, True], maintain_order=True
    )
