"""Runs for cards, and what a card's tables say, read back from its own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

import polars as pl
import pytest

import isolux
from isolux.cards import Card
from isolux.cards._document import CardTable
from isolux.core.containers import Run

NO_HUB = "HUGGINGFACE_HUB ABSENT: no metadata of a card was written or read back; isolux[cards]"
NO_CROISSANT = "MLCROISSANT ABSENT: no Croissant file was validated; isolux[cards] brings it"
with_hub = pytest.mark.skipif(find_spec("huggingface_hub") is None, reason=NO_HUB)
with_croissant = pytest.mark.skipif(find_spec("mlcroissant") is None, reason=NO_CROISSANT)
HOSTILE = "<script>alert(1)</script> | *b* [x](http://evil.example) `c` @all"
_SOURCE = re.compile(r"group_metrics\.parquet: metric (\w+)(?:, label ([^,]+))?, attribute (\S+?);")


@cache
def run_of_people(night: str = "night") -> Run:
    """Make an audit of 600 people of two lights and two regions, two photos of each."""
    rows = [
        {"unit_id": f"/photos/{k}.jpg", "light": night if k % 3 == 0 else "day",
         "region": ["coast", "hills", "unknown"][k % 7 % 3], "cluster_id": f"s{k // 2}",
         "value": float(k % 10 > (5 if k % 3 == 0 else 0))}
        for k in range(600)
    ]  # fmt: skip
    rows += [{"unit_id": "few", "light": "dusk", "region": "hills", "cluster_id": "f",
              "value": 1.0}]  # fmt: skip
    frame = pl.DataFrame(rows).with_columns(
        metric=pl.lit("accuracy"), task=pl.lit("classification"), model=pl.lit("m")
    )
    return isolux.audit(
        frame.drop("light", "region"), frame.select("unit_id", "light", "region"),
        by=["light", "region", "light*region"], replicates=100,
    ).run  # fmt: skip


def tables_of(card: Card) -> Iterator[CardTable]:
    """Give every table of a card."""
    for part in card.parts:
        yield from (block for block in part.blocks if isinstance(block, CardTable))


def traced(card: Card, run: Run) -> int:
    """Hold each row of a group table to the row of the run that its source names; count them."""
    from isolux.statements.numbers import format_bare_value, format_interval

    seen = 0
    for table in tables_of(card):
        found = _SOURCE.match(table.source)
        if found is None:
            continue
        metric, label, attribute = found.groups()
        rows = run.group_metrics.filter(
            pl.col("metric") == metric, pl.col("label").eq_missing(pl.lit(label)),
            pl.col("attribute") == attribute,
        )  # fmt: skip
        for cells in table.rows:
            (row,) = rows.filter(pl.col("group") == cells[0]).iter_rows(named=True)
            assert cells[1:4] == (
                format_bare_value(row["value"]),
                format_interval(row["low"], row["high"]),
                f"{row['n_units']:,}",
            )
            seen += 1
    return seen
