"""Photos without a signed agreement of who holds the copyright."""

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
    title="Copyright of each photo",
    summary="Refuses photos whose copyright holder has not signed.",
    references=(citations.FHIBE.with_location("Methods, Ethics statement"),),
    step="consent",
    order=2,
    needs=("copyright",),
)


def refuse(facts: pl.DataFrame) -> pl.DataFrame:
    """Refuse photos without an agreement on copyright.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, copyright``: of the project's ledger by ``copyright_holder``, else of the sheet:
        a clear yes, a date or a form's number. A photo of several subjects has several rows: one
        has to say yes, and none anything else; empty ones are passed over.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "copyright": ["yes", "no"]})
    >>> refuse(facts)["image_id"].to_list()
    ['b']
    """
    unclear_entry = extract_first_unclear_entry("copyright")
    please = "Please have the person who took the photo sign it."
    no_clear_yes = "Of the agreement on copyright it says '{}', which is not a clear yes. " + please
    return list_refusals_by_first_case(
        facts,
        (unclear_entry.is_not_null(), pl.format(no_clear_yes, unclear_entry)),
        (
            ~build_signed_form_mask("copyright").any().over("image_id"),
            f"The agreement on copyright is missing. {please}",
        ),
    )
