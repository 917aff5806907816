"""Withdrawal: everything that holds a person is found, taken out and written down.

``terms`` knows what names a person, ``gathering`` and ``project_rows`` find it, ``planning`` brings
that together, ``rewriting`` takes it out of a file of each format and ``changing`` of all of them,
``progress`` keeps the place, ``receipt`` tells what was done, and ``withdrawing`` is the order of
all that. Source: FHIBE (Sony AI 2025), Methods, "Consent revocation".
"""

from __future__ import annotations

from isolux.curation.withdrawal.planning import (
    Back,
    everyone_else,
    known_of,
    places_of,
    plan_of,
    who_is_back,
)
from isolux.curation.withdrawal.progress import (
    Artefact,
    Plan,
    Work,
    alone,
    check_receipt,
    folder_of,
    receipts_of,
    work_path,
)
from isolux.curation.withdrawal.project_rows import sums_of_photos
from isolux.curation.withdrawal.pseudonymised import key_mark_in, without_key, without_link
from isolux.curation.withdrawal.replacing import KEYS, Replacing, closest, rows_for
from isolux.curation.withdrawal.terms import Terms
from isolux.curation.withdrawal.walking import (
    Place,
    folders_of,
    links_below,
    projects_in,
    sweep_below,
)
from isolux.curation.withdrawal.withdrawing import Looked, Searched, Withdrawn, finish, look_for

__all__ = [
    "KEYS", "Artefact", "Back", "Looked", "Place", "Plan", "Replacing", "Searched", "Terms",
    "Withdrawn", "Work", "alone", "check_receipt", "closest", "everyone_else", "finish",
    "folder_of", "folders_of", "key_mark_in", "known_of", "links_below", "look_for", "places_of",
    "plan_of", "projects_in", "receipts_of", "rows_for", "sums_of_photos", "sweep_below",
    "who_is_back", "without_key", "without_link", "work_path",
]  # fmt: skip
