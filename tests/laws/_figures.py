"""Where a law's figures go: one JSON file per table, from which the page is made."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

FOLDER = Path(__file__).with_name("figures")
ASKED = os.environ.get("ISOLUX_LAWS", "")
"""Nothing: a small run; ``full``; or a share of the worlds (``0.02``), to reckon what all cost."""
KEPT = ASKED == "full"
FULL = ASKED != ""
"""Every cell, and replicates as many as in a whole run."""
PART = float(ASKED) if FULL and not KEPT else 1.0
COMMAND = "ISOLUX_LAWS=full python -m pytest tests/laws"


def scaled(full: int, small: int) -> int:
    """Return how many worlds to draw: the page's number, a share of it, or the default run's."""
    return max(2, round(full * PART)) if FULL else small


def sized(full: int, small: int) -> int:
    """Return how many replicates (or looks, or photos) a world has: never a share of them."""
    return full if FULL else small


def at_most(chance: float, worlds: int, *, full: float) -> float:
    """Bound the share of worlds with what happens in ``chance`` of them: ``full`` in a whole run.

    In a small run more have a chance below 1 in 5,000, so that other random numbers break nothing.
    """
    return full if FULL else float(binom.isf(1 / 5000, worlds, chance)) / worlds


def at_least(chance: float, worlds: int, *, full: float) -> float:
    """Bound from below the share of worlds with what happens in ``chance`` of them."""
    return full if FULL else float(binom.ppf(1 / 5000, worlds, chance)) / worlds


def record(name: str, rows: list[dict[str, Any]], *, worlds: int, replicates: int) -> None:
    """Print a law's figures; in the full run, keep them, dated, with the machine they ran on."""
    for row in rows:
        print(name, row)
    if not KEPT:
        return
    document = {
        "name": name,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": COMMAND,
        "machine": f"{platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}",
        "worlds": worlds,
        "replicates": replicates,
        "rows": rows,
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    waiting = FOLDER / f".{name}.tmp"
    waiting.write_text(json.dumps(document, indent=1, default=_number) + "\n", encoding="utf-8")
    waiting.replace(FOLDER / f"{name}.json")


def _number(value: Any) -> float:
    return round(float(value), 4)
