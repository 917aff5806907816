"""The tables that people who test biometric systems ask for, from a finished run.

Each is a pure function of a run: ``performance`` (failures and errors by group, the form of
ISO/IEC 19795-10), ``differentials`` (how far the groups' error rates lie apart, as NIST sums them
up, never without the errors themselves), ``impostor_matrix`` and ``false_positive_matrix`` (who is
taken for whom, across groups), ``gallery_by_group``, and of age estimation ``age_performance``. The
texts of the ISO standards are not public: the tables follow what is public of them, and state no
conformity.
"""

from __future__ import annotations

from isolux.disparity.biometrics.crossing import (
    false_positive_matrix,
    gallery_by_group,
    impostor_matrix,
)
from isolux.disparity.biometrics.performance import (
    RATES,
    age_performance,
    differentials,
    is_biometric,
    performance,
)

__all__ = [
    "RATES",
    "age_performance",
    "differentials",
    "false_positive_matrix",
    "gallery_by_group",
    "impostor_matrix",
    "is_biometric",
    "performance",
]
