"""Concepts: the part of WordNet under *person*, and what FACET's rules leave of it.

FACET (section 3) takes all synsets under *person*, leaves out offensive ones, those that are not in
ImageNet-21k or have fewer than 500 examples there, and those more than five steps below *person*;
no class lies under another (A.1). The rest it chose by hand: occupations, sports, art and leisure.
That choice has no rule, so the 52 classes of the paper cannot be made by this file alone: what
stands after the rules is a list for people to choose from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from isolux.vocabulary.errors import FileError, UnknownNameError, place

PERSON = "n00007846"
"""*person, individual, someone* in WordNet 3.0, as ImageNet numbers it."""
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
                "this is not a file of WordNet's nouns", expected="data.noun, as wndb(5WN) says",
                found=line[:60], where=place(str(path), number),
            )  # fmt: skip
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
    least: int = 500,
    deepest: int = 5,
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
        told = pl.format("{} examples, fewer than {}", number, pl.lit(least))
        rules.append((number < least, told))
    told = pl.format("{} steps below, more than {}", "depth", pl.lit(deepest))
    rules.append((pl.col("depth") > deepest, told))
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
