"""What a training goes on from, as one safetensors file: written whole or not at all, no pickle.

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

from isolux.io.atomic import write_bytes
from isolux.training.descent import Epoch, Learning, Schedule, State, descend
from isolux.vocabulary.errors import FileError, SpecError
from isolux.vocabulary.extras import needed

_KEY, _MARKS = "isolux", "pictures/marks"
_PARTS = ("net", "adam", "best")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state, and what it belongs to.

    Parameters
    ----------
    state : State
    about : mapping of str to str or number
        All that moves the weights: labels, heads, recipe, the network's start.
    marks : [n] int64
        Of the pictures, as ``Looked`` has them.
    """

    state: State
    about: Mapping[str, Any]
    marks: npt.NDArray[np.int64]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint in the place of the one before."""
    torch = needed("torch", package="torch", extra="train", purpose="training")
    own = {part: getattr(checkpoint.state, part) for part in _PARTS}
    tensors = {f"{part}/{name}": one for part, held in own.items() for name, one in held.items()}
    tensors[_MARKS] = torch.from_numpy(checkpoint.marks)
    history = [asdict(one) for one in checkpoint.state.history]
    said = json.dumps({"about": dict(checkpoint.about), "history": history}, ensure_ascii=False)
    write_weights(path, tensors, {_KEY: said})


def descend_from(
    before: Checkpoint | None,
    what: Learning,
    how: Schedule,
    *,
    path: Path,
    about: Mapping[str, Any],
    marks: npt.NDArray[np.int64],
    tell: Callable[[Epoch], None],
) -> State:
    """Train on from a checkpoint, if there is one, and keep another after each epoch."""

    def keep(state: State) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_checkpoint(path, Checkpoint(state, about, marks))

    return descend(what, how, None if before is None else before.state, keep, tell)


def write_weights(path: Path, tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write tensors as a safetensors file, whole or not at all."""
    library = needed("safetensors.torch", package="safetensors", extra="train", purpose="training")
    plain = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    write_bytes(path, library.save(plain, dict(metadata)))


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint."""
    library = needed("safetensors", package="safetensors", extra="train", purpose="training")
    try:
        with library.safe_open(str(path), framework="pt") as held:
            said = json.loads((held.metadata() or {})[_KEY])
            tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
        marks = tensors.pop(_MARKS).numpy()
        history = tuple(Epoch(**one) for one in said["history"])
        about = dict(said["about"])
    except Exception as error:
        raise FileError(
            "this checkpoint cannot be read",
            found=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}",
            where=str(path),
            hint="begin again with --overwrite, or in another folder",
        ) from error
    own: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    for name, one in tensors.items():
        part, _, rest = name.partition("/")
        own.setdefault(part, {})[rest] = one
    return Checkpoint(State(own["net"], own["adam"], own["best"], history), about, marks)


def refuse_other(before: Checkpoint, about: Mapping[str, Any], where: Path) -> None:
    """Refuse to go on with other labels, another network or another recipe."""
    for name, value in about.items():
        then = before.about.get(name)
        if then == value:
            continue
        raise SpecError(
            f"this folder holds a training whose {name} differed",
            expected=_short(then),
            found=_short(value),
            where=str(where),
            hint="give what it began with; or begin again with --overwrite, or in another folder",
        )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:200] + " …"
