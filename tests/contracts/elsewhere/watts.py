"""A check of another package: lanterns of no power."""

from __future__ import annotations

import polars as pl

from isolux.checks import make_problems
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference

INFO = CheckInfo(
    title="Watts",
    summary="Lanterns whose power is 0 or less.",
    references=(Reference(key="watts", citation="Made for a test of isolux."),),
)


def check(dataset: Dataset, *, least: float = 0.0) -> pl.DataFrame:
    """Look for lanterns without power.

    Parameters
    ----------
    dataset : Dataset
        With the attribute ``watts``; without it there is nothing to say.
    least : float
        Watts that a lantern must exceed.

    Returns
    -------
    polars.DataFrame
        Table ``problems``.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one", info=DatasetInfo(title="One", summary="One.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["p"], "image_id": ["i"]}),
    ...     attributes=pl.DataFrame({"unit_id": ["p"], "attribute": ["watts"], "value": ["-5"]}),
    ... )
    >>> check(one).select("problem", "unit_id").row(0)
    ('a lantern gives no light', 'p')
    """
    watts = dataset.attributes.filter(pl.col("attribute") == "watts")
    rows = watts.filter(pl.col("value").cast(pl.Float64, strict=False) <= least)
    return make_problems(
        "watts", rows.sort("unit_id"), "a lantern gives no light", severity="warning",
        unit_kind="instance", unit_id="unit_id", expected=f"above {least:g} watts", found="value",
    )  # fmt: skip
