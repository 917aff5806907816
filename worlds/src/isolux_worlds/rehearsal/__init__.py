"""A rehearsal of building a dataset: photos with injected faults, and annotators who err.

``draw_inbox -> write_inbox``: what people send in, as sheets and photos, with the truth beside
them. ``tasks_of -> work``: simulated annotators who answer at a desk, a server's or a sheet's.
``golden_sheet`` and ``reviewed`` give what a lab's own specialists would: right answers for
training, and what people see in photos that no rule can.
"""

from __future__ import annotations

from isolux_worlds.rehearsal.answering import CREW, Annotator, Slips
from isolux_worlds.rehearsal.desks import Account, Desk, ServerDesk, SheetDesk, accounts
from isolux_worlds.rehearsal.files import write_inbox
from isolux_worlds.rehearsal.inbox import CLASSES, MODEL, Inbox, draw_inbox
from isolux_worlds.rehearsal.planting import FAULTS, Fault
from isolux_worlds.rehearsal.sight import Asked, read_people, tasks_of
from isolux_worlds.rehearsal.specialists import REVIEWED, golden_sheet, logo_marks, looked, reviewed
from isolux_worlds.rehearsal.working import work

__all__ = [
    "CLASSES",
    "CREW",
    "FAULTS",
    "MODEL",
    "REVIEWED",
    "Account",
    "Annotator",
    "Asked",
    "Desk",
    "Fault",
    "Inbox",
    "ServerDesk",
    "SheetDesk",
    "Slips",
    "accounts",
    "draw_inbox",
    "golden_sheet",
    "logo_marks",
    "looked",
    "read_people",
    "reviewed",
    "tasks_of",
    "work",
    "write_inbox",
]
