"""Which photos may be published, and in which split each of their people is.

Consent is asked of the project's ledger alone: a sheet's "yes" says nothing of publication. Every
subject in a photo must have granted it, and whoever holds the copyright where the ledger knows
copyright holders.

Whoever shares a photo with someone is in one split with them.

Parts of the population that are to be alike in every split (strata) are filled side by side: each
next subject goes to the split that is furthest behind its share, in the stratum and on the whole.
The order is the hash of the seed and the subject's id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from isolux.io.consent import Ledger
from isolux.io.consent.rows import Kind, Scope
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.notes import Caution
from isolux_curate.annotation.following import hold_crowded_photos, note_crowded_photos
from isolux_curate.project.decisions import refuse_held
from isolux_curate.project.folder import Project
from isolux_curate.project.reading import read_consent, read_images, read_instances

_TOLERANCE = 1e-6


def read_shares(text: str) -> dict[str, float]:
    """Read ``train=0.8,test=0.2``: names, and shares that sum to 1.

    Examples
    --------
    >>> read_shares("test=1")
    {'test': 1.0}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, share = (piece.strip() for piece in part.partition("="))
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not name or name in found or not 0.0 < value <= 1.0:
            raise SpecError(
                "these are not splits",
                expected="train=0.8,test=0.2",
                found=repr(text),
                where="split",
            )
        found[name] = value
    if abs(sum(found.values()) - 1.0) > _TOLERANCE:
        raise SpecError(
            "the shares of splits do not sum to 1",
            expected="train=0.8,test=0.2",
            found=repr(text),
            where="split",
        )
    return found


def split_by_subject(people: pl.DataFrame, shares: Mapping[str, float], seed: int = 0) -> pl.Series:
    """Say which split each person in a photo is in.

    Examples
    --------
    >>> people = pl.DataFrame({"image_id": list("abcd"), "subject_id": ["s", "s", "t", "u"],
    ...                        "stratum": [""] * 4})
    >>> split = split_by_subject(people, {"train": 0.5, "test": 0.5})
    >>> split[0] == split[1], sorted(split.unique())
    (True, ['test', 'train'])
    """
    if people.is_empty():
        return pl.Series("split", [], dtype=pl.String)
    who = pl.coalesce(pl.col("subject_id"), pl.format("photo {}", "image_id"))
    held = people.select("image_id", "stratum", who=who)
    parts = _together(held)
    order = (
        held.with_columns(part=pl.Series(parts))
        .group_by("part", maintain_order=True)
        .agg(first=pl.col("who").min(), stratum=pl.col("stratum").min())
    )
    place = [hashlib.sha256(f"{seed}\x00{one}".encode()).hexdigest() for one in order["first"]]
    order = order.with_columns(place=pl.Series(place)).sort("stratum", "place")
    given = _given(order["stratum"].to_list(), shares)
    names = dict(zip(order["part"].to_list(), given, strict=True))
    return pl.Series("split", [names[part] for part in parts], dtype=pl.String)


def together(named: pl.DataFrame) -> pl.DataFrame:
    """Give people who are joined by photos, and all their photos, one number.

    Examples
    --------
    >>> named = pl.DataFrame({"image_id": list("aabc"), "subject_id": ["s", "t", "t", "u"]})
    >>> together(named).sort("image_id")["cluster_id"].to_list()
    ['1', '1', '2']
    """
    if named.is_empty():
        return pl.DataFrame(schema={"image_id": pl.String, "cluster_id": pl.String})
    who = pl.coalesce(pl.col("subject_id"), pl.format("photo {}", "image_id"))
    held = named.select("image_id", who=who)
    first = held.with_columns(part=pl.Series(_together(held))).with_columns(
        first=pl.col("who").min().over("part")
    )
    number = pl.col("first").rank("dense").cast(pl.String)
    return first.select("image_id", cluster_id=number).unique(maintain_order=True)


def _together(held: pl.DataFrame) -> list[int]:
    """Give each person the number of the set of people who are joined by photos."""
    who = held["who"].rank("dense").to_numpy().astype(np.int64) - 1
    image = held["image_id"].rank("dense").to_numpy().astype(np.int64) - 1
    n = int(who.max()) + 1
    size = n + int(image.max()) + 1
    links = coo_array((np.ones(len(who)), (who, image + n)), shape=(size, size))
    _, part = connected_components(links, directed=False)
    return [int(one) for one in part[who]]


