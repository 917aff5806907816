"""People without a signed form of consent."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    build_signed_form_mask,
    extract_first_unclear_entry,
    list_refusals_by_first_case,
)

INFO = RuleInfo(
    title="Consent of each subject",
    summary="Refuses photos in which a subject has not consented, or has withdrawn consent.",
    references=(citations.FHIBE.with_location("Methods, Ethics statement"),),
    step="consent",
    order=1,
    needs=("consent",),
)

_REVOKED_ENTRIES = ("revoked", "withdrawn", "withdrew")


def refuse(facts: pl.DataFrame) -> pl.DataFrame:
    """Refuse photos unless every subject in them signed.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, consent``: of the project's ledger (yes, revoked, nothing), else of the sheets:
        a clear yes, a date or a form's number.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "a"], "consent": ["form 1", None]})
    >>> refuse(facts)["reason"][0]
    'The form of consent of a person in this photo is missing. Please have everyone in it sign one.'
    """
    entry = pl.col("consent").cast(pl.String).str.strip_chars().str.to_lowercase()
    is_revoked = entry.is_in(_REVOKED_ENTRIES).fill_null(value=False).any().over("image_id")
    unclear_entry, lacks_consent = (
        extract_first_unclear_entry("consent"),
        ~build_signed_form_mask("consent").all().over("image_id"),
    )
    no_clear_yes = (
        "Of the consent of a person in this photo it says '{}', which is not a clear yes. Please"
        " have everyone in it sign the form."
    )
    return list_refusals_by_first_case(
        facts,
        (
            lacks_consent & is_revoked,
            "A person in this photo took their consent back. Nothing more is to be done.",
        ),
        (lacks_consent & unclear_entry.is_not_null(), pl.format(no_clear_yes, unclear_entry)),
        (
            lacks_consent,
            (
                "The form of consent of a person in this photo is missing. Please have everyone in"
                " it sign one."
            ),
        ),
    )
