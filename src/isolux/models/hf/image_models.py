"""Asking a transformers model: one class for each kind of question.

Pictures of one shape are asked together; a batch that had to be filled up to one shape would move
the answers of some detectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.io.images import Pixels
from isolux.models._classes import (
    ClassMap,
    build_embedding_table,
    build_top_label_table,
    to_probabilities,
)
from isolux.models._images import build_image_table
from isolux.models._numbers import build_number_table, compute_numbers
from isolux.models._prompts import (
    PromptPooling,
    build_long_prompt_error,
    build_prompt_label_table,
    embed_prompts_by_class,
)
from isolux.models._torch import iterate_batches_of_equal_shape
from isolux.models.hf.checkpoint import LoadedCheckpoint

CHANNELS_LAST = {"input_data_format": "channels_last"}
"""Said to each processor, which takes a picture of 1 or 3 rows for one with channels first."""

_RELATIVE_TOLERANCE = 0.01  # of the largest number of a vector: more than a GPU's rounding


@dataclass(frozen=True, slots=True)
class ProcessedImage:
    """A picture as the model takes it ``[3, h, w]``, and its own height and width."""

    values: npt.NDArray[Any]
    height: int
    width: int

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return int(self.values.nbytes)


@dataclass(frozen=True)
class HfImageModel:
    """What all of them share: the model, how a picture is prepared, batches of one shape."""

    loaded: LoadedCheckpoint

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        return {**self.loaded.identity, **self._extra_identity()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint."""
        return self.loaded.notes

    def _extra_identity(self) -> dict[str, Any]:
        return {}

    def prepare(self, pixels: Pixels) -> ProcessedImage:
        """Prepare one picture by the model's own processor."""
        processor = getattr(self.loaded.processor, "image_processor", self.loaded.processor)
        outputs = processor(images=pixels, return_tensors="np", **CHANNELS_LAST)
        height, width = pixels.shape[:2]
        return ProcessedImage(np.asarray(outputs["pixel_values"])[0], height, width)

    def _batches(
        self, inputs: Sequence[ProcessedImage]
    ) -> Iterator[tuple[int, Sequence[ProcessedImage], Any]]:
        """Yield batches of one shape: index of the first input, the inputs, their tensor."""
        torch, model = self.loaded.torch, self.loaded.model
        for offset, batch in iterate_batches_of_equal_shape(
            inputs, lambda model_input: model_input.values.shape
        ):
            values = torch.from_numpy(np.stack([model_input.values for model_input in batch]))
            yield offset, batch, values.to(self.loaded.device, model.dtype)

    def _numbers(self, tensor: Any) -> npt.NDArray[np.float64]:
        return np.asarray(tensor.float().cpu().numpy(), dtype=np.float64)


@dataclass(frozen=True)
class _RowModel(HfImageModel, ABC):
    """What those share whose answers are a row of numbers for each picture."""

    def numbers(self, inputs: Sequence[ProcessedImage]) -> npt.NDArray[np.float64]:
        """Compute the model's output rows, before they become labels."""
        with self.loaded.torch.inference_mode():
            rows = [self._numbers(self._run(values)) for _, _, values in self._batches(inputs)]
        return np.concatenate(rows) if rows else np.zeros((0, self._width()))

    @abstractmethod
    def _run(self, values: Any) -> Any:
        """Compute a tensor with one row for each image of a batch."""

    def _width(self) -> int:
        return 1


@dataclass(frozen=True)
class ImageClassifier(_RowModel):
    """A classifier: the labels of highest probability."""

    classes: ClassMap
    top: int
    predicts: str = "labels"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint, and what did not map."""
        return (*self.loaded.notes, *self.classes.notes)

    def _extra_identity(self) -> dict[str, Any]:
        return {"classes": [list(self.classes.names), self.classes.members], "top": self.top}

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        scores = self.classes(to_probabilities(self.numbers(pictures), "softmax"))
        return build_top_label_table(scores, self.classes.names, self.top)

    def _run(self, values: Any) -> Any:
        return self.loaded.model(pixel_values=values).logits

    def _width(self) -> int:
        return self.classes.count


@dataclass(frozen=True)
class NumberEstimator(_RowModel):
    """A number of each picture: the model's only output, or the expectation over its classes."""

    values: tuple[float, ...]
    predicts: str = "numbers"

    def _extra_identity(self) -> dict[str, Any]:
        return {"values": list(self.values)}

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        outputs = self.numbers(pictures)
        return build_number_table(
            compute_numbers(
                outputs, self.values, "softmax", source=type(self.loaded.model).__name__
            )
        )

    def _run(self, values: Any) -> Any:
        return self.loaded.model(pixel_values=values).logits

    def _width(self) -> int:
        return len(self.values) or 1


