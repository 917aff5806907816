"""Real data that some tests read and that never enters the repository.

It lies in ``data/`` of the folder that ``ISOLUX_SHARED`` names, or of ``../shared`` beside the
checkout. Where it is absent the test is skipped, and says what it did not check.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ISOLUX_SHARED") or CHECKOUT.parent / "shared")


def shared_data(name: str) -> Path:
    """Return the path of one real file or folder, or skip the test that asked for it."""
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(
            f"REAL DATA ABSENT: {name} is not under {SHARED / 'data'}, so the numbers it should "
            "give were NOT checked; set ISOLUX_SHARED to the folder that holds data/"
        )
    return path
