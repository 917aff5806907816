"""Asking a transformers model: one class for each kind of question.

Pictures of one shape are asked together; a batch that had to be filled up to one shape would move
the answers of some detectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.images import Pixels
from isolux.models._boxes import boxes_table, once
from isolux.models._classes import ClassMap, label_rows, probabilities
from isolux.models._prompts import Several, described_rows
from isolux.models.hf.loading import Loaded
from isolux.vocabulary.errors import IsoluxError, SpecError

__all__ = ["Classifying", "Describing", "Detecting", "Embedding", "Finding", "Masking", "Shown"]

_MASKS = {
    "picture": pl.Int64, "label": pl.String, "score": pl.Float64, "mask_counts": pl.String,
    "mask_height": pl.Int64, "mask_width": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture as the model takes it ``[3, h, w]``, and its own height and width."""

    values: npt.NDArray[Any]
    height: int
    width: int

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return int(self.values.nbytes)


@dataclass(frozen=True)
class _Asking:
    """What all of them share: the model, how a picture is prepared, batches of one shape."""

    loaded: Loaded

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        return {**self.loaded.identity, **self._more()}

    def _more(self) -> dict[str, Any]:
        return {}

    def prepare(self, pixels: Pixels) -> Shown:
        """Prepare one picture by the model's own processor."""
        processor = getattr(self.loaded.processor, "image_processor", self.loaded.processor)
        found = processor(images=pixels, return_tensors="np")
        height, width = pixels.shape[:2]
        return Shown(np.asarray(found["pixel_values"])[0], height, width)

    def _batches(self, shown: Sequence[Shown]) -> Iterator[tuple[int, Sequence[Shown], Any]]:
        """Give runs of one shape: where each begins, its pictures, and their tensor."""
        at = 0
        while at < len(shown):
            end = at + 1
            while end < len(shown) and shown[end].values.shape == shown[at].values.shape:
                end += 1
            part = shown[at:end]
            torch, model = self.loaded.torch, self.loaded.model
            values = torch.from_numpy(np.stack([one.values for one in part]))
            yield at, part, values.to(self.loaded.device, model.dtype)
            at = end

    def _numbers(self, tensor: Any) -> npt.NDArray[np.float64]:
        return np.asarray(tensor.float().cpu().numpy(), dtype=np.float64)