@dataclass(frozen=True)
class ImageEnlarger(HfImageModel):
    """Super-resolution: the picture, enlarged by the model's factor (Swin2SR)."""

    predicts: str = "images"

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        images: list[Any] = []
        factor = int(self.loaded.model.config.upscale)
        with self.loaded.torch.inference_mode():
            for _, batch, values in self._batches(pictures):
                outputs = self._numbers(self.loaded.model(pixel_values=values).reconstruction)
                for model_input, output in zip(batch, outputs, strict=True):
                    # The processor pads at the right and below; what it added is cut off.
                    height, width = model_input.height * factor, model_input.width * factor
                    image = np.rint(output[:, :height, :width] * 255).clip(0, 255)
                    images.append(image.transpose(1, 2, 0).astype(np.uint8))
        return build_image_table(images)


@dataclass(frozen=True)
class ImageEmbedder(_RowModel):
    """A vector of each picture: the pooled one that the model gives, else that of its class token.

    A model without a class token, and one whose authors set ``use_mean_pooling``, gives the mean of
    its patches.
    """

    predicts: str = "embeddings"
    vector: str = field(init=False)

    def __post_init__(self) -> None:
        picture = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
        with self.loaded.torch.inference_mode():
            ((_, _, values),) = self._batches([self.prepare(picture)])
            name, first = _compute_embedding_and_kind(self.loaded.model, values)
            _, second = _compute_embedding_and_kind(self.loaded.model, values)
            is_random = (first - second).abs().max() > _RELATIVE_TOLERANCE * first.abs().max()
        if bool(is_random):
            raise SpecError(
                "this model gives other embeddings of one picture each time it is asked",
                expected="a model that draws nothing at random",
                found=type(self.loaded.model).__name__,
            )
        object.__setattr__(self, "vector", name)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint, and what a vector is."""
        return (*self.loaded.notes, f"An embedding is the model's {self.vector}.")

    def _extra_identity(self) -> dict[str, Any]:
        return {"vector": self.vector}

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        return build_embedding_table(self.numbers(pictures))

    def _run(self, values: Any) -> Any:
        return _compute_embedding_and_kind(self.loaded.model, values)[1]

    @property
    def torch(self) -> Any:
        """PyTorch, as it was imported."""
        return self.loaded.torch

    @property
    def inner(self) -> Any:
        """The whole model."""
        return self.loaded.model

    @property
    def extractor(self) -> Any:
        """What makes a picture's vector: of a model of pictures and texts, without the texts."""
        children = dict(self.loaded.model.named_children())
        seeing = {name: child for name, child in children.items() if not name.startswith("text")}
        if len(seeing) == len(children):
            return self.loaded.model
        vision_module = self.loaded.torch.nn.Module()
        for name, child in seeing.items():
            vision_module.add_module(name, child)
        return vision_module

    def features(self, values: Any) -> Any:
        """Compute the embeddings as a tensor for fine-tuning."""
        return self._run(values.to(self.loaded.model.dtype))


def tokenise_prompts(loaded: LoadedCheckpoint, texts: Sequence[str]) -> Any:
    """Encode prompts; what the text tower would cut off is refused, see ``describe_prompt_length``.

    A mask would hide the padding, which SigLIP's towers were trained to read (its released code
    has none); a tokenizer of another model, such as Gemma's, makes one unless it is told.
    """
    tokenizer, (max_tokens, padded_to) = loaded.processor.tokenizer, _find_prompt_lengths(loaded)
    for text in texts:
        n = len(tokenizer(text, verbose=False)["input_ids"])
        if n > max_tokens:
            raise build_long_prompt_error(text, max_tokens, f"{n}")
    padding: dict[str, Any] = {"padding": True}
    if padded_to is not None:
        padding = {"padding": "max_length", "max_length": padded_to}
    if is_sigmoid_model(loaded):
        padding["return_attention_mask"] = False
    return tokenizer(list(texts), **padding, return_tensors="pt").to(loaded.device)


