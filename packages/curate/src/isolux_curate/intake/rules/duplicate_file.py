"""Photos that came in twice."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import list_refusals_by_first_case

INFO = RuleInfo(
    title="No photo twice",
    summary="Refuses a photo whose file came in before, byte by byte.",
    references=(citations.FHIBE.with_location("Methods, Quality control: duplicates"),),
    step="series",
    order=1,
    needs=("sha256",),
    is_joint=True,
    assumptions=(
        "Copies that were saved again are found by `isolux check` (duplicates), not here.",
    ),
)


def refuse(facts: pl.DataFrame) -> pl.DataFrame:
    """Refuse every copy of a file but the first that came in.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, sha256``, in the order in which photos came in.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "sha256": ["7f", "7f"]})
    >>> refuse(facts).rows()
    [('b', 'This photo was sent before. Please send each photo once.')]
    """
    photo_rows = facts.unique("image_id", keep="first", maintain_order=True)
    is_duplicate = ~pl.col("sha256").is_first_distinct() & pl.col("sha256").is_not_null()
    return list_refusals_by_first_case(
        photo_rows, (is_duplicate, "This photo was sent before. Please send each photo once.")
    )
