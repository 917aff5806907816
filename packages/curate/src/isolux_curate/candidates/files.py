"""From which countries to take photos, and the tables that candidates are chosen by.

FairFace (Kärkkäinen & Joo 2021, section 3.2) annotated 7,125 faces drawn at random, estimated each
country's composition, and chose later countries so that no group dominates; the U.S. and Europe
were left out once there was enough of theirs. It prints no formula. Here the numbers are those that
bring the expected totals closest to the stated balance (least squares, none below 0, none above
what may come of one), with each country's composition drawn towards everyone's by five photos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import FileError, SpecError, TableError, UnknownNameError
from isolux_curate.candidates.captions import concepts, matches, pick, read_nouns
from isolux_curate.user_tables import read_text, refuse_missing, refuse_rows

FIRST = 7_125
"""Photos of the first round, drawn at random whatever their country."""
_SUM_CLOSE = 1e-6
_PRIOR = 5.0  # photos with the overall composition, mixed into each country's
_FIRM = 1e3  # how much more the total weighs than the balance


@dataclass(frozen=True, slots=True)
class Quotas:
    """A round's numbers.

    Parameters
    ----------
    countries : polars.DataFrame
        ``country, seen, take`` (photos of the next round; 0: left out), by ``take``.
    groups : polars.DataFrame
        ``group, have, expected`` (after the round), ``share`` (of what is expected), ``wanted``.
    """

    countries: pl.DataFrame
    groups: pl.DataFrame


def quotas(
    seen: pl.DataFrame,
    *,
    take: int,
    balance: Mapping[str, float] | None = None,
    most: int | None = None,
) -> Quotas:
    """Reckon how many photos to take from each country.

    Examples
    --------
    >>> seen = pl.DataFrame({"country": ["US"] * 80 + ["Kenya"] * 20,
    ...                      "group": ["a"] * 75 + ["b"] * 5 + ["b"] * 20})
    >>> quotas(seen, take=100).countries.select("country", "take").rows()
    [('Kenya', 87), ('US', 13)]
    """
    refuse_missing(seen, ("country", "group"))
    held = seen.drop_nulls(["country", "group"])
    if held.is_empty() or take < 1 or (most is not None and most < 1):
        raise SpecError(
            "there is nothing to compute from",
            expected="annotated photos, and some to take",
            found=f"{held.height:,} photos, take {take:,}",
        )
    groups = held["group"].unique().sort().to_list()
    countries = held["country"].unique().sort().to_list()
    wanted = _wanted(groups, balance)
    counts = _counts(held, countries, groups)
    share = counts.sum(axis=0) / counts.sum()
    mix = (counts + _PRIOR * share) / (counts.sum(axis=1, keepdims=True) + _PRIOR)
    cap = take if most is None else min(most, take)
    number = _nearest(mix, counts.sum(axis=0), wanted, take, cap)
    after = counts.sum(axis=0) + mix.T @ number
    table = pl.DataFrame(
        {"country": countries, "seen": counts.sum(axis=1).astype(int), "take": number.astype(int)}
    )
    told = pl.DataFrame(
        {
            "group": groups,
            "have": counts.sum(axis=0).astype(int),
            "expected": after.round(1),
            "share": after / after.sum(),
            "wanted": wanted,
        }
    )
    return Quotas(table.sort("take", "country", descending=[True, False]), told)


def _wanted(groups: list[str], balance: Mapping[str, float] | None) -> FloatArray:
    if balance is None:
        return np.full(len(groups), 1 / len(groups))
    for name in balance:
        if name not in groups:
            raise UnknownNameError("group", name, groups)
    total = sum(balance.values())
    if abs(total - 1) > _SUM_CLOSE or min(balance.values()) < 0:
        raise SpecError(
            "the shares of a balance sum to 1",
            expected="shares from 0 to 1",
            found=f"a sum of {total:g}",
        )
    return np.array([balance.get(name, 0.0) for name in groups])


def _counts(held: pl.DataFrame, countries: list[str], groups: list[str]) -> FloatArray:
    table = np.zeros((len(countries), len(groups)))
    row, column = {c: k for k, c in enumerate(countries)}, {g: k for k, g in enumerate(groups)}
    for country, group, number in held.group_by("country", "group").agg(n=pl.len()).iter_rows():
        table[row[country], column[group]] = number
    return table


def _nearest(
    mix: FloatArray, have: FloatArray, wanted: FloatArray, take: int, most: int
) -> FloatArray:
    """Find whole numbers, none above ``most``, whose expected totals are nearest to the balance."""
    from scipy.optimize import lsq_linear

    if most * len(mix) < take:
        raise TableError(
            "the countries do not have that many photos",
            expected=f"at most {most * len(mix):,}",
            found=f"{take:,} to take",
        )
    aim = wanted * (have.sum() + take) - have
    sides = np.vstack([mix.T, np.full((1, len(mix)), _FIRM)])
    ends = np.append(aim, _FIRM * take)
    found = lsq_linear(sides, ends, bounds=(0, most), tol=1e-12).x
    whole = np.minimum(np.floor(found + 1e-6), most)
    for at in np.argsort(whole - found, kind="stable"):  # the largest remainders first
        step = min(take - whole.sum(), 1.0, most - whole[at])
        whole[at] += max(step, 0.0)
    while (lacking := take - whole.sum()) > 0:
        at = int(np.argmin(whole))
        whole[at] += min(lacking, most - whole[at])
    return np.asarray(whole)


def lines_of(path: str | Path) -> list[str]:
    """Read a text file's lines, blank ones and those that begin with # left out."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            "this list cannot be read",
            expected="a text file, an entry in each line",
            where=str(path),
        ) from error
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _numbers(path: str | Path, key: str, value: str) -> dict[str, float]:
    frame = read_text(path, key, value)
    number = frame[value].cast(pl.Float64, strict=False)
    refuse_rows(
        number.is_null() | frame[key].is_null() | frame[key].is_duplicated(),
        f"a row does not give one {key} a number",
        str(path),
        expected=f"{key} once, {value} a number",
        cells=frame[value],
    )
    return dict(zip(frame[key], number, strict=True))


def concepts_of_files(
    nouns: str | Path,
    *,
    offensive: str | None = None,
    imagenet: str | None = None,
    examples: str | None = None,
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
    """
    before = [one for path in taken for one in read_text(path, "image_id")["image_id"].drop_nulls()]
    found = matches(read_text(photos, "image_id"), read_text(terms, "class", "term"))
    known = {k: int(v) for k, v in _numbers(have, "class", "number").items()} if have else None
    return pick(
        found,
        per_class=per_class,
        rates=_numbers(rates, "class", "rate") if rates else None,
        have=known,
        taken=before,
    )


def quotas_of_files(
    seen: str | Path,
    *,
    take: int,
    balance: str | None = None,
    most: int | None = None,
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
    most : int, optional
        The most photos from one country in this round, so that no country represents a group alone.
    """
    wanted = _numbers(balance, "group", "share") if balance else None
    return quotas(read_text(seen, "country", "group"), take=take, balance=wanted, most=most)


def first_round(photos: str | Path, *, first: int) -> pl.DataFrame:
    """Draw the first round at random, whatever the country."""
    frame = read_text(photos, "image_id")
    if frame.height < first:
        raise TableError(
            "there are not that many photos",
            expected=f"at least {first:,}",
            found=f"{frame.height:,}",
            where=str(photos),
        )
    return frame.sample(first, seed=0).sort("image_id")
