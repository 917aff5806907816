"""One group whose numbers are in another unit: months for years, percent for fractions.

Such a group is 12 or 100 times as far off as any other, and reads as the one that is served worst.
"""

from __future__ import annotations

from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._group_units import caution_on_groups_in_other_units
from isolux.vocabulary.info import PlausibilityInfo
from isolux.vocabulary.notes import Caution

INFO = PlausibilityInfo(
    title="A group in another unit",
    summary="The size and spread of each group's numbers against those of all others, held against "
    "the truth where there is one.",
    rule="Warns where both differ by one round factor (12, 100, 255, 365.25, 1000 or its inverse), "
    "from 20 people in the group and outside it on; without a truth where three quantiles differ "
    "by 100, 255 or 1000.",
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on each group whose numbers are a round factor larger or smaller than all others."""
    return caution_on_groups_in_other_units(inputs)
