"""Candidates: photos whose caption and tags speak of a class, the most of them first.

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
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from isolux.vocabulary.errors import SpecError

FIRST = 50
"""Photos a class in the first round."""
_ENDINGS = (
    ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
    ("men", "man"), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"),
    ("ing", ""),
)  # fmt: skip
"""Of nouns and verbs, as morphy(7WN) lists them."""
_IRREGULAR = {"people": "person", "children": "child", "women": "woman", "feet": "foot",
              "wives": "wife", "thieves": "thief", "ran": "run", "rode": "ride",
              "sang": "sing", "taught": "teach"}  # fmt: skip
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_LEAST_RATE = 0.02  # below which a class would eat the whole budget


def forms(word: str) -> set[str]:
    """List what a word may be an inflection of, itself included.

    Examples
    --------
    >>> sorted(forms("nurses")), "play" in forms("playing"), "child" in forms("children")
    (['nurs', 'nurse', 'nurses'], True, True)
    """
    word = word.lower()
    found = {word, _IRREGULAR.get(word, word)}
    found |= {
        word.removesuffix(end) + instead
        for end, instead in _ENDINGS
        if word.endswith(end) and len(word) > len(end) + 1
    }
    if len(word) > 5 and (double := re.match(r"(.*)([b-df-hj-np-tv-z])\2(?:ing|ed)$", word)):
        found.add(double[1] + double[2])  # running: run
    return found


def term_table(
    lemmas: Mapping[str, Sequence[str]], related: Mapping[str, Sequence[str]] | None = None
) -> pl.DataFrame:
    """Join a class's lemmas and related nouns: ``class, term``, in small letters, each once.

    Examples
    --------
    >>> table = term_table({"flutist": ["flutist", "flute player"]}, {"flutist": ["flute"]})
    >>> table["term"].to_list()
    ['flutist', 'flute player', 'flute']
    """
    rows = [
        (name, " ".join(term.lower().replace("_", " ").split()))
        for name, own in lemmas.items()
        for term in dict.fromkeys([*own, *(related or {}).get(name, ())])
    ]
    table = pl.DataFrame(rows, schema={"class": pl.String, "term": pl.String}, orient="row")
    return table.unique(maintain_order=True)


def matches(photos: pl.DataFrame, terms: pl.DataFrame) -> pl.DataFrame:
    """Count how many of each class's terms a photo's caption and tags hold.

    Examples
    --------
    >>> photos = pl.DataFrame({"image_id": ["a", "b"], "caption": ["A flutist plays.", "A dog"],
    ...                        "tags": ["flute,stage", ""]})
    >>> matches(photos, term_table({"flutist": ["flutist"]}, {"flutist": ["flute"]})).rows()
    [('a', 'flutist', 2)]
    """
    held = [name for name in ("caption", "tags") if name in photos.columns]
    if not held or "image_id" not in photos.columns:
        raise SpecError(
            "nothing says what photos show", expected="columns image_id, and caption or tags",
            found=", ".join(photos.columns),
        )  # fmt: skip
    known: dict[str, list[tuple[str, str]]] = {}
    longest = 1
    for name, term in terms.select("class", "term").iter_rows():
        known.setdefault(term, []).append((name, term))
        longest = max(longest, term.count(" ") + 1)
    rows: list[tuple[str, str, int]] = []
    for image, *texts in photos.select("image_id", *held).iter_rows():
        found = {pair for text in texts if text for pair in _found(text, known, longest)}
        counted: dict[str, int] = {}
        for name, _ in found:
            counted[name] = counted.get(name, 0) + 1
        rows += [(image, name, counted[name]) for name in sorted(counted)]
    schema = {"image_id": pl.String, "class": pl.String, "overlap": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _found(
    text: str, known: Mapping[str, Sequence[tuple[str, str]]], longest: int
) -> Iterable[tuple[str, str]]:
    """Find terms of one word and of several; the last word of a term may be inflected."""
    words = [word.lower() for word in _WORD.findall(text)]
    for start in range(len(words)):
        for length in range(1, min(longest, len(words) - start) + 1):
            head = words[start : start + length - 1]
            for form in forms(words[start + length - 1]):
                yield from known.get(" ".join([*head, form]), ())


def pick(
    matched: pl.DataFrame,
    *,
    per_class: int = FIRST,
    rates: Mapping[str, float] | None = None,
    have: Mapping[str, int] | None = None,
    taken: Iterable[str] = (),
    seed: int = 0,
) -> pl.DataFrame:
    """Choose the photos of a round: of each class those with the most overlap, ties by lot.

    Examples
    --------
    >>> matched = pl.DataFrame({"image_id": list("abcd"), "class": ["nurse"] * 4,
    ...                         "overlap": [1, 3, 1, 2]})
    >>> pick(matched, per_class=2)["image_id"].to_list()
    ['b', 'd']
    """
    free = matched.filter(~pl.col("image_id").is_in(list(taken)))
    rng = np.random.default_rng(seed)
    lot = pl.Series("lot", rng.random(free.height))
    ordered = free.with_columns(lot).sort(["overlap", "lot"], descending=[True, False])
    wanted = {}
    for name in matched["class"].unique().sort():
        lacking = max(per_class - (have or {}).get(name, 0), 0)
        rate = 1.0 if rates is None else max(rates.get(name, 1.0), _LEAST_RATE)
        wanted[name] = int(np.ceil(lacking / rate))
    chosen: dict[str, tuple[str, int]] = {}
    # Rare classes first: a photo that fits two is looked at for the one with fewer candidates.
    for name in ordered["class"].value_counts().sort("count", "class")["class"]:
        own = ordered.filter(pl.col("class") == name, ~pl.col("image_id").is_in(list(chosen)))
        for image, overlap in own.head(wanted[name]).select("image_id", "overlap").iter_rows():
            chosen[image] = (name, overlap)
    rows = [(image, name, overlap) for image, (name, overlap) in chosen.items()]
    schema = {"image_id": pl.String, "class": pl.String, "overlap": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort(
        "class", "overlap", descending=[False, True], maintain_order=True
    )
