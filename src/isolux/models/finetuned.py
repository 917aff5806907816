"""A model that `isolux train finetune` gave a head and trained: ``finetuned:FOLDER``.

The folder names the extractor it began as, which is opened again for its architecture and its
preprocessing; all of its weights are those of the folder. What a folder says is not trusted with
code: a callable of one's own is named by whoever runs it (``base``), and no pickle is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import FileError, SpecError
from isolux.core.info import ModelInfo, Reference
from isolux.models._classes import build_top_label_table, to_probabilities
from isolux.models._loading import open_model
from isolux.models._torch import (
    load_state_dict_or_raise,
    move_to_device_for_inference,
    read_safetensors_and_hash,
)

RECORD, WEIGHTS = "finetune.json", "finetuned.safetensors"
_SAFE_FAMILIES = ("fairface", "hf", "open_clip", "timm")
"""Families that a folder may name: they run no code of the folder's choice."""
_REFUSED_OPTIONS = ("trust_checkpoint", "online")

INFO = ModelInfo(
    title="A fine-tuned extractor",
    summary=(
        "Runs a model trained by `isolux train finetune`: labels of the classes that it learnt."
    ),
    references=(
        Reference(
            key="own-training",
            citation="The auditor's own training; its recipe is in the folder's finetune.json.",
        ),
    ),
    licence="that of the extractor, and of the data it was trained on",
    assumptions=("pictures are such as those that it was trained on",),
    predicts="labels",
    needs="isolux[train]; a folder of `isolux train finetune`, and what its extractor needs",
    packages=("torch", "timm", "transformers", "open-clip-torch"),
)


@dataclass(frozen=True, slots=True)
class FineTunedModel:
    """A loaded extractor with its head."""

    torch: Any
    source: Any
    head: Any
    names: tuple[str, ...]
    top: int
    device: str
    identity: dict[str, Any]

    @property
    def prepare(self) -> Any:
        """What prepares a picture, as the extractor's own family does."""
        return self.source.prepare

    def __call__(self, pictures: Sequence[Any]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows = [np.zeros((0, len(self.names)))]
        inputs = [np.asarray(getattr(picture, "values", picture)) for picture in pictures]
        with self.torch.inference_mode():
            for _, of_a_shape in groupby(inputs, key=np.shape):
                values = self.torch.from_numpy(np.stack(list(of_a_shape))).to(self.device)
                rows.append(self.head(self.source.features(values)).double().cpu().numpy())
        scores = np.concatenate(rows)
        return build_top_label_table(to_probabilities(scores, "softmax"), self.names, self.top)


def get_extractor(source: Any) -> Any:
    """Return a model's feature extractor; of an image-text model, its image tower."""
    return getattr(source, "extractor", source.inner)


def load(
    spec: str, *, top: int = 5, device: str = "cpu", base: str | None = None
) -> FineTunedModel:
    """Load a fine-tuned model.

    Parameters
    ----------
    spec : str
        The folder of a finished training.
    top : int
        How many labels of a picture are kept.
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    base : str, optional
        The extractor, where it is a callable of your own: ``python:MODULE:FACTORY``.

    Returns
    -------
    FineTunedModel

    Raises
    ------
    FileError
        No such folder, a training that has not finished, a damaged record.
    SpecError
        A callable that is not named by ``base``; another extractor than the weights are of.

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
        ...
    isolux.core.errors.FileError: there is no fine-tuned model here
      expected: a folder of `isolux train finetune`, with finetune.json and finetuned.safetensors
      found: no such folder
      where: nowhere
    """
    folder = Path(spec).expanduser()
    record = _read_training_record(folder)
    opened = open_model(
        _check_extractor_is_trusted(record, base, folder), _list_extractor_options(record)
    )
    source: Any = getattr(opened.predictor, "function", opened.predictor)
    torch, names = source.torch, tuple(map(str, record["classes"]))
    state, weight_hashes = read_safetensors_and_hash(folder / WEIGHTS)
    net = torch.nn.Module()
    net.extractor = get_extractor(source)
    width = state["head.weight"].shape[-1] if "head.weight" in state else 1
    net.head = torch.nn.Linear(width, len(names))
    load_state_dict_or_raise(net, state, folder / WEIGHTS)
    move_to_device_for_inference(net, device).eval()
    extractor_identity = {k: v for k, v in opened.identity.items() if k != "settings"}
    identity = {
        "base": extractor_identity,
        "weights": weight_hashes,
        "classes": list(names),
        "top": top,
        "device": device,
    }
    return FineTunedModel(torch, source, net.head, names, top, device, identity)


def _read_training_record(folder: Path) -> Mapping[str, Any]:
    """Read what was trained."""
    is_complete = (folder / RECORD).is_file() and (folder / WEIGHTS).is_file()
    if not is_complete:
        is_started = folder.is_dir() and any(folder.glob("checkpoint.safetensors"))
        problem = "no such folder" if not folder.is_dir() else "neither or one of them"
        raise FileError(
            "this training has not finished" if is_started else "there is no fine-tuned model here",
            expected=f"a folder of `isolux train finetune`, with {RECORD} and {WEIGHTS}",
            found="a checkpoint alone" if is_started else problem,
            where=str(folder),
            hint="the same command goes on with it" if is_started else None,
        )
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        sound = isinstance(record["model"], str) and isinstance(record["classes"], list)
    except (ValueError, KeyError, TypeError, RecursionError):
        sound, record = False, {}
    if not sound or not isinstance(record.get("model_option", []), list):
        raise FileError(
            "the record of this training is damaged",
            expected="model, model_option and classes, as `isolux train finetune` writes them",
            where=str(folder / RECORD),
        )
    return dict(record)


def _check_extractor_is_trusted(record: Mapping[str, Any], base: str | None, folder: Path) -> str:
    """Name the extractor; code that a folder names is run only if the caller names it too."""
    extractor_spec = str(record["model"])
    if extractor_spec.partition(":")[0] in _SAFE_FAMILIES and base in (None, extractor_spec):
        return extractor_spec
    if base is None:
        raise SpecError(
            "the extractor of this model is a callable, and a folder may not say which code runs",
            expected=f"--model-option base={extractor_spec}, if that is yours",
            found="no base",
            where=str(folder),
        )
    if base != extractor_spec:
        raise SpecError(
            "this model was trained from another extractor",
            expected=extractor_spec,
            found=base,
            where=str(folder),
        )
    return base


def _list_extractor_options(record: Mapping[str, Any]) -> list[str]:
    """Take the extractor's settings; a folder may not ask for a pickle or for the network."""
    options = [str(option) for option in record.get("model_option", [])]
    return [
        option for option in options if option.partition("=")[0].strip() not in _REFUSED_OPTIONS
    ]
