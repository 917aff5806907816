"""Numbers of photos by country, and candidate selection from files.

FairFace (Kärkkäinen & Joo 2021, section 3.2) annotated 7,125 faces drawn at random, estimated each
country's composition, and chose later countries so that no group dominates; the U.S. and Europe
were left out once there was enough of theirs. It prints no formula. Here the numbers are those that
bring the expected totals closest to the stated balance (least squares with bounds for each
country), with each country's composition shrunk towards the overall one by five photos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux.stats.statistic import FloatArray
from isolux_curate.candidates.captions import (
    count_matching_terms_by_class,
    list_concepts_with_exclusion_reasons,
    pick_photos_by_term_matches,
    read_wordnet_nouns,
)
from isolux_curate.user_tables import read_table_as_text, refuse_faulty_rows, refuse_missing_columns

FIRST_ROUND_PHOTOS = 7_125
"""Photos of the first round, sampled at random over all countries."""
_SUM_TOLERANCE = 1e-6
_PRIOR = 5.0  # prior weight of the overall composition, in photos
_TOTAL_WEIGHT = 1e3  # weight of the total relative to the balance


@dataclass(frozen=True, slots=True)
class CountryQuotas:
    """The numbers of photos of a round.

    Parameters
    ----------
    countries : polars.DataFrame
        ``country, seen, take`` (photos of the next round; 0: left out), by ``take``.
    groups : polars.DataFrame
        ``group, have, expected`` (after the round), ``share`` (of what is expected), ``wanted``.
    """

    countries: pl.DataFrame
    groups: pl.DataFrame


def compute_country_quotas(
    annotated_photos: pl.DataFrame,
    *,
    n_photos: int,
    target_share_by_group: Mapping[str, float] | None = None,
    max_photos_per_country: int | None = None,
) -> CountryQuotas:
    """Compute how many photos to take from each country.

    Examples
    --------
    >>> seen = pl.DataFrame({"country": ["US"] * 80 + ["Kenya"] * 20,
    ...                      "group": ["a"] * 75 + ["b"] * 5 + ["b"] * 20})
    >>> compute_country_quotas(seen, n_photos=100).countries.select("country", "take").rows()
    [('Kenya', 87), ('US', 13)]
    """
    refuse_missing_columns(annotated_photos, ("country", "group"))
    annotated = annotated_photos.drop_nulls(["country", "group"])
    if (
        annotated.is_empty()
        or n_photos < 1
        or (max_photos_per_country is not None and max_photos_per_country < 1)
    ):
        raise SpecError(
            "there is nothing to compute from",
            expected="annotated photos, and some to take",
            found=f"{annotated.height:,} photos, take {n_photos:,}",
        )
    groups = annotated["group"].unique().sort().to_list()
    countries = annotated["country"].unique().sort().to_list()
    target_shares = _check_target_shares(groups, target_share_by_group)
    counts = _count_photos_by_country_group(annotated, countries, groups)
    overall_composition = counts.sum(axis=0) / counts.sum()
    compositions = (counts + _PRIOR * overall_composition) / (
        counts.sum(axis=1, keepdims=True) + _PRIOR
    )
    max_per_country = (
        n_photos if max_photos_per_country is None else min(max_photos_per_country, n_photos)
    )
    quota = _solve_integer_quotas(
        compositions, counts.sum(axis=0), target_shares, n_photos, max_per_country
    )
    expected_totals = counts.sum(axis=0) + compositions.T @ quota
    table = pl.DataFrame(
        {"country": countries, "seen": counts.sum(axis=1).astype(int), "take": quota.astype(int)}
    )
    group_table = pl.DataFrame(
        {
            "group": groups,
            "collected": counts.sum(axis=0).astype(int),
            "expected": expected_totals.round(1),
            "share": expected_totals / expected_totals.sum(),
            "wanted": target_shares,
        }
    )
    return CountryQuotas(table.sort("take", "country", descending=[True, False]), group_table)


def _check_target_shares(
    groups: list[str], target_share_by_group: Mapping[str, float] | None
) -> FloatArray:
    if target_share_by_group is None:
        return np.full(len(groups), 1 / len(groups))
    for name in target_share_by_group:
        if name not in groups:
            raise UnknownNameError("group", name, groups)
    total = sum(target_share_by_group.values())
    if abs(total - 1) > _SUM_TOLERANCE or min(target_share_by_group.values()) < 0:
        raise SpecError(
            "the shares of a balance sum to 1",
            expected="shares from 0 to 1",
            found=f"a sum of {total:g}",
        )
    return np.array([target_share_by_group.get(name, 0.0) for name in groups])


def _count_photos_by_country_group(
    annotated_photos: pl.DataFrame, countries: list[str], groups: list[str]
) -> FloatArray:
    table = np.zeros((len(countries), len(groups)))
    row, column = {c: k for k, c in enumerate(countries)}, {g: k for k, g in enumerate(groups)}
    for country, group, number in (
        annotated_photos.group_by("country", "group").agg(n=pl.len()).iter_rows()
    ):
        table[row[country], column[group]] = number
    return table


def _solve_integer_quotas(
    compositions: FloatArray,
    current_totals: FloatArray,
    target_shares: FloatArray,
    n_photos: int,
    max_photos_per_country: int,
) -> FloatArray:
    """Find whole numbers up to the maximum whose expected totals are nearest to the shares."""
    from scipy.optimize import lsq_linear

    if max_photos_per_country * len(compositions) < n_photos:
        raise TableError(
            "the countries do not have that many photos",
            expected=f"at most {max_photos_per_country * len(compositions):,}",
            found=f"{n_photos:,} to take",
        )
    needed_totals = target_shares * (current_totals.sum() + n_photos) - current_totals
    coefficients = np.vstack([compositions.T, np.full((1, len(compositions)), _TOTAL_WEIGHT)])
    targets = np.append(needed_totals, _TOTAL_WEIGHT * n_photos)
    solution = lsq_linear(coefficients, targets, bounds=(0, max_photos_per_country), tol=1e-12).x
    quota = np.minimum(np.floor(solution + 1e-6), max_photos_per_country)
    for country_index in np.argsort(quota - solution, kind="stable"):  # largest remainders first
        step = min(n_photos - quota.sum(), 1.0, max_photos_per_country - quota[country_index])
        quota[country_index] += max(step, 0.0)
    while (n_missing := n_photos - quota.sum()) > 0:
        country_index = int(np.argmin(quota))
        quota[country_index] += min(n_missing, max_photos_per_country - quota[country_index])
    return np.asarray(quota)


def read_uncommented_lines(path: str | Path) -> list[str]:
    """Read a text file's lines, without blank ones and those that begin with #."""
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


