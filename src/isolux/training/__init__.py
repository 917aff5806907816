"""Training: a head for features that have none, and a whole network, by one recipe for all."""

from isolux.training.checkpoints import (
    Checkpoint,
    read_checkpoint,
    refuse_other,
    write_checkpoint,
    write_weights,
)
from isolux.training.descent import UNKNOWN, Epoch, Learning, Schedule, State, descend
from isolux.training.faces import (
    CHECKPOINT,
    Faces,
    begun,
    network_of,
    prepared,
    refuse_changed,
    train_faces,
)
from isolux.training.finetune import FINETUNED, Tuned, finetune, tunable
from isolux.training.labels import clusters_of, labels_of
from isolux.training.parts import draws_of_cell, held_out_rows, some_rows
from isolux.training.pictures import Look, Looked, Pictures
from isolux.training.probe import Fit, Probe, Recipe, fit_probe

__all__ = [
    "CHECKPOINT",
    "FINETUNED",
    "UNKNOWN",
    "Checkpoint",
    "Epoch",
    "Faces",
    "Fit",
    "Learning",
    "Look",
    "Looked",
    "Pictures",
    "Probe",
    "Recipe",
    "Schedule",
    "State",
    "Tuned",
    "begun",
    "clusters_of",
    "descend",
    "draws_of_cell",
    "finetune",
    "fit_probe",
    "held_out_rows",
    "labels_of",
    "network_of",
    "prepared",
    "read_checkpoint",
    "refuse_changed",
    "refuse_other",
    "some_rows",
    "train_faces",
    "tunable",
    "write_checkpoint",
    "write_weights",
]
