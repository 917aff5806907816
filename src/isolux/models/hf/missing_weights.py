"""Weights that a checkpoint lacks: transformers draws them at random and goes on.

A network that answers by such weights answers otherwise each time. Which of them its answers depend
on is found by trial, with a picture of noise: they are filled with random numbers twice, and with
NaN, which any sum carries on. Random numbers alone may miss a weight that only decides which
candidates are taken on (the best k proposals of a detector), as one picture's may stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.models.hf.checkpoint import LoadedCheckpoint

_OUTPUT_NAMES = (
    "logits",
    "pred_boxes",
    "class_queries_logits",
    "masks_queries_logits",
    "heatmaps",
    "decoder_class_logits",
    "decoder_coord_logits",
    "reconstruction",
)
"""What networks call the numbers that an answer is made of; a part may have others first."""
_MAX_LISTED = 20
_BOX = (10.0, 10.0, 100.0, 80.0)  # of a person in the picture of noise

_Arrays = list[npt.NDArray[Any]]


class _EnoughError(Exception):
    """The network gave its first numbers: the rest of an answer need not be made."""


def zero_unused_missing_weights(
    checkpoint: LoadedCheckpoint, build_predictor: Callable[[LoadedCheckpoint], Any], source: str
) -> LoadedCheckpoint:
    """Refuse a network whose answers depend on weights that its checkpoint lacks."""
    state, model = checkpoint.model.state_dict(), checkpoint.model
    names = sorted(k for k in checkpoint.missing & set(state) if state[k].is_floating_point())
    if not names:
        return checkpoint
    model.to("cpu")  # where one question has one answer, to the last bit
    weights = {k: v for k, v in model.state_dict().items() if k in names}
    if relevant_names := _find_relevant_weights(checkpoint, build_predictor, weights, names):
        raise SpecError(
            "the checkpoint lacks weights that this network's answers depend on",
            expected=f"every weight of {type(model).__name__}, of the size in config.json",
            found="without "
            + _format_missing_weight_names(
                [_format_checkpoint_weight_name(model, k, weights[k]) for k in relevant_names],
                names,
            ),
            where=source,
            hint="the whole checkpoint, or --model-option task=… of what it was trained for",
        )
    zeros = {k: checkpoint.torch.zeros_like(weight) for k, weight in weights.items()}
    _copy_into_weights(checkpoint.torch, weights, zeros)
    model.to(checkpoint.device)
    names_text = _format_missing_weight_names(names, names)
    note = f"The checkpoint lacks weights that no answer depends on: {names_text}."
    return replace(checkpoint, notes=(*checkpoint.notes, note))


def _find_relevant_weights(
    checkpoint: LoadedCheckpoint,
    build_predictor: Callable[[LoadedCheckpoint], Any],
    weights: Mapping[str, Any],
    names: Sequence[str],
) -> Sequence[str]:
    """List weights that the outputs depend on, the first ones; all where they do together alone."""
    random_weights, *probe_weights = (
        *(_draw_normal_like(checkpoint.torch, weights, seed) for seed in (0, 1)),
        {name: checkpoint.torch.full_like(weight, np.nan) for name, weight in weights.items()},
    )

    def compute_outputs(*values: Mapping[str, Any]) -> _Arrays:
        for weight_values in values:
            _copy_into_weights(checkpoint.torch, weights, weight_values)
        return _collect_outputs_of_noise_image(
            build_predictor(replace(checkpoint, device="cpu")), checkpoint
        )

    outputs = compute_outputs(random_weights)

    def affect_outputs(tested_names: Sequence[str]) -> bool:
        return any(
            _has_different_outputs(
                outputs, compute_outputs(random_weights, {k: probe[k] for k in tested_names})
            )
            for probe in probe_weights
        )

    if not affect_outputs(names):
        return ()
    return list(islice((k for k in names if affect_outputs([k])), _MAX_LISTED)) or names


def _format_missing_weight_names(names: Sequence[str], missing: Sequence[str]) -> str:
    """List names of weights, and say how many are missing where those are not all of them."""
    is_incomplete = len(missing) > min(len(names), _MAX_LISTED)
    return ", ".join(names[:_MAX_LISTED]) + (
        f" ({len(missing):,} are missing in all)" if is_incomplete else ""
    )


def _format_checkpoint_weight_name(model: Any, name: str, weight: Any) -> str:
    """Name a weight as checkpoints do; the library may call it otherwise, which is added."""
    try:
        revert = import_module("transformers.core_model_loading").revert_weight_conversion
        (file_name,) = revert(model, {name: weight})
    except (ImportError, AttributeError, LookupError, ValueError, TypeError, RuntimeError):
        file_name = name
    return name if file_name == name else f"{file_name} ({name} in transformers)"


def _draw_normal_like(torch: Any, weights: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Draw a normal number for each number of some weights."""
    generator = torch.Generator().manual_seed(seed)
    return {k: torch.randn(v.shape, generator=generator) for k, v in weights.items()}


def _copy_into_weights(torch: Any, weights: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Copy values into a network's weights."""
    with torch.no_grad():
        for name, tensor in values.items():
            weights[name].copy_(tensor)


def _collect_outputs_of_noise_image(predictor: Any, checkpoint: LoadedCheckpoint) -> _Arrays:
    """Ask about a picture of noise; give the numbers that an answer is made of."""
    noise = np.random.default_rng(0).integers(0, 256, (120, 160, 3)).astype(np.uint8)
    prepare: Any = getattr(predictor, "prepare", lambda image: image)
    model_input = prepare(noise, [_BOX]) if hasattr(predictor, "by_box") else prepare(noise)
    if hasattr(predictor, "numbers"):
        return [predictor.numbers([model_input])]
    outputs: _Arrays = []

    def collect_and_stop(_: Any, __: Any, module_outputs: Any) -> None:
        for name, output in module_outputs.items() if isinstance(module_outputs, Mapping) else ():
            if name in _OUTPUT_NAMES and checkpoint.torch.is_tensor(output):
                outputs.append(output.float().cpu().numpy())
        if outputs:
            raise _EnoughError

    hooks = [
        module.register_forward_hook(collect_and_stop) for module in checkpoint.model.modules()
    ]
    try:
        with suppress(_EnoughError):
            predictor([model_input])
    finally:
        for hook in hooks:
            hook.remove()
    return outputs


def _has_different_outputs(first: _Arrays, second: _Arrays) -> bool:
    """Return whether two outputs differ; without outputs to compare, assume that they do."""
    is_equal = len(first) == len(second) and all(map(np.array_equal, first, second))
    return not (first and is_equal)