@dataclass(frozen=True)
class Classifying(_Asking):
    """A classifier: the labels of highest probability."""

    classes: ClassMap
    top: int
    predicts: str = "labels"

    @property
    def notes(self) -> tuple[str, ...]:
        """What did not map."""
        return self.classes.notes

    def _more(self) -> dict[str, Any]:
        return {"classes": [list(self.classes.names), self.classes.members], "top": self.top}

    def __call__(self, pictures: Sequence[Shown]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows = [np.zeros((0, len(self.classes.names)))]
        with self.loaded.torch.inference_mode():
            for _, _, values in self._batches(pictures):
                logits = self._numbers(self.loaded.model(pixel_values=values).logits)
                rows.append(self.classes(probabilities(logits, "softmax")))
        return label_rows(np.concatenate(rows), self.classes.names, self.top)


@dataclass(frozen=True)
class Embedding(_Asking):
    """A vector of each picture: the model's own, else that of its first token."""

    predicts: str = "embeddings"

    def __call__(self, pictures: Sequence[Shown]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[list[float]] = []
        with self.loaded.torch.inference_mode():
            for _, _, values in self._batches(pictures):
                rows += self._numbers(_features(self.loaded.model, values)).tolist()
        vectors = pl.Series(rows, dtype=pl.List(pl.Float64)).cast(pl.List(pl.Float32))
        return pl.DataFrame({"picture": pl.int_range(len(rows), eager=True), "embedding": vectors})

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
        parts = dict(self.loaded.model.named_children())
        seeing = {name: one for name, one in parts.items() if not name.startswith("text")}
        if len(seeing) == len(parts):
            return self.loaded.model
        held = self.loaded.torch.nn.Module()
        for name, one in seeing.items():
            held.add_module(name, one)
        return held

    def features(self, values: Any) -> Any:
        """Give the vectors of pictures as a tensor: to be fine-tuned."""
        return _features(self.loaded.model, values.to(self.loaded.model.dtype))


def _tokens(loaded: Loaded, texts: Sequence[str], *, whole: bool) -> Any:
    """Write prompts as tokens, padded to the longest or as far as the model reads (``whole``).

    Raises
    ------
    SpecError
        A prompt that is longer than the model reads: it would be asked without its end.
    """
    tokenizer, config = loaded.processor.tokenizer, loaded.model.config
    inner = getattr(config, "text_config", None) or config
    told = (getattr(inner, "max_position_embeddings", 0), getattr(config, "max_text_len", 0))
    most = min(int(n) for n in (*told, tokenizer.model_max_length) if n)
    for text in texts:
        n = len(tokenizer(text, verbose=False)["input_ids"])
        if n > most:
            raise SpecError(
                "a prompt is longer than the model reads, and would be cut off",
                expected=f"{most} tokens at most",
                found=f"{n} in {text[:60]!r}",
                hint="a shorter prompt",
            )
    padding = "max_length" if whole else True
    return tokenizer(list(texts), padding=padding, return_tensors="pt").to(loaded.device)


def _features(model: Any, values: Any) -> Any:
    """Take a picture's vector out of what a model gives."""
    if hasattr(model, "get_image_features"):
        found = model.get_image_features(pixel_values=values)
        return getattr(found, "pooler_output", found)  # a tensor until transformers 4
    found = model(pixel_values=values)
    pooled = getattr(found, "pooler_output", None)
    if pooled is not None:
        return pooled.flatten(1)
    return found.last_hidden_state[:, 0]


@dataclass(frozen=True)
class Describing(_Asking):
    """Zero-shot classification: which class's prompts, or which prompt, a picture is nearest to."""

    prompts: Mapping[str, tuple[str, ...]]
    top: int
    several: Several
    predicts: str = "labels"
    words: Any = field(init=False)

    def __post_init__(self) -> None:
        torch, model = self.loaded.torch, self.loaded.model
        rows = []
        with torch.inference_mode():
            for texts in self.prompts.values():
                tokens = _tokens(self.loaded, texts, whole=self._sigmoid)
                found = model.get_text_features(**tokens)
                found = getattr(found, "pooler_output", found)
                units = found / found.norm(dim=-1, keepdim=True)
                if self.several == "nearest":
                    rows.append(units)
                    continue
                mean = units.mean(dim=0)  # of several prompts, as in CLIP's paper, section 3.1.4
                rows.append((mean / mean.norm())[None])
        object.__setattr__(self, "words", torch.cat(rows))

    @property
    def _sigmoid(self) -> bool:
        return "siglip" in str(self.loaded.model.config.model_type)

    def _more(self) -> dict[str, Any]:
        told = [[name, list(texts)] for name, texts in self.prompts.items()]
        return {"prompts": told, "top": self.top, "several": self.several}

    def __call__(self, pictures: Sequence[Shown]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        model = self.loaded.model
        rows = [np.zeros((0, len(self.words)))]
        with self.loaded.torch.inference_mode():
            for _, _, values in self._batches(pictures):
                found = _features(model, values)
                units = found / found.norm(dim=-1, keepdim=True)
                logits = model.logit_scale.exp() * units @ self.words.T
                if self._sigmoid:
                    logits = logits + model.logit_bias
                rows.append(self._numbers(logits))
        return described_rows(
            np.concatenate(rows), self.prompts, several=self.several, sigmoid=self._sigmoid,
            top=self.top,
        )  # fmt: skip


@dataclass(frozen=True)
class Detecting(_Asking):
    """A detector of its own classes."""

    classes: ClassMap
    least_score: float
    predicts: str = "boxes"

    def _more(self) -> dict[str, Any]:
        return {"classes": list(self.classes.names), "least_score": self.least_score}

    def __call__(self, pictures: Sequence[Shown]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        torch, processor = self.loaded.torch, self.loaded.processor
        with torch.inference_mode():
            for at, part, values in self._batches(pictures):
                outputs = self.loaded.model(pixel_values=values)
                found = processor.post_process_object_detection(
                    outputs, threshold=self.least_score, target_sizes=_sizes(torch, part)
                )
                for k, one in enumerate(found):
                    names = [self._name(int(j)) for j in one["labels"]]
                    rows += _box_rows(at + k, one, names, part[k], self._numbers)
        return boxes_table(rows)

    def _name(self, number: int) -> str:
        known = self.classes.names
        return known[number] if 0 <= number < len(known) else str(number)


@dataclass(frozen=True)
class Finding(_Asking):
    """Zero-shot detection and grounding: boxes of what the prompts name, a prompt at a time.

    A text with several phrases lets them compete for a box, so that one class's answers depend on
    which others are asked for; one at a time they do not. Of one box that several prompts of a
    class find, the highest score counts.
    """

    prompts: Mapping[str, tuple[str, ...]]
    top: int
    least_score: float
    predicts: str = "boxes"

    def _more(self) -> dict[str, Any]:
        return {"prompts": [[name, list(texts)] for name, texts in self.prompts.items()],
                "least_score": self.least_score}  # fmt: skip

    def __call__(self, pictures: Sequence[Shown]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        with self.loaded.torch.inference_mode():
            for at, part, values in self._batches(pictures):
                for k, one in enumerate(part):
                    for name, texts in self.prompts.items():
                        for text in texts:
                            rows += self._found(at + k, one, values[k : k + 1], name, text)
        return boxes_table(once(rows))

    def _found(
        self, picture: int, shown: Shown, values: Any, name: str, text: str
    ) -> list[tuple[Any, ...]]:
        torch, processor = self.loaded.torch, self.loaded.processor
        grounding = "grounding" in str(self.loaded.model.config.model_type)
        asked = text.rstrip(".") + "." if grounding else text
        tokens = _tokens(self.loaded, [asked], whole=not grounding)
        outputs = self.loaded.model(pixel_values=values, **tokens)
        sizes = _sizes(torch, [shown])
        if grounding:
            (one,) = processor.post_process_grounded_object_detection(
                outputs, tokens["input_ids"], threshold=self.least_score, text_threshold=0.0,
                target_sizes=sizes,
            )  # fmt: skip
        else:
            (one,) = processor.post_process_grounded_object_detection(
                outputs, threshold=self.least_score, target_sizes=sizes
            )
        return _box_rows(picture, one, [name] * len(one["scores"]), shown, self._numbers)


@dataclass(frozen=True)
class Masking(_Asking):
    """Instance segmentation: a mask of each object."""

    classes: ClassMap
    least_score: float
    predicts: str = "masks"

    def _more(self) -> dict[str, Any]:
        return {"classes": list(self.classes.names), "least_score": self.least_score}

    def __call__(self, pictures: Sequence[Shown]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        processor = self.loaded.processor
        post = getattr(processor, "post_process_instance_segmentation", None)
        if post is None:
            raise IsoluxError(
                "this model's processor makes no instances of its masks",
                found=type(processor).__name__,
            )
        with self.loaded.torch.inference_mode():
            for at, part, values in self._batches(pictures):
                outputs = self.loaded.model(pixel_values=values)
                found = post(outputs, threshold=self.least_score,
                             target_sizes=[(one.height, one.width) for one in part])  # fmt: skip
                for k, one in enumerate(found):
                    rows += self._rows(at + k, one)
        return pl.DataFrame(rows, schema=_MASKS, orient="row")

    def _rows(self, picture: int, found: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        coco = import_module("pycocotools.mask")
        drawn = found["segmentation"].cpu().numpy()
        rows = []
        for one in found["segments_info"]:
            inside = np.asfortranarray((drawn == one["id"]).astype(np.uint8))
            counts = coco.encode(inside)["counts"].decode()
            number = int(one["label_id"])
            known = self.classes.names
            name = known[number] if 0 <= number < len(known) else str(number)
            rows.append((picture, name, float(one["score"]), counts, *inside.shape))
        return rows


def _sizes(torch: Any, part: Sequence[Shown]) -> Any:
    return torch.tensor([[one.height, one.width] for one in part])


def _box_rows(
    picture: int, found: Mapping[str, Any], names: Sequence[str], shown: Shown, numbers: Any
) -> list[tuple[Any, ...]]:
    """Make rows of boxes that are corners in the picture's pixels, cut off at its edges."""
    left, top, right, bottom = numbers(found["boxes"]).reshape(-1, 4).T
    left, right = (np.clip(x, 0, shown.width) for x in (left, right))
    top, bottom = (np.clip(y, 0, shown.height) for y in (top, bottom))
    sides = zip(left, top, np.maximum(right - left, 0), np.maximum(bottom - top, 0), strict=True)
    return [
        (picture, name, *(float(side) for side in box), float(score))
        for name, box, score in zip(names, sides, numbers(found["scores"]), strict=True)
    ]
