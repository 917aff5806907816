"""A small group beside a large one that is served alike, at an equal mix of what goes with it.

The mistakes of a small group are few, and often there are none: its replicates then know no error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from isolux.analyses.confounders.audit_tests import MaxStatistic, gap_t_interval
from isolux.analyses.confounders.effects import AdjustmentSettings, estimate_confounder_effects
from isolux.analyses.confounders.groups import ExplanatoryStrata, SensitiveAttribute
from isolux.analyses.confounders.strata import build_stratum_layout, estimate_cell_means

RULES = AdjustmentSettings(min_units=50, min_clusters=10, min_cell=50, min_mix=5)


@dataclass(frozen=True)
class Minority:
    """``small`` and ``large`` are subjects of the groups; ``within``: photos of all are in both."""

    rate: float
    small: int = 80
    large: int = 820
    photos: int = 1
    alike: float = 0.0
    within: bool = False
    gap: float = 0.0
    values: int = 3

    def row(self) -> dict[str, object]:
        """Return what names the world in a table."""
        return {
            "rate": self.rate, "subjects": f"{self.small} and {self.large}",
            "photos each": self.photos, "correlation": self.alike,
            "group of the": "photo" if self.within else "subject", "gap, points": 100 * self.gap,
        }  # fmt: skip


def judged(world: Minority, seed: int, replicates: int = 199) -> dict[str, float]:
    """Draw one world; tell what the analysis and replicates alone say of its gap at one mix."""
    rng = np.random.default_rng([77, seed])
    subjects = world.small + world.large
    subject = np.repeat(np.arange(subjects), world.photos)
    n = len(subject)
    small = subject < world.small
    if world.within:
        small = rng.random(n) < world.small / subjects
    rate = np.full(subjects, world.rate)
    if world.alike:
        k = (1.0 - world.alike) / world.alike
        rate = rng.beta(world.rate * k, (1.0 - world.rate) * k, subjects)
    right = (rng.random(n) < rate[subject] - world.gap * small).astype(float)
    # The small group has more of the last values: that is what an equal mix is for.
    code = np.minimum(rng.integers(0, world.values, n) + (small & (rng.random(n) < 0.4)),
                      world.values - 1)  # fmt: skip
    tone = SensitiveAttribute("tone", ("large", "small"), np.arange(n), small.astype(np.int64))
    light = ExplanatoryStrata(
        ("light",), tuple(f"l{v}" for v in range(world.values)), code, is_image_level=False
    )
    scored = pl.DataFrame({"unit": np.arange(n), "cluster": subject, "value": right})
    layout = build_stratum_layout(tone, [light])
    cells = estimate_cell_means(layout, scored, subjects, (replicates, seed, "multinomial"))
    facts = estimate_confounder_effects(layout, cells, RULES)
    if len(facts.pairs) == 0:
        return {}
    found: dict[str, float] = {"flawless": bool(right[small].all())}
    width = []
    clusters = layout.take_groups(cells.independent_clusters)[facts.comparable][facts.pairs].min(
        axis=1
    )
    for name, gap in (
        ("", facts.explanations[0].standardised.gap),
        ("replicates alone: ", replace(facts.explanations[0].standardised.gap, min_errors=None)),
    ):
        family = MaxStatistic()
        p = family.adjust_p(family.add(gap, clusters))
        ends = gap_t_interval(gap, clusters, 0.95)
        found[f"{name}p"] = bool(p[0] <= 0.05)
        found[f"{name}held"] = bool(ends.low[0] <= world.gap <= ends.high[0])
        width.append(float(ends.high[0] - ends.low[0]))
    return found | {"width": width[0] / width[1] if width[1] > 0 else np.nan}


def minorities(world: Minority, worlds: int, replicates: int = 199) -> dict[str, object]:
    """Draw worlds, and count."""
    found = [one for one in (judged(world, k, replicates) for k in range(worlds)) if one]
    mean = {key: float(np.nanmean([one[key] for one in found])) for key in found[0]}
    return {
        **world.row(), "judged": len(found), "flawless, %": mean["flawless"],
        "p <= .05, %": mean["p"], "held, %": mean["held"],
        "replicates alone: p <= .05, %": mean["replicates alone: p"],
        "replicates alone: held, %": mean["replicates alone: held"],
        "width over replicates alone": mean["width"],
    }  # fmt: skip
