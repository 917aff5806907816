"""Prompts of models that are asked in words: which class each stands for, and which counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.io.prompts import read_prompt_file
from isolux.models._classes import build_top_label_table, to_probabilities

PromptPooling = Literal["mean", "nearest"]
"""Of a class's prompts, the mean direction counts (CLIP) or the nearest one (FHIBE)."""


def read_prompts(path: str | Path) -> Mapping[str, tuple[str, ...]]:
    r"""Read a file of prompts: ``class: prompt``, ``class: [prompt, prompt]``, or a built-in one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "prompts.yaml"
    ...     _ = file.write_text("nurse: a photo of a nurse\nchef: [a chef, a cook]\n")
    ...     read_prompts(file)
    {'nurse': ('a photo of a nurse',), 'chef': ('a chef', 'a cook')}
    """
    return dict(read_prompt_file(path).prompts)


def build_long_prompt_error(text: str, max_tokens: int, count: str) -> SpecError:
    """Say that a prompt has more tokens than a model's text tower reads."""
    return SpecError(
        "a prompt is longer than the model reads, and would be cut off",
        expected=f"{max_tokens} tokens at most",
        found=f"{count} in {text[:60]!r}",
        hint="a shorter prompt",
    )


@dataclass(frozen=True, slots=True)
class _FlatPrompts:
    """Prompts one after another, and the class of each."""

    texts: tuple[str, ...]
    owner: npt.NDArray[np.int64]


def _flatten_prompts_with_class_index(prompts: Mapping[str, Sequence[str]]) -> _FlatPrompts:
    owner = [k for k, texts in enumerate(prompts.values()) for _ in texts]
    return _FlatPrompts(
        tuple(text for texts in prompts.values() for text in texts), np.array(owner)
    )


def build_prompt_label_table(
    logits: npt.NDArray[np.float64],
    prompts: Mapping[str, Sequence[str]],
    *,
    pooling: PromptPooling,
    is_sigmoid: bool,
    top: int,
) -> pl.DataFrame:
    """Make labels of how near each picture is to each class, or to each of its prompts.

    Shapes: ``logits`` [n, classes].
    """
    activation = "sigmoid" if is_sigmoid else "softmax"
    names = tuple(prompts)
    if pooling == "mean":
        return build_top_label_table(to_probabilities(logits, activation), names, top)
    flat = _flatten_prompts_with_class_index(prompts)
    prompts_by_class = [np.flatnonzero(flat.owner == k) for k in range(len(names))]
    class_logits = np.stack(
        [
            logits[:, prompt_indices].max(axis=1, initial=-np.inf)
            for prompt_indices in prompts_by_class
        ],
        axis=1,
    )
    best_prompts = np.stack(
        [
            prompt_indices[logits[:, prompt_indices].argmax(axis=1)]
            for prompt_indices in prompts_by_class
        ],
        axis=1,
    )
    rows = build_top_label_table(to_probabilities(class_logits, activation), names, top)
    column_by_name = {name: k for k, name in enumerate(names)}
    column = np.array([column_by_name[name] for name in rows["label"].to_list()], dtype=np.int64)
    best_prompt_index = (
        best_prompts[rows["picture"].to_numpy(), column] if rows.height else np.zeros(0, np.int64)
    )
    return rows.with_columns(
        prompt=pl.Series([flat.texts[k] for k in best_prompt_index], dtype=pl.String)
    )


def embed_prompts_by_class(
    torch: Any,
    embed_to_unit_vectors: Callable[[Sequence[str]], Any],
    prompts: Mapping[str, Sequence[str]],
    pooling: PromptPooling,
) -> Any:
    """Embed prompts: a row a class, the mean of its prompts (CLIP, 3.1.4), or of each prompt."""
    rows = []
    with torch.inference_mode():
        for texts in prompts.values():
            embeddings = embed_to_unit_vectors(texts)
            if pooling == "mean":
                mean = embeddings.mean(dim=0)
                embeddings = (mean / mean.norm())[None]
            rows.append(embeddings)
    return torch.cat(rows) if rows else None
