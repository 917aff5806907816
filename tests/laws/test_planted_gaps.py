"""Do intervals of differences and ratios hold a gap that was planted, and are they narrower?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isolux.stats.constants import MIN_EFFECTIVE_CLUSTERS
from tests.laws._cells import Z, apart, worlds_of
from tests.laws._figures import FULL, record, scaled
from tests.laws._grid import Cell

pytestmark = pytest.mark.law
WORLDS = scaled(4000, 200)
CELLS = [
    (Cell(rate=0.8, icc=0.0, clusters=400, photos=1), 0.1),
    (Cell(rate=0.98, icc=0.0, clusters=400, photos=1), 0.05),
    (Cell(rate=0.98, icc=0.0, clusters=400, photos=1), 0.01),
    (Cell(rate=0.8, clusters=60), 0.2),
    (Cell(rate=0.95, clusters=200), 0.07),
    (Cell(rate=0.99, clusters=300), 0.03),
    (Cell(rate=0.8, clusters=60, where="within"), 0.1),
    (Cell(rate=0.98, clusters=100, where="within"), 0.05),
    (Cell(rate=0.99, icc=0.0, clusters=300, where="within", prevalence=0.04), 0.1),
    (Cell(rate=0.9, clusters=300, where="mixed", prevalence=0.3), 0.1),
    (Cell(rate=0.8, clusters=100, sizes="geometric"), 0.17),
    (Cell(rate=0.8, clusters=400, sizes="lognormal"), 0.2),
    (Cell(rate=0.8, icc=0.5, clusters=260, first=60, other_icc=0.05), 0.1),
    (Cell(rate=0.95, icc=0.05, clusters=260, first=200, other_icc=0.5), 0.1),
]


@pytest.mark.parametrize(("cell", "gap"), CELLS, ids=lambda x: getattr(x, "name", str)())
def test_a_planted_gap_is_in_the_interval_of_the_pair(cell, gap):
    found = apart(*worlds_of(replace(cell, delta=gap), WORLDS, seed=17))
    groups = found.group_means or ()
    kept = np.all([g.n_effective_clusters >= MIN_EFFECTIVE_CLUSTERS for g in groups], axis=0)
    ends, logs = found.interval(Z), found.interval(Z, log=True)
    joined = found.mover_interval(*found.group_intervals(Z), Z)
    held = (ends.low <= -gap) & (-gap <= ends.high)
    ratio = np.log(1.0 - gap / cell.rate)
    wide = (ends.high - ends.low) / (joined.high - joined.low)
    row = {
        "world": cell.name(), "gap, points": 100 * gap, "judged": int(kept.sum()),
        "difference held, %": float(held[kept].mean()),
        "ratio held, %": float(((logs.low <= ratio) & (ratio <= logs.high))[kept].mean()),
        "MOVER holds, %": float(((joined.low <= -gap) & (-gap <= joined.high))[kept].mean()),
        "width over MOVER's": float(np.median(wide[kept])),
    }  # fmt: skip
    record(f"pair-gap-{CELLS.index((cell, gap)):02d}", [row], worlds=WORLDS, replicates=1)
    assert min(row["difference held, %"], row["ratio held, %"]) >= (0.92 if FULL else 0.88), row
    assert kept.mean() > 0.5, row
