"""People who may not have understood what they agreed to."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="Two of three questions",
    summary="Refuses photos of people who answered fewer than two of three language questions.",
    references=(citations.FHIBE.with_location("Methods, Ethics statement"),),
    step="people",
    order=2,
    needs=("language_right",),
)


def refuse(facts: pl.DataFrame, *, min_correct: int = 2) -> pl.DataFrame:
    """Refuse photos of people by how many of three questions they answered right.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, language_right`` (0 to 3; null: not asked).
    min_correct : int
        Right answers, of three questions drawn at random from a bank.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "language_right": [1, 3]})
    >>> refuse(facts)["image_id"].to_list()
    ['a']
    """
    n_right = pl.col("language_right")
    message = (
        f"To be sure that the forms can be understood, {min_correct} of 3 language questions must"
        " be answered right. "
    )
    return list_refusals_by_first_case(
        facts,
        (n_right.is_null(), message + "You have not answered them yet."),
        (n_right < min_correct, pl.format(message + "You answered {}.", n_right)),
    )
