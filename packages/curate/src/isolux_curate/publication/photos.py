"""Select photos that may be published, and assign people to splits.

Consent is read from the project's ledger only: a sheet's "yes" says nothing about publication.
Every subject in a photo must have granted it, and its copyright holder if the ledger has any.

People who share a photo are in the same split.

Strata have the same shares in every split: each next cluster of people goes to the split that is
furthest behind its share, in the stratum and overall. The order is the hash of the seed and the
cluster's first id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from isolux.core.errors import FileError, SpecError
from isolux.core.notes import Caution
from isolux.io.consent import Ledger
from isolux.io.consent.rows import ConsentRole, Scope
from isolux_curate.annotation.task_updates import (
    caution_on_crowded_photos,
    exclude_undecided_crowded_photos,
)
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import (
    read_images,
    read_people_in_photos,
    read_verified_consent_or_none,
)
from isolux_curate.project.verdicts import refuse_undecided_hash_matches

_SUM_TOLERANCE = 1e-6


def parse_split_shares(shares_text: str) -> dict[str, float]:
    """Read ``train=0.8,test=0.2``: names, and shares that sum to 1.

    Examples
    --------
    >>> parse_split_shares("test=1")
    {'test': 1.0}
    """
    share_by_split: dict[str, float] = {}
    for assignment in shares_text.split(","):
        name, _, share = (piece.strip() for piece in assignment.partition("="))
        try:
            share_value = float(share)
        except ValueError:
            share_value = -1.0
        if not name or name in share_by_split or not 0.0 < share_value <= 1.0:
            raise SpecError(
                "these are not splits",
                expected="train=0.8,test=0.2",
                found=repr(shares_text),
                where="split",
            )
        share_by_split[name] = share_value
    if abs(sum(share_by_split.values()) - 1.0) > _SUM_TOLERANCE:
        raise SpecError(
            "the shares of splits do not sum to 1",
            expected="train=0.8,test=0.2",
            found=repr(shares_text),
            where="split",
        )
    return share_by_split


def assign_subjects_to_splits(
    people: pl.DataFrame, share_by_split: Mapping[str, float], seed: int = 0
) -> pl.Series:
    """Assign each person in a photo to a split.

    Examples
    --------
    >>> people = pl.DataFrame({"image_id": list("abcd"), "subject_id": ["s", "s", "t", "u"],
    ...                        "stratum": [""] * 4})
    >>> split = assign_subjects_to_splits(people, {"train": 0.5, "test": 0.5})
    >>> split[0] == split[1], sorted(split.unique())
    (True, ['test', 'train'])
    """
    if people.is_empty():
        return pl.Series("split", [], dtype=pl.String)
    person = pl.coalesce(pl.col("subject_id"), pl.format("photo {}", "image_id"))
    photo_people = people.select("image_id", "stratum", who=person)
    components = _label_connected_people(photo_people)
    order = (
        photo_people.with_columns(part=pl.Series(components))
        .group_by("part", maintain_order=True)
        .agg(first=pl.col("who").min(), stratum=pl.col("stratum").min())
    )
    draw_keys = [
        hashlib.sha256(f"{seed}\x00{person_key}".encode()).hexdigest()
        for person_key in order["first"]
    ]
    order = order.with_columns(place=pl.Series(draw_keys)).sort("stratum", "place")
    split_names = _assign_splits_by_stratum(order["stratum"].to_list(), share_by_split)
    names = dict(zip(order["part"].to_list(), split_names, strict=True))
    return pl.Series("split", [names[component] for component in components], dtype=pl.String)


def assign_clusters_by_shared_photos(named_people: pl.DataFrame) -> pl.DataFrame:
    """Assign one cluster id to people who are connected by photos, by photo.

    Examples
    --------
    >>> named = pl.DataFrame({"image_id": list("aabc"), "subject_id": ["s", "t", "t", "u"]})
    >>> assign_clusters_by_shared_photos(named).sort("image_id")["cluster_id"].to_list()
    ['1', '1', '2']
    """
    if named_people.is_empty():
        return pl.DataFrame(schema={"image_id": pl.String, "cluster_id": pl.String})
    person = pl.coalesce(pl.col("subject_id"), pl.format("photo {}", "image_id"))
    photo_people = named_people.select("image_id", who=person)
    first = photo_people.with_columns(
        part=pl.Series(_label_connected_people(photo_people))
    ).with_columns(first=pl.col("who").min().over("part"))
    number = pl.col("first").rank("dense").cast(pl.String)
    return first.select("image_id", cluster_id=number).unique(maintain_order=True)


def _label_connected_people(photo_people: pl.DataFrame) -> list[int]:
    """Return the connected component of each row: people are connected by shared photos."""
    person_index = photo_people["who"].rank("dense").to_numpy().astype(np.int64) - 1
    image_index = photo_people["image_id"].rank("dense").to_numpy().astype(np.int64) - 1
    n = int(person_index.max()) + 1
    size = n + int(image_index.max()) + 1
    links = coo_array(
        (np.ones(len(person_index)), (person_index, image_index + n)), shape=(size, size)
    )
    _, component_of_node = connected_components(links, directed=False)
    return [int(component) for component in component_of_node[person_index]]


def _assign_splits_by_stratum(strata: list[str], share_by_split: Mapping[str, float]) -> list[str]:
    names = list(share_by_split)
    share = np.array([share_by_split[name] for name in names])
    split_counts = np.zeros(len(names))
    counts_by_stratum: dict[str, np.ndarray] = {}
    split_names: list[str] = []
    for stratum in strata:
        stratum_counts = counts_by_stratum.setdefault(stratum, np.zeros(len(names)))
        deficits = (
            share * (stratum_counts.sum() + 1)
            - stratum_counts
            + share * (split_counts.sum() + 1)
            - split_counts
        )
        k = int(np.argmax(deficits))
        stratum_counts[k] += 1
        split_counts[k] += 1
        split_names.append(names[k])
    return split_names


@dataclass(frozen=True, slots=True)
class EligiblePhotos:
    """The photos that may be published.

    Parameters
    ----------
    photos : polars.DataFrame
        As ``read_images``; with a file.
    excluded_counts : mapping of str to int
        Photos that stand and are not published, by reason.
    notes : tuple of str
    """

    photos: pl.DataFrame
    excluded_counts: dict[str, int]
    notes: tuple[str, ...]


def exclude_crowded_and_select_publishable(
    project: Project, scopes: Sequence[Scope]
) -> EligiblePhotos:
    """Select photos that are not excluded and whose people consented to every scope."""
    refuse_undecided_hash_matches(project)
    ledger = read_verified_consent_or_none(project)
    if ledger is None:
        raise FileError(
            "the project has no ledger of consent, and nothing says that anyone agreed to be"
            " published",
            expected=str(project.consent_path),
            where=str(project.folder),
            hint=f"isolux curate grant {project.consent_path} --list subjects.txt --scope"
            f" {','.join(scopes)}",
        )
    exclude_undecided_crowded_photos(project)
    notes = [*ledger.notes, *caution_on_crowded_photos(project)]
    photos = read_images(project)
    people = read_people_in_photos(project).filter(pl.col("origin") == "submitted")
    eligible = photos.filter(pl.col("file").is_not_null())
    excluded_counts = {"no file in the project": photos.height - eligible.height}
    agreed = _list_agreed_photos_by_scope(ledger, people, "subject_id", "subject", scopes)
    unnamed_photos = eligible.filter(~pl.col("image_id").is_in(people["image_id"].implode()))
    excluded_counts["nobody is named in it"] = unnamed_photos.height
    eligible = eligible.filter(pl.col("image_id").is_in(people["image_id"].implode()))
    for scope, agreed_ids in agreed.items():
        agreed_photos = eligible.filter(pl.col("image_id").is_in(agreed_ids.implode()))
        excluded_counts[f"a subject has not agreed to {scope}"] = (
            eligible.height - agreed_photos.height
        )
        eligible = agreed_photos
    eligible, copyright_counts, copyright_notes = _drop_photos_without_copyright_consent(
        ledger, people, eligible, scopes
    )
    excluded_counts |= copyright_counts
    notes += copyright_notes
    if eligible.is_empty():
        raise SpecError(
            "no photo may be published",
            expected="photos that passed, with consent to " + ", ".join(scopes),
            found="; ".join(f"{n:,} photos: {reason}" for reason, n in excluded_counts.items() if n)
            or "no photo",
            where=str(project.folder),
        )
    return EligiblePhotos(
        eligible, {reason: n for reason, n in excluded_counts.items() if n}, tuple(notes)
    )


def _list_agreed_photos_by_scope(
    ledger: Ledger,
    people: pl.DataFrame,
    person_column: str,
    person_kind: ConsentRole,
    scopes: Sequence[Scope],
) -> dict[str, pl.Series]:
    """List the photos in which all people agreed, by scope; unknown people did not."""
    person_ids = people[person_column].drop_nulls().unique().sort()
    photos_by_scope: dict[str, pl.Series] = {}
    for scope in scopes:
        agreed_ids = person_ids.filter(
            ledger.allows(person_kind, person_ids, scope).fill_null(value=False)
        )
        photo_agreements = people.select(
            "image_id", yes=pl.col(person_column).is_in(agreed_ids.implode()).fill_null(value=False)
        )
        photos_by_scope[scope] = (
            photo_agreements.group_by("image_id").agg(pl.col("yes").all()).filter("yes")["image_id"]
        )
    return photos_by_scope


def _drop_photos_without_copyright_consent(
    ledger: Ledger, people: pl.DataFrame, photos: pl.DataFrame, scopes: Sequence[Scope]
) -> tuple[pl.DataFrame, dict[str, int], list[str]]:
    """Exclude photos whose copyright holder has not agreed, if the ledger has any holders."""
    has_holder_column = "copyright_holder" in people.columns
    has_holders = any(row.kind == "copyright" for row in ledger.rows)
    if not has_holders:
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
    if not has_holder_column:
        raise SpecError(
            "the ledger knows copyright holders, and no photo names its own",
            expected="a column copyright_holder in the sheet of photos",
        )
    photo_people = people.filter(pl.col("image_id").is_in(photos["image_id"].implode()))
    n_excluded = 0
    for agreed_ids in _list_agreed_photos_by_scope(
        ledger, photo_people, "copyright_holder", "copyright", scopes
    ).values():
        agreed_photos = photos.filter(pl.col("image_id").is_in(agreed_ids.implode()))
        n_excluded += photos.height - agreed_photos.height
        photos = agreed_photos
    return photos, {"the copyright holder has not agreed": n_excluded}, []
