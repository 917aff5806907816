"""Which classes of people, by WordNet, and which photos to look at, by their captions.

Concepts: the part of WordNet under *person*, and what FACET's rules leave of it.

FACET (section 3) takes all synsets under *person*, leaves out offensive ones, those that are not in
ImageNet-21k or have fewer than 500 examples there, and those more than five steps below *person*;
no class lies under another (A.1). The rest it chose by hand: occupations, sports, art and leisure.
That choice has no rule, so the 52 classes of the paper cannot be made by this file alone: what
stands after the rules is a list for people to choose from.

Candidates: photos whose caption and tags speak of a class, the most of them first.

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

from isolux.vocabulary.errors import FileError, SpecError, UnknownNameError, place

PERSON = "n00007846"
"""*person, individual, someone* in WordNet 3.0, as ImageNet numbers it."""
LEAST_EXAMPLES, DEEPEST = 500, 5  # in ImageNet-21k, and steps below person: FACET's
_SYNSET = re.compile(r"^(\d{8}) \d\d n ([0-9a-f]{2}) ")
_UPWARDS = ("@", "@i")  # hypernym, and of what is one of a kind
_SCHEMA: dict[str, Any] = {
    "synset": pl.String,
    "lemmas": pl.List(pl.String),
    "parents": pl.List(pl.String),
}


def read_nouns(path: str | Path) -> pl.DataFrame:
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
        found = _SYNSET.match(line)
        if found is None:
            raise FileError(
                "this is not a file of WordNet's nouns",
                expected="data.noun, as wndb(5WN) says",
                found=line[:60],
                where=place(str(path), number),
            )
        rows.append(_synset(line.partition(" | ")[0].split(), int(found[2], 16)))
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _synset(cells: list[str], words: int) -> tuple[str, list[str], list[str]]:
    lemmas = [cells[4 + 2 * k].replace("_", " ").lower() for k in range(words)]
    at = 4 + 2 * words
    pointers = [cells[at + 1 + 4 * k : at + 4 + 4 * k] for k in range(int(cells[at]))]
    parents = [f"n{offset}" for kind, offset, part in pointers if kind in _UPWARDS and part == "n"]
    return f"n{cells[0]}", lemmas, parents


def concepts(
    nouns: pl.DataFrame,
    *,
    offensive: Collection[str] = (),
    imagenet: Collection[str] | None = None,
    examples: Mapping[str, int] | None = None,
    root: str = PERSON,
) -> pl.DataFrame:
    """Apply FACET's rules to everything under a synset, and say why each other one was left out.

    Examples
    --------
    >>> nouns = pl.DataFrame({"synset": ["n1", "n2", "n3"],
    ...                       "lemmas": [["person"], ["doctor"], ["surgeon"]],
    ...                       "parents": [[], ["n1"], ["n2"]]})
    >>> concepts(nouns, root="n1").select("synset", "depth", "reason").rows()
    [('n2', 1, 'another concept is below it'), ('n3', 2, None)]
    """
    depth = _depths(nouns, root)
    table = nouns.filter(pl.col("synset").is_in([s for s in depth if s != root])).with_columns(
        depth=pl.col("synset").replace_strict(depth, return_dtype=pl.Int64)
    )
    bad = {one.strip().lower() for one in offensive}
    named = pl.col("synset").is_in(list(bad)) | (
        pl.col("lemmas").list.set_intersection(list(bad)).list.len() > 0
    )
    rules: list[tuple[pl.Expr, pl.Expr]] = [(named, pl.lit("offensive by the list"))]
    if imagenet is not None:
        rules.append((~pl.col("synset").is_in(list(imagenet)), pl.lit("not in ImageNet-21k")))
    if examples is not None:
        number = pl.col("synset").replace_strict(dict(examples), default=0, return_dtype=pl.Int64)
        told = pl.format("{} examples, fewer than {}", number, pl.lit(LEAST_EXAMPLES))
        rules.append((number < LEAST_EXAMPLES, told))
    told = pl.format("{} steps below, more than {}", "depth", pl.lit(DEEPEST))
    rules.append((pl.col("depth") > DEEPEST, told))
    reasons = pl.coalesce(pl.when(broken).then(words) for broken, words in rules)
    table = table.with_columns(reason=reasons)
    above = _above(nouns, table.filter(pl.col("reason").is_null())["synset"].to_list())
    under = pl.col("reason").is_null() & pl.col("synset").is_in(list(above))
    reason = pl.when(under).then(pl.lit("another concept is below it")).otherwise("reason")
    first = pl.col("lemmas").list.first()
    return (
        table.with_columns(reason=reason)
        .sort("depth", first)
        .select("synset", "lemmas", "depth", "reason")
    )


def _depths(nouns: pl.DataFrame, root: str) -> dict[str, int]:
    """Walk down from the root, one step at a time."""
    below: dict[str, list[str]] = {}
    for synset, parents in nouns.select("synset", "parents").iter_rows():
        for parent in parents:
            below.setdefault(parent, []).append(synset)
    if root not in set(nouns["synset"]):
        raise UnknownNameError("synset", root, nouns["synset"].head(50))
    depth, now = {root: 0}, [root]
    while now:
        now = [c for parent in now for c in below.get(parent, ()) if c not in depth]
        depth |= dict.fromkeys(now, 1 + max(depth.values()))
    return depth


def _above(nouns: pl.DataFrame, chosen: list[str]) -> set[str]:
    """List everything above the chosen ones."""
    parents = dict(nouns.select("synset", "parents").iter_rows())
    found: set[str] = set()
    now = list(chosen)
    while now:
        now = [p for one in now for p in parents.get(one, ()) if p not in found]
        found |= set(now)
    return found


FIRST = 50
"""Photos a class in the first round."""
_ENDINGS = (
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
"""Of nouns and verbs, as morphy(7WN) lists them."""
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
            "nothing says what photos show",
            expected="columns image_id, and caption or tags",
            found=", ".join(photos.columns),
        )
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
    lot = pl.Series("lot", np.random.default_rng(0).random(free.height))
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
