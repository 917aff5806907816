"""What the project's ledger of consent says now of photos that are here, or that are to come in."""

from __future__ import annotations

import polars as pl

from isolux.curation.consent import Kind, Ledger, key_path, read_ledger
from isolux.curation.project.database import reading
from isolux.curation.project.folder import Project
from isolux.curation.project.ledger_head import check_ledger_head
from isolux.vocabulary.errors import FileError

__all__ = ["CONSENT", "drop_revoked_rows", "list_revoked_photos", "read_consent"]

CONSENT: tuple[tuple[Kind, str, str], ...] = (
    ("subject", "consent", "subject_id"), ("copyright", "copyright", "copyright_holder"),
)  # fmt: skip
"""Who is asked: the kind of person in the ledger, the rule of intake, the column with their id."""
_REASONS = {
    "consent": "A person in this photo took their consent back. Nothing more is to be done.",
    "copyright": "Whoever holds the copyright of this photo took their agreement back.",
}


def read_consent(project: Project) -> Ledger | None:
    """Read the project's ledger of consent, and see that it verifies; None: it never had one."""
    ledger = read_ledger(project.consent) if project.consent.exists() else None
    with reading(project.engine) as connection:
        check_ledger_head(connection, project, ledger)
    if ledger is None and key_path(project.consent, None).exists():
        raise FileError(
            "the project's ledger of consent is not there", expected=str(project.consent),
            found="its key alone", where=str(project.folder), hint="bring it back from a backup",
        )  # fmt: skip
    return ledger


def list_revoked_photos(ledger: Ledger, people: pl.DataFrame) -> pl.DataFrame:
    """List photos whose subject or copyright holder took back their consent to evaluation."""
    parts = [pl.DataFrame(schema=dict.fromkeys(("image_id", "step", "rule", "reason"), pl.String))]
    for kind, rule, column in CONSENT:
        if column in people.columns:
            is_allowed = ledger.allows(kind, people[column].cast(pl.String), "evaluation")
            photos = people.filter(~is_allowed.fill_null(value=True))["image_id"]
            parts.append(
                pl.select(image_id=photos.unique(maintain_order=True)).with_columns(
                    step=pl.lit("consent"), rule=pl.lit(rule), reason=pl.lit(_REASONS[rule])
                )
            )
    return pl.concat(parts)


def drop_revoked_rows(
    project: Project, rows: pl.DataFrame, subjects: pl.DataFrame | None
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Take photos of people whose consent is revoked, and these subjects, out of sheets."""
    ledger = read_consent(project)
    if ledger is None:
        return rows, subjects
    revoked_ids = list_revoked_photos(ledger, rows)["image_id"]
    if subjects is not None:
        is_allowed = ledger.allows("subject", subjects["subject_id"], "evaluation")
        subjects = subjects.filter(is_allowed.fill_null(value=True))
    return rows.filter(~pl.col("image_id").is_in(revoked_ids.implode())), subjects
