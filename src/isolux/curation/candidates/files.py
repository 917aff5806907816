"""The tables that people have in their hands for choosing candidates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.curation.candidates.captions import matches, pick
from isolux.curation.candidates.countries import Quotas, quotas
from isolux.curation.candidates.wordnet import concepts, read_nouns
from isolux.io.cells import as_text
from isolux.io.frames import read_table
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError, place


def lines_of(path: str | Path) -> list[str]:
    """Read a text file's lines, blank ones and those that begin with # left out."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            "this list cannot be read", expected="a text file, an entry in each line",
            where=str(path),
        ) from error  # fmt: skip
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _table(path: str | Path, *needed: str) -> pl.DataFrame:
    frame = read_table(Path(path).expanduser())
    for name in needed:
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=str(path))
    return frame.select(as_text(frame[name]).alias(name) for name in frame.columns)


def _numbers(path: str | Path, key: str, value: str) -> dict[str, float]:
    frame = _table(path, key, value)
    number = frame[value].cast(pl.Float64, strict=False)
    bad = (number.is_null() | frame[key].is_null() | frame[key].is_duplicated()).arg_true()
    if len(bad):
        row = int(bad[0]) + 1
        raise TableError(
            f"a row does not give one {key} a number", expected=f"{key} once, {value} a number",
            found=repr(frame[value][row - 1]), where=place(str(path), row),
        )  # fmt: skip
    return dict(zip(frame[key], number, strict=True))


def concepts_of_files(
    nouns: str | Path,
    *,
    offensive: str | None = None,
    imagenet: str | None = None,
    examples: str | None = None,
    least: int = 500,
    deepest: int = 5,
) -> pl.DataFrame:
    """Apply FACET's rules to WordNet's nouns.

    Parameters
    ----------
    nouns : str or Path
        WordNet's data.noun.
    offensive : str, optional
        A text file of synsets or lemmas that must not become classes, one per line.
    imagenet : str, optional
        A text file of ImageNet-21k's synsets, one per line; default: this rule is not applied.
    examples : str, optional
        A table synset, examples: the number of photos of each in ImageNet-21k; default: this rule
        is not applied.
    least : int
        Examples.
    deepest : int
        Steps below person.

    Returns
    -------
    polars.DataFrame
        As of ``concepts``, ``lemmas`` as text.
    """
    counted = None
    if examples is not None:
        counted = {k: int(v) for k, v in _numbers(examples, "synset", "examples").items()}
    found = concepts(
        read_nouns(nouns),
        offensive=lines_of(offensive) if offensive else (),
        imagenet=lines_of(imagenet) if imagenet else None,
        examples=counted,
        least=least,
        deepest=deepest,
    )
    return found.with_columns(pl.col("lemmas").list.join(", "))


def candidates_of_files(
    photos: str | Path,
    *,
    terms: str,
    per_class: int = 50,
    rates: str | None = None,
    have: str | None = None,
    taken: Sequence[str] = (),
    seed: int = 0,
) -> pl.DataFrame:
    """Choose the photos of a round by their captions and tags.

    Parameters
    ----------
    photos : str or Path
        A table image_id, caption, tags.
    terms : str
        A table class, term: lemmas and related nouns.
    per_class : int
        Photos per class: how many to look at or, with rates, how many should show the class.
    rates : str, optional
        A table class, rate: the share of true positives among the photos that were looked at.
    have : str, optional
        A table class, number: photos that show it already.
    taken : sequence of str
        Tables of earlier rounds, whose images are left out.
    seed : int
        Seed for choosing between photos with the same overlap.
    """
    before = [one for path in taken for one in _table(path, "image_id")["image_id"].drop_nulls()]
    found = matches(_table(photos, "image_id"), _table(terms, "class", "term"))
    known = {k: int(v) for k, v in _numbers(have, "class", "number").items()} if have else None
    return pick(
        found, per_class=per_class, rates=_numbers(rates, "class", "rate") if rates else None,
        have=known, taken=before, seed=seed,
    )  # fmt: skip


def quotas_of_files(
    seen: str | Path,
    *,
    take: int,
    balance: str | None = None,
    available: str | None = None,
    most: int | None = None,
    prior: float = 5.0,
) -> Quotas:
    """Reckon how many photos to take from each country in the next round.

    Parameters
    ----------
    seen : str or Path
        A table country, group: one row per photo annotated so far.
    take : int
        Photos of the next round.
    balance : str, optional
        A table group, share: the shares wanted, which sum to 1; default: equal shares.
    available : str, optional
        A table country, photos: what each country still has.
    most : int, optional
        The most photos from one country in this round, so that no country represents a group alone.
    prior : float
        Number of photos with the overall composition that are mixed into each country's.
    """
    limits = {k: int(v) for k, v in _numbers(available, "country", "photos").items()}  \
        if available else None  # fmt: skip
    wanted = _numbers(balance, "group", "share") if balance else None
    return quotas(
        _table(seen, "country", "group"), take=take, balance=wanted, available=limits, most=most,
        prior=prior,
    )  # fmt: skip


def first_round(photos: str | Path, *, first: int, seed: int = 0) -> pl.DataFrame:
    """Draw the first round at random, whatever the country."""
    frame = _table(photos, "image_id")
    if frame.height < first:
        raise TableError(
            "there are not that many photos", expected=f"at least {first:,}",
            found=f"{frame.height:,}", where=str(photos),
        )  # fmt: skip
    return frame.sample(first, seed=seed).sort("image_id")
