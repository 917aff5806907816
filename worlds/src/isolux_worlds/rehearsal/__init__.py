"""A rehearsal of building a dataset: photos with injected faults, and annotators who err.

``draw_submitted_photos -> write_inbox``: what people send in, as sheets and photos, with the truth
beside them. ``list_tasks -> work``: simulated annotators who answer at a desk, a server's or a
sheet's. ``build_golden_sheet`` and ``reviewed`` give what a lab's own specialists would: right
answers for training, and what people see in photos that no rule can.
"""

from __future__ import annotations

from isolux_worlds.rehearsal.annotation_tasks import AnnotationTask, list_tasks, read_people
from isolux_worlds.rehearsal.annotator_answers import CREW, Annotator, MistakeRates
from isolux_worlds.rehearsal.annotator_work import answer_tasks
from isolux_worlds.rehearsal.fault_assignment import FAULTS, Fault
from isolux_worlds.rehearsal.files import write_inbox
from isolux_worlds.rehearsal.inbox import CLASSES, MODEL, Inbox, draw_submitted_photos
from isolux_worlds.rehearsal.specialists import (
    REVIEWED,
    build_golden_sheet,
    fill_suspects_sheet,
    simulate_logo_detections,
    simulate_photo_review,
)
from isolux_worlds.rehearsal.workplaces import Account, Desk, ServerDesk, SheetDesk, sign_up_or_in

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
    "answer_tasks",
    "build_golden_sheet",
    "draw_submitted_photos",
    "fill_suspects_sheet",
    "list_tasks",
    "read_people",
    "sign_up_or_in",
    "simulate_logo_detections",
    "simulate_photo_review",
    "write_inbox",
]
