"""Settings of comparisons: with whom, under which correction, by which formula."""

from __future__ import annotations

from typing import Literal

from isolux.core.spec.stage import SettingsStage, setting
from isolux.core.spec.statistics import Statistics

Correction = Literal["max-t", "holm", "bonferroni", "bh", "none"]


class Disparity(SettingsStage):
    """How groups are compared."""

    reference: tuple[str, ...] = setting(
        (),
        'compare with one group only: "race=White"; default: all pairs',
        often=True,
        needs=("by",),
    )
    correction: Correction = setting("max-t", "how the family of tests is corrected", needs=("by",))
    ddof: Literal[0, 1] = setting(
        1, "degrees of freedom of standard deviations", flag=False, needs=("by",)
    )
    log_base: float = setting(10.0, "base of log ratios", gt=1, flag=False, needs=("ratios",))
    margin: float | None = setting(
        None,
        "test that no two groups (with --reference: no group and the reference) differ by more "
        "than this, in percentage points",
        ge=0.1,
        le=100,
        often=True,
        needs=("by",),
    )


class ComparisonSettings(Statistics, Disparity):
    """All that a comparison of groups reads: ``statistics`` and ``disparity`` in one."""
