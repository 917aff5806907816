"""The tutorial ``docs/tutorials/synthetic_world.md`` runs as it stands, and prints what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.docs import _pages as pages
from tests.docs.test_tutorials import printed, quoted

PAGE = pages.ROOT / "docs" / "tutorials" / "synthetic_world.md"
LIGHTER = ("1", "2", "3", "4", "5")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("tutorial")
    return folder, printed(PAGE, folder)


@pytest.fixture(scope="module")
def folder(ran: tuple[Path, str]) -> Path:
    return ran[0]


def test_what_the_page_quotes_is_what_the_commands_print(ran: tuple[Path, str]) -> None:
    assert len(quoted(PAGE)) == 4
    assert not [s for s in quoted(PAGE) if s not in ran[1]], ran[1]


def test_the_table_lays_injected_beside_found(folder: Path) -> None:
    rows = re.findall(
        r"^\| (\w+) \| (\w+) \| ([\d.]+) % \| ([\d.]+) % \|$", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) == 6
    for world, group, injected, found in rows:
        truth = injected_rate(folder / world, group)
        measured = pl.read_parquet(folder / "runs" / world / "group_metrics.parquet").filter(
            group=group, threshold=0.5
        )
        (value,), (low,), (high,) = measured.select("value", "low", "high").get_columns()
        assert injected == f"{100 * truth:.1f}", (world, group)
        assert found == f"{100 * value:.1f}", (world, group)
        assert low <= truth <= high


def injected_rate(world: Path, group: str) -> float:
    """A merged group's rate: its tones' rates, weighed by their shares."""
    told = json.loads((world / "injected.json").read_text(encoding="utf-8"))
    tones = {"lighter": True, "darker": False}
    chosen = [
        row
        for row in told["models"]["aurora"]["groups"]
        if (
            row["attribute"] == "skin_tone" and (row["group"] in LIGHTER) == tones[group]
            if group in tones
            else row["attribute"] == "lighting" and row["group"] == group
        )
    ]
    whole = sum(row["share"] for row in chosen)
    return float(sum(row["share"] * row["value"] for row in chosen) / whole)