def _given(strata: list[str], shares: Mapping[str, float]) -> list[str]:
    names = list(shares)
    share = np.array([shares[name] for name in names])
    whole = np.zeros(len(names))
    of_stratum: dict[str, np.ndarray] = {}
    found: list[str] = []
    for stratum in strata:
        here = of_stratum.setdefault(stratum, np.zeros(len(names)))
        behind = share * (here.sum() + 1) - here + share * (whole.sum() + 1) - whole
        k = int(np.argmax(behind))
        here[k] += 1
        whole[k] += 1
        found.append(names[k])
    return found


@dataclass(frozen=True, slots=True)
class Chosen:
    """What may be published.

    Parameters
    ----------
    photos : polars.DataFrame
        As ``read_images``; with a file.
    left : mapping of str to int
        Photos that stand and are not published, by reason.
    notes : tuple of str
    """

    photos: pl.DataFrame
    left: dict[str, int]
    notes: tuple[str, ...]


def chosen_photos(project: Project, scopes: Sequence[Scope]) -> Chosen:
    """Choose the photos that passed and whose consent covers every scope."""
    refuse_held(project)
    ledger = read_consent(project)
    if ledger is None:
        raise FileError(
            "the project has no ledger of consent, and nothing says that anyone agreed to be"
            " published",
            expected=str(project.consent),
            where=str(project.folder),
            hint=f"isolux curate grant {project.consent} --list subjects.txt --scope"
            f" {','.join(scopes)}",
        )
    hold_crowded_photos(project)
    notes = [*ledger.notes, *note_crowded_photos(project)]
    photos = read_images(project)
    people = read_instances(project).filter(pl.col("origin") == "submitted")
    whole = photos.filter(pl.col("file").is_not_null())
    left = {"no file in the project": photos.height - whole.height}
    agreed = _agreed(ledger, people, "subject_id", "subject", scopes)
    nobody = whole.filter(~pl.col("image_id").is_in(people["image_id"].implode()))
    left["nobody is named in it"] = nobody.height
    whole = whole.filter(pl.col("image_id").is_in(people["image_id"].implode()))
    for scope, kept in agreed.items():
        rest = whole.filter(pl.col("image_id").is_in(kept.implode()))
        left[f"a subject has not agreed to {scope}"] = whole.height - rest.height
        whole = rest
    whole, more, told = _of_holders(ledger, people, whole, scopes)
    left |= more
    notes += told
    if whole.is_empty():
        raise SpecError(
            "no photo may be published",
            expected="photos that passed, with consent to " + ", ".join(scopes),
            found="; ".join(f"{n:,} photos: {why}" for why, n in left.items() if n) or "no photo",
            where=str(project.folder),
        )
    return Chosen(whole, {why: n for why, n in left.items() if n}, tuple(notes))


def _agreed(
    ledger: Ledger, people: pl.DataFrame, column: str, kind: Kind, scopes: Sequence[Scope]
) -> dict[str, pl.Series]:
    """Give for each scope the photos in which everyone agreed; who is not known did not."""
    known = people[column].drop_nulls().unique().sort()
    found: dict[str, pl.Series] = {}
    for scope in scopes:
        yes = known.filter(ledger.allows(kind, known, scope).fill_null(value=False))
        each = people.select(
            "image_id", yes=pl.col(column).is_in(yes.implode()).fill_null(value=False)
        )
        found[scope] = each.group_by("image_id").agg(pl.col("yes").all()).filter("yes")["image_id"]
    return found


def _of_holders(
    ledger: Ledger, people: pl.DataFrame, photos: pl.DataFrame, scopes: Sequence[Scope]
) -> tuple[pl.DataFrame, dict[str, int], list[str]]:
    """Ask copyright holders, where the ledger knows any."""
    named = "copyright_holder" in people.columns
    asked = any(row.kind == "copyright" for row in ledger.rows)
    if not asked:
        if "copyright" in people.columns:
            return photos, {}, []
        return (
            photos,
            {},
            [
                Caution(
                    "nothing is known of the copyright of photos: neither the ledger nor the sheets"
                    " say who holds it."
                )
            ],
        )
    if not named:
        raise SpecError(
            "the ledger knows copyright holders, and no photo names its own",
            expected="a column copyright_holder in the sheet of photos",
        )
    here = people.filter(pl.col("image_id").is_in(photos["image_id"].implode()))
    left = 0
    for kept in _agreed(ledger, here, "copyright_holder", "copyright", scopes).values():
        rest = photos.filter(pl.col("image_id").is_in(kept.implode()))
        left += photos.height - rest.height
        photos = rest
    return photos, {"the copyright holder has not agreed": left}, []
