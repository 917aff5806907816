"""What FairFace printed in Table 7: averages are of its datasets, Table 5 is of its averages."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.papers.fairface.cross_dataset import (
    AVERAGE,
    average_accuracy_over_datasets,
    build_accuracy_tables_by_caption,
)
from tests._shared import SHARED

_META = ("task", "dataset", "trained_on", "seed_line", "quality")
HALF = 0.0005  # of the last printed digit


def printed():
    """Read Table 7 as ``across`` gives values; rows that the scan damaged are left out."""
    path = SHARED / "golden" / "fairface_t07.csv"
    if not path.exists():
        pytest.skip("GOLDEN TABLES ABSENT: what FairFace printed was NOT compared")
    table = pl.read_csv(path, infer_schema=False).filter(quality="ok")
    long = table.unpivot(index=list(_META), variable_name="column", value_name="text")
    value = pl.col("text").cast(pl.Float64, strict=False)
    return long.select(
        head="task", dataset="dataset", model="trained_on", column="column", n=pl.lit(1),
        value=value, low=value, high=value, status=pl.lit("ok"),
        reason=pl.lit(None, dtype=pl.String),
    ).with_columns(pl.col("n").cast(pl.Int64))  # fmt: skip


@pytest.mark.parametrize("head", ["race", "age"])
def test_averages_are_of_the_three_datasets_each_once(head):
    table = printed().filter(head=head)
    ours = average_accuracy_over_datasets(
        table.filter(pl.col("dataset") != AVERAGE), ("Twitter", "Media", "Protest")
    )
    theirs = table.filter(dataset=AVERAGE)
    both = ours.join(theirs, on=["model", "column"], suffix="_printed").drop_nulls("value_printed")
    off = (both["value"] - both["value_printed"]).abs()
    assert both.height >= 16
    # One printed cell in some dozens is off by more than rounding of four numbers allows.
    assert (off <= 2 * HALF + 1e-9).mean() > 0.9
    assert off.max() < 0.03


@pytest.mark.parametrize(
    ("model", "expected"),
    [("UTKFace", (0.8954, 0.0334, 0.8423, 0.1283)), ("LFWA+", (0.8246, 0.0560, 0.7850, 0.1151)),
     ("CelebA", (0.8603, 0.0457, 0.7953, 0.1796))],
)  # fmt: skip
def test_table_5_is_mean_and_sd_of_the_averages(model, expected):
    tables = build_accuracy_tables_by_caption(printed().filter(dataset=AVERAGE, head="gender"))
    (table,) = [t for caption, t in tables.items() if caption.startswith("Table 5")]
    row = table.filter(model=model).row(0)
    assert row[1:] == pytest.approx(expected, abs=0.00006)
