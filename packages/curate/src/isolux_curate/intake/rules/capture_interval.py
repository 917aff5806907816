"""Photos of one subject that were taken within a day, or within a week and look alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import cast_or_add_null_column

INFO = RuleInfo(
    title="Days between photos",
    summary="Refuses photos taken too soon after another of the same subject.",
    references=(citations.FHIBE.with_location("Methods, Image collection guidelines"),),
    step="series",
    needs=("taken",),
    is_joint=True,
    assumptions=(
        (
            "FHIBE also requires a different time of day; clothing and place are as stated by the "
            "subject."
        ),
    ),
)

_DAY_S = 86_400  # seconds


def refuse(
    facts: pl.DataFrame, *, min_days: float = 1.0, preferred_days: float = 7.0
) -> pl.DataFrame:
    """Refuse photos by the days since the last one of the same subject that was taken.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, subject_id, taken`` (ISO 8601), and ``clothing, place`` where they are known.
    min_days : float
        Days that must lie between two photos; photos without a time are not judged.
    preferred_days : float
        Days within which clothing and place must differ, where both photos tell them.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "subject_id": ["s", "s"],
    ...                       "taken": ["2024-05-01T10:00:00", "2024-05-01T10:02:00"]})
    >>> refuse(facts).rows()
    [('b', 'This photo was taken less than 1 day after another one of the same person. Please ...')]
    """
    for name in ("clothing", "place"):
        facts = cast_or_add_null_column(facts, name, pl.String)
    dated = facts.with_columns(
        at=pl.col("taken").str.to_datetime(strict=False).dt.epoch("s") / _DAY_S
    ).drop_nulls(["at", "subject_id"])
    reason_by_image: dict[str, str] = {}
    for person in dated.sort("at", maintain_order=True).partition_by("subject_id"):
        accepted_rows: list[Mapping[str, Any]] = []
        for row in person.iter_rows(named=True):
            reason = next(
                (
                    w
                    for k in accepted_rows
                    if (w := _explain_short_interval_or_none(k, row, min_days, preferred_days))
                ),
                None,
            )
            if reason is None:
                accepted_rows.append(row)
            else:
                reason_by_image.setdefault(row["image_id"], reason)
    refusals = {"image_id": list(reason_by_image), "reason": list(reason_by_image.values())}
    return pl.DataFrame(refusals, schema={"image_id": pl.String, "reason": pl.String})


def _explain_short_interval_or_none(
    earlier_row: Mapping[str, Any], row: Mapping[str, Any], min_days: float, preferred_days: float
) -> str | None:
    days = abs(row["at"] - earlier_row["at"])
    if days < min_days:
        return (
            f"This photo was taken less than {min_days:g} day{'s' if min_days > 1 else ''} after"
            " another"
            " one of the same person. Please send photos of different days."
        )
    is_similar = any(
        row[name] is not None and row[name] == earlier_row[name] for name in ("clothing", "place")
    )
    if days < preferred_days and is_similar:
        return (
            f"This photo was taken within {preferred_days:g} days of another one of the same"
            " person, in"
            " the same clothes or place. Please send photos that differ in both."
        )
    return None
