"""Failures to enrol and to acquire: which image is a reference, and which is compared with it."""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.tasks._scores import score_rows
from isolux.tasks._threshold import select_by_value
from isolux.tasks.face_verification.metrics import FTA, FTE


def add_enrolment_failures(
    failures: pl.DataFrame, dataset: Dataset, enrolled: str, has_embeddings: bool
) -> pl.DataFrame:
    """Add a row of ``failure_to_enrol_rate`` and of ``failure_to_acquire_rate`` for each failure.

    Parameters
    ----------
    failures : polars.DataFrame
        Table ``scores``, of embeddings: 1 where no template could be made, null where the file
        says nothing of the unit.
    dataset : Dataset
    enrolled : str
        ``ATTRIBUTE=VALUE`` of the images that are enrolled.

    Raises
    ------
    SpecError, UnknownNameError
        It names no attribute and value, or no one has them.
    """
    # A failed pair may be the fault of either image.
    if not has_embeddings:
        raise SpecError(
            "pairs do not say of which image no template could be made",
            expected="enrolled beside embeddings",
            found="a table of pairs",
            where="enrolled",
        )
    if failures.is_empty():
        return failures
    is_enrolled, _ = select_by_value(
        enrolled,
        dataset,
        failures["unit_id"],
        setting="enrolled",
        expected="ATTRIBUTE=VALUE, such as role=reference",
    )
    tables = [failures]
    for metric, is_member, absence_reason in (
        # ISO/IEC 19795-1 separates failures to enrol from failures to acquire
        # (docs/methods/biometrics.md).
        (FTE, is_enrolled, "not enrolled"),
        (FTA, ~is_enrolled, "enrolled"),
    ):
        reason = pl.when(pl.Series(is_member)).then("reason").otherwise(pl.lit(absence_reason))
        tables.append(
            score_rows(failures, "face_verification", metric, pl.col("value"), reason=reason)
        )
    return pl.concat(tables)
