"""Checkpoints of a training, as one safetensors file: written atomically, no pickle.

Tensors of the network, of Adam and of the best epoch stand side by side (``net/…``, ``adam/…``,
``best/…``), with the marks of the pictures; the file's metadata says how the epochs went and what
was learnt from what, so that other labels, pictures or settings are noticed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import FileError, SpecError
from isolux.core.extras import import_optional
from isolux.io.atomic import write_bytes
from isolux.training.trainer import Epoch, Schedule, State, TrainerInputs, train_or_resume

_METADATA_KEY, _HASHES_NAME = "isolux", "pictures/marks"
_STATE_FIELDS = ("net", "adam", "best")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A training state, with the record it belongs to.

    Parameters
    ----------
    state : State
    training_record : mapping of str to str or number
        All that moves the weights: labels, heads, recipe, the network's start.
    image_hashes : [n] int64
        Of the pictures, as ``Looked`` has them.
    """

    state: State
    training_record: Mapping[str, Any]
    image_hashes: npt.NDArray[np.int64]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint, replacing the earlier one."""
    torch = import_optional("torch", package="torch", extra="train", purpose="training")
    tensors_by_field = {
        field_name: getattr(checkpoint.state, field_name) for field_name in _STATE_FIELDS
    }
    tensors = {
        f"{field_name}/{name}": tensor
        for field_name, field_tensors in tensors_by_field.items()
        for name, tensor in field_tensors.items()
    }
    tensors[_HASHES_NAME] = torch.from_numpy(checkpoint.image_hashes)
    history = [asdict(epoch) for epoch in checkpoint.state.history]
    metadata = json.dumps(
        {"about": dict(checkpoint.training_record), "history": history}, ensure_ascii=False
    )
    write_safetensors(path, tensors, {_METADATA_KEY: metadata})


def train_with_checkpoints(
    checkpoint: Checkpoint | None,
    inputs: TrainerInputs,
    schedule: Schedule,
    *,
    path: Path,
    training_record: Mapping[str, Any],
    image_hashes: npt.NDArray[np.int64],
    report: Callable[[Epoch], None],
) -> State:
    """Resume training from a checkpoint, if any, and write one after each epoch."""

    def save_state(state: State) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_checkpoint(path, Checkpoint(state, training_record, image_hashes))

    return train_or_resume(
        inputs, schedule, None if checkpoint is None else checkpoint.state, save_state, report
    )


def write_safetensors(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write tensors as a safetensors file, whole or not at all."""
    library = import_optional(
        "safetensors.torch", package="safetensors", extra="train", purpose="training"
    )
    cpu_tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, library.save(cpu_tensors, dict(metadata)))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint."""
    library = import_optional(
        "safetensors", package="safetensors", extra="train", purpose="training"
    )
    try:
        with library.safe_open(str(path), framework="pt") as file:
            metadata = json.loads((file.metadata() or {})[_METADATA_KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        image_hashes = tensors.pop(_HASHES_NAME).numpy()
        history = tuple(Epoch(**epoch) for epoch in metadata["history"])
        training_record = dict(metadata["about"])
    except Exception as error:
        raise FileError(
            "this checkpoint cannot be read",
            found=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}",
            where=str(path),
            hint="begin again with --overwrite, or in another folder",
        ) from error
    tensors_by_field: dict[str, dict[str, Any]] = {field_name: {} for field_name in _STATE_FIELDS}
    for name, tensor in tensors.items():
        field_name, _, tensor_name = name.partition("/")
        tensors_by_field.setdefault(field_name, {})[tensor_name] = tensor
    return Checkpoint(
        State(tensors_by_field["net"], tensors_by_field["adam"], tensors_by_field["best"], history),
        training_record,
        image_hashes,
    )


def check_is_same_training(
    checkpoint: Checkpoint, training_record: Mapping[str, Any], folder: Path
) -> None:
    """Refuse to resume with other labels, another network or another recipe."""
    for name, current_setting in training_record.items():
        recorded_setting = checkpoint.training_record.get(name)
        if recorded_setting == current_setting:
            continue
        raise SpecError(
            f"this folder holds a training whose {name} differed",
            expected=_format_shortened_setting(recorded_setting),
            found=_format_shortened_setting(current_setting),
            where=str(folder),
            hint="give what it began with; or begin again with --overwrite, or in another folder",
        )


def _format_shortened_setting(setting: Any) -> str:
    text = setting if isinstance(setting, str) else json.dumps(setting, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + " …"
