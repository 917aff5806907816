"""A rehearsal of building a dataset: photos with injected faults, and annotators who err.

``draw_inbox -> write_inbox``: what people send in, as sheets and photos, with the truth beside
them. ``list_tasks -> work``: simulated annotators who answer at a desk, a server's or a sheet's.
``golden_sheet`` and ``reviewed`` give what a lab's own specialists would: right answers for
training, and what people see in photos that no rule can.
"""

from __future__ import annotations

from isolux_worlds.rehearsal.annotation_tasks import AnnotationTask, list_tasks, read_people
from isolux_worlds.rehearsal.annotator_answers import CREW, Annotator, MistakeRates
from isolux_worlds.rehearsal.annotator_work import answer_tasks
from isolux_worlds.rehearsal.fault_assignment import FAULTS, Fault
from isolux_worlds.rehearsal.files import write_inbox
from isolux_worlds.rehearsal.inbox import CLASSES, MODEL, Inbox, draw_inbox
from isolux_worlds.rehearsal.specialists import (
    REVIEWED,
    fill_suspects_sheet,
    golden_sheet,
    logo_marks,
    review_photos,
)
from isolux_worlds.rehearsal.workplaces import Account, Desk, ServerDesk, SheetDesk, accounts

__all__ = [
    "CLASSES",
    "CREW",
    "FAULTS",
    "MODEL",
    "REVIEWED",
    "Account",
    "AnnotationTask",
    "Annotator",
    "Desk",
    "Fault",
    "Inbox",
    "MistakeRates",
    "ServerDesk",
    "SheetDesk",
    "accounts",
    "answer_tasks",
    "draw_inbox",
    "fill_suspects_sheet",
    "golden_sheet",
    "list_tasks",
    "logo_marks",
    "read_people",
    "review_photos",
    "write_inbox",
]
