"""Photos whose file is damaged, cut off or no picture."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="A picture that can be opened",
    summary="Refuses files that are damaged, cut off, empty or not pictures.",
    references=(citations.FHIBE.with_location("Methods, Quality control: image integrity"),),
    step="specifications",
    order=1,
    needs=("trouble",),
)


def refuse(facts: pl.DataFrame) -> pl.DataFrame:
    """Refuse files that cannot be opened whole.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, trouble`` (null: none).

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a"], "trouble": ["the file is empty"]}))["reason"][0]
    'The file cannot be opened (the file is empty). Please send it again, as the camera saved it.'
    """
    message = pl.format(
        "The file cannot be opened ({}). Please send it again, as the camera saved it.", "trouble"
    )
    return list_refusals_by_first_case(facts, (pl.col("trouble").is_not_null(), message))
