"""Models: one file a family, with ``INFO`` and ``load(spec, ...)``; perceptual distances too.

PyTorch and its like are imported here, and only when a model is loaded. Nothing is downloaded:
weights are files that are already on the machine.

``open_model("onnx:net.onnx")`` loads a model by its name: what stands before the colon is the
family, a file of this room. To add one, write ``models/<name>.py``, or in another package a module
that an entry point ``isolux.models`` names: ``INFO`` (a ``ModelInfo``) says what its models answer,
and ``load(spec, *, ...)`` gives a ``Predictor``; its keyword parameters are the family's settings
(``--model-option NAME=VALUE``). ``answers`` holds what a model gave to the table that it names.
"""

from __future__ import annotations

from isolux.models._loading import Model, hash_module_sources, open_model, wrap_callable_as_model
from isolux.models._prediction_tables import (
    PERSON_PREDICTIONS,
    PREDICTION_TABLES,
    Predictor,
    find_prediction_type,
    predict_and_check_table,
)
from isolux.models._preprocessing import ModelInput, Preprocessing
from isolux.models._torch import is_out_of_memory_error, move_network_to_device

__all__ = [
    "PERSON_PREDICTIONS",
    "PREDICTION_TABLES",
    "Model",
    "ModelInput",
    "Predictor",
    "Preprocessing",
    "find_prediction_type",
    "hash_module_sources",
    "is_out_of_memory_error",
    "move_network_to_device",
    "open_model",
    "predict_and_check_table",
    "wrap_callable_as_model",
]
