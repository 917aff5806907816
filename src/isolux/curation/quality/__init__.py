"""Quality of what was collected: samples for review, agreement with specialists, suspicious photos.

Source: Sony AI (2025) (FHIBE), Methods: "Quality control and data filtering", "Detection and
removal of suspicious images" and "Annotation QA". Numbers that it prints are defaults by name.
"""

from __future__ import annotations

__all__ = ["DENSE", "INTER", "INTRA", "LOGO_SCORE"]

DENSE = 0.9
"""FHIBE: agreement of boxes, keypoints and masks, with specialists, within and between vendors."""
INTRA = 0.8
"""FHIBE: agreement of attributes within one vendor."""
INTER = 0.7
"""FHIBE: agreement of attributes between vendors ("at 70 %")."""
LOGO_SCORE = 0.6
"""FHIBE: a detector's score from which on a logo is looked at."""