def describe_prompt_length(loaded: LoadedCheckpoint) -> dict[str, int | None]:
    """Say for the record how many tokens a prompt may have, and to how many it is padded."""
    max_tokens, padded_to = _find_prompt_lengths(loaded)
    return {"max_tokens": max_tokens, "padded_to": padded_to}


def _find_prompt_lengths(loaded: LoadedCheckpoint) -> tuple[int, int | None]:
    """Find the most tokens of a prompt, and the padded length; None: that of the longest prompt.

    The text towers of SigLIP and OWL-ViT were trained on prompts of their full length, whatever
    length the tokenizer names.
    """
    config = loaded.model.config
    text_config = getattr(config, "text_config", None) or config
    tower_lengths = [
        int(n)
        for n in (
            getattr(text_config, "max_position_embeddings", 0),
            getattr(config, "max_text_len", 0),
        )
        if n
    ]
    tokenizer_length = int(loaded.processor.tokenizer.model_max_length)
    is_padded = is_sigmoid_model(loaded) or "owl" in str(config.model_type)
    padded_to = min(tower_lengths) if is_padded and tower_lengths else None
    return min([*tower_lengths, tokenizer_length]), padded_to


def is_sigmoid_model(loaded: LoadedCheckpoint) -> bool:
    """Tell whether a model of pictures and texts is a SigLIP: each prompt is judged alone."""
    return "siglip" in str(loaded.model.config.model_type)


def _compute_embedding_and_kind(model: Any, values: Any) -> tuple[str, Any]:
    """Take a picture's vector out of what a model gives, and say which it is."""
    if hasattr(model, "get_image_features"):
        outputs = model.get_image_features(pixel_values=values)
        return "image features", getattr(outputs, "pooler_output", outputs)  # a tensor before 5.0
    outputs = model(pixel_values=values)
    pooled = getattr(outputs, "pooler_output", None)
    if pooled is not None:
        return "pooled output", pooled.flatten(1)
    states = outputs.last_hidden_state
    if states.ndim == 4:  # of a network of convolutions: a map
        return "mean of patches", states.flatten(2).mean(2)
    names = {name.rpartition(".")[2] for name, _ in model.named_parameters()}
    has_class_token = bool(names & {"cls_token", "class_token", "class_embedding"})
    if has_class_token and not getattr(model.config, "use_mean_pooling", False):
        return "class token", states[:, 0]
    return "mean of patches", states[:, int(has_class_token) :].mean(1)


@dataclass(frozen=True)
class ZeroShotClassifier(_RowModel):
    """Zero-shot classification: which class's prompts, or which prompt, a picture is nearest to."""

    prompts: Mapping[str, tuple[str, ...]]
    top: int
    pooling: PromptPooling
    predicts: str = "labels"
    words: Any = field(init=False)

    def __post_init__(self) -> None:
        torch, model = self.loaded.torch, self.loaded.model

        def embed_to_unit_vectors(texts: Sequence[str]) -> Any:
            tokens = tokenise_prompts(self.loaded, texts)
            text_features = model.get_text_features(**tokens)
            text_features = getattr(text_features, "pooler_output", text_features)
            return text_features / text_features.norm(dim=-1, keepdim=True)

        object.__setattr__(
            self,
            "words",
            embed_prompts_by_class(torch, embed_to_unit_vectors, self.prompts, self.pooling),
        )

    def _extra_identity(self) -> dict[str, Any]:
        return {
            "prompts": [[name, list(texts)] for name, texts in self.prompts.items()],
            "prompt_length": describe_prompt_length(self.loaded),
            "top": self.top,
            "several": self.pooling,
        }

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        return build_prompt_label_table(
            self.numbers(pictures),
            self.prompts,
            pooling=self.pooling,
            is_sigmoid=is_sigmoid_model(self.loaded),
            top=self.top,
        )

    def _run(self, values: Any) -> Any:
        model = self.loaded.model
        _, image_features = _compute_embedding_and_kind(model, values)
        units = image_features / image_features.norm(dim=-1, keepdim=True)
        logits = model.logit_scale.exp() * units @ self.words.T
        return logits + model.logit_bias if is_sigmoid_model(self.loaded) else logits

    def _width(self) -> int:
        return len(self.words)
