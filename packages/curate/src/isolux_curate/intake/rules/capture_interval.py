"""Photos of one subject that were taken within a week, and are alike."""

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
    order=2,
    needs=("taken",),
    is_joint=True,
    assumptions=(
        "Clothing and place are as stated by the subject; where they are not, they may differ.",
        "A time of day is night (22 to 5), morning, afternoon (12 to 18) or evening.",
        "A day between photos is FHIBE's advice, no rule: min_days makes it one.",
    ),
)

_DAY_S = 86_400  # seconds
_DAY_PART_ENDS = (5, 12, 18, 22)  # hours: night, morning, afternoon, evening, night again
_N_DAY_PARTS = 4


def refuse(
    facts: pl.DataFrame, *, min_days: float = 0.0, preferred_days: float = 7.0
) -> pl.DataFrame:
    """Refuse photos by the days since the last one of the same subject that was taken.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, subject_id, taken`` (ISO 8601), and ``clothing, place`` where they are known.
    min_days : float
        Days that must lie between two photos; photos without a time are not judged.
    preferred_days : float
        Days within which the time of day must differ, and clothing and place where both photos
        tell them.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "subject_id": ["s", "s"],
    ...                       "taken": ["2024-05-01T10:00:00", "2024-05-01T10:02:00"]})
    >>> refuse(facts)["reason"][0]
    'This photo was taken within 7 days of another one of the same person, with the same time ...'
    """
    for name in ("clothing", "place"):
        facts = cast_or_add_null_column(facts, name, pl.String)
    dated = facts.with_columns(
        at=pl.col("taken").str.to_datetime(strict=False).dt.epoch("s") / _DAY_S,
        day_part=_build_day_part(),
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


def _build_day_part() -> pl.Expr:
    """Build the number of the part of the day, 0 to 3."""
    hour = pl.col("taken").str.to_datetime(strict=False).dt.hour()
    return pl.sum_horizontal((hour >= end).cast(pl.Int64) for end in _DAY_PART_ENDS) % _N_DAY_PARTS


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
    shared = [
        word
        for name, word in (("clothing", "clothes"), ("place", "place"), ("day_part", "time of day"))
        if row[name] is not None and row[name] == earlier_row[name]
    ]
    if days < preferred_days and shared:
        return (
            f"This photo was taken within {preferred_days:g} days of another one of the same"
            f" person, with the same {' and '.join(shared)}. Please send photos that differ in"
            " clothes, place and time of day."
        )
    return None