def _read_unique_key_numbers(
    path: str | Path, key_column: str, value_column: str
) -> dict[str, float]:
    frame = read_table_as_text(path, key_column, value_column)
    number = frame[value_column].cast(pl.Float64, strict=False)
    refuse_faulty_rows(
        number.is_null() | frame[key_column].is_null() | frame[key_column].is_duplicated(),
        f"a row does not give one {key_column} a number",
        str(path),
        expected=f"{key_column} once, {value_column} a number",
        cells=frame[value_column],
    )
    return dict(zip(frame[key_column], number, strict=True))


def select_concepts_from_files(
    nouns: str | Path,
    *,
    offensive: str | None = None,
    imagenet: str | None = None,
    examples: str | None = None,
    selection: str | None = None,
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
    selection : str, optional
        A text file of the synsets that you chose, one per line: none may lie under another one.

    Returns
    -------
    polars.DataFrame
        A row a concept: ``synset, lemmas`` (as text), ``depth, reason``.
    """
    n_examples = None
    if examples is not None:
        n_examples = {
            k: int(v) for k, v in _read_unique_key_numbers(examples, "synset", "examples").items()
        }
    concept_table = list_concepts_with_exclusion_reasons(
        read_wordnet_nouns(nouns),
        offensive_synsets_or_lemmas=read_uncommented_lines(offensive) if offensive else (),
        imagenet_synsets=read_uncommented_lines(imagenet) if imagenet else None,
        n_examples_by_synset=n_examples,
        chosen_synsets=read_uncommented_lines(selection) if selection else (),
    )
    return concept_table.with_columns(pl.col("lemmas").list.join(", "))


def pick_photos_from_files(
    photos: str | Path,
    *,
    terms: str,
    per_class: int = 50,
    rates: str | None = None,
    collected: str | None = None,
    exclude: Sequence[str] = (),
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
    collected : str, optional
        A table class, number: photos that show it already.
    exclude : sequence of str
        Tables of earlier rounds, whose images are left out.
    """
    earlier_ids = [
        image_id
        for path in exclude
        for image_id in read_table_as_text(path, "image_id")["image_id"].drop_nulls()
    ]
    term_matches = count_matching_terms_by_class(
        read_table_as_text(photos, "image_id"), read_table_as_text(terms, "class", "term")
    )
    n_existing = (
        {k: int(v) for k, v in _read_unique_key_numbers(collected, "class", "number").items()}
        if collected
        else None
    )
    return pick_photos_by_term_matches(
        term_matches,
        n_wanted_per_class=per_class,
        yield_by_class=_read_unique_key_numbers(rates, "class", "rate") if rates else None,
        n_by_class=n_existing,
        excluded_ids=earlier_ids,
    )


def compute_quotas_from_files(
    seen: str | Path,
    *,
    take: int,
    balance: str | None = None,
    max_photos: int | None = None,
) -> CountryQuotas:
    """Reckon how many photos to take from each country in the next round.

    Parameters
    ----------
    seen : str or Path
        A table country, group: one row per photo annotated so far.
    take : int
        Photos of the next round.
    balance : str, optional
        A table group, share: the shares wanted, which sum to 1; default: equal shares.
    max_photos : int, optional
        The most photos from one country in this round, so that no country represents a group alone.
    """
    target_shares = _read_unique_key_numbers(balance, "group", "share") if balance else None
    return compute_country_quotas(
        read_table_as_text(seen, "country", "group"),
        n_photos=take,
        target_share_by_group=target_shares,
        max_photos_per_country=max_photos,
    )


def sample_first_round(photos: str | Path, *, first: int) -> pl.DataFrame:
    """Sample the first round at random over all countries."""
    frame = read_table_as_text(photos, "image_id")
    if frame.height < first:
        raise TableError(
            "there are not that many photos",
            expected=f"at least {first:,}",
            found=f"{frame.height:,}",
            where=str(photos),
        )
    return frame.sample(first, seed=0).sort("image_id")
