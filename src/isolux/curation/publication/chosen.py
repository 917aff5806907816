"""Which photos may be published: those that passed, and of which everyone concerned agreed.

Consent is asked of the project's ledger alone: a sheet's "yes" says nothing of publication. Every
subject in a photo must have granted it, and whoever holds the copyright where the ledger knows
copyright holders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from isolux.curation.annotation.headcounts import hold_crowded_photos, note_crowded_photos
from isolux.curation.consent import Ledger
from isolux.curation.consent.row import Kind, Scope
from isolux.curation.project import (
    Project,
    read_consent,
    read_images,
    read_instances,
    refuse_held,
)
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.notes import Caution

__all__ = ["Chosen", "chosen_photos"]


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
            " published", expected=str(project.consent), where=str(project.folder),
            hint=f"isolux curate grant {project.consent} --list subjects.txt --scope"
            f" {','.join(scopes)}",
        )  # fmt: skip
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
            "no photo may be published", expected="photos that passed, with consent to "
            + ", ".join(scopes),
            found="; ".join(f"{n:,} photos: {why}" for why, n in left.items() if n) or "no photo",
            where=str(project.folder),
        )  # fmt: skip
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
        return photos, {}, [
            Caution("nothing is known of the copyright of photos: neither the ledger nor the sheets"
                    " say who holds it.")
        ]  # fmt: skip
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
