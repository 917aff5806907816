"""Asking a transformers model for boxes and masks of what is in a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import IsoluxError
from isolux.models._boxes import build_box_table, encode_mask, keep_best_duplicate_boxes
from isolux.models._classes import ClassMap
from isolux.models.hf.image_models import (
    HfImageModel,
    ProcessedImage,
    describe_prompt_length,
    tokenise_prompts,
)

_MASKS = {
    "picture": pl.Int64,
    "label": pl.String,
    "score": pl.Float64,
    "mask_counts": pl.String,
    "mask_height": pl.Int64,
    "mask_width": pl.Int64,
}


@dataclass(frozen=True)
class ObjectDetector(HfImageModel):
    """A detector of its own classes."""

    classes: ClassMap
    min_score: float
    predicts: str = "boxes"

    def _extra_identity(self) -> dict[str, Any]:
        return {"classes": list(self.classes.names), "min_score": self.min_score}

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        torch, processor = self.loaded.torch, self.loaded.processor
        with torch.inference_mode():
            for offset, batch, values in self._batches(pictures):
                outputs = self.loaded.model(pixel_values=values)
                detections = processor.post_process_object_detection(
                    outputs, threshold=self.min_score, target_sizes=_stack_image_sizes(torch, batch)
                )
                for k, detection in enumerate(detections):
                    names = [_find_class_name(self.classes, int(j)) for j in detection["labels"]]
                    rows += _convert_detections_to_rows(
                        offset + k, detection, names, batch[k], self._numbers
                    )
        return build_box_table(rows)


@dataclass(frozen=True)
class ZeroShotDetector(HfImageModel):
    """Zero-shot detection and grounding: boxes of what the prompts name, a prompt at a time.

    A text with several phrases lets them compete for a box, so that one class's answers depend on
    which others are asked for; one at a time they do not. Of one box that several prompts of a
    class find, the highest score counts.
    """

    prompts: Mapping[str, tuple[str, ...]]
    top: int
    min_score: float
    predicts: str = "boxes"

    def _extra_identity(self) -> dict[str, Any]:
        return {
            "prompts": [[name, list(texts)] for name, texts in self.prompts.items()],
            "prompt_length": describe_prompt_length(self.loaded),
            "min_score": self.min_score,
        }

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        with self.loaded.torch.inference_mode():
            for offset, batch, values in self._batches(pictures):
                for k, model_input in enumerate(batch):
                    for name, texts in self.prompts.items():
                        for text in texts:
                            rows += self._detect_phrase(
                                offset + k, model_input, values[k : k + 1], name, text
                            )
        return build_box_table(keep_best_duplicate_boxes(rows))

    def _detect_phrase(
        self, image_index: int, model_input: ProcessedImage, values: Any, name: str, text: str
    ) -> list[tuple[Any, ...]]:
        torch, processor = self.loaded.torch, self.loaded.processor
        grounding = "grounding" in str(self.loaded.model.config.model_type)
        phrase = text.rstrip(".") + "." if grounding else text
        tokens = tokenise_prompts(self.loaded, [phrase])
        outputs = self.loaded.model(pixel_values=values, **tokens)
        sizes = _stack_image_sizes(torch, [model_input])
        if grounding:
            (detection,) = processor.post_process_grounded_object_detection(
                outputs,
                tokens["input_ids"],
                threshold=self.min_score,
                text_threshold=0.0,
                target_sizes=sizes,
            )
        else:
            (detection,) = processor.post_process_grounded_object_detection(
                outputs, threshold=self.min_score, target_sizes=sizes
            )
        return _convert_detections_to_rows(
            image_index, detection, [name] * len(detection["scores"]), model_input, self._numbers
        )


@dataclass(frozen=True)
class InstanceSegmenter(ObjectDetector):
    """Instance segmentation: a mask of each object."""

    predicts: str = "masks"

    def __call__(self, pictures: Sequence[ProcessedImage]) -> pl.DataFrame:
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
            for offset, batch, values in self._batches(pictures):
                outputs = self.loaded.model(pixel_values=values)
                segmentations = post(
                    outputs,
                    threshold=self.min_score,
                    target_sizes=[(model_input.height, model_input.width) for model_input in batch],
                )
                for k, segmentation in enumerate(segmentations):
                    rows += self._rows(offset + k, segmentation)
        return pl.DataFrame(rows, schema=_MASKS, orient="row")

    def _rows(self, picture: int, segmentation: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        segment_map = segmentation["segmentation"].cpu().numpy()
        rows = []
        for segment in segmentation["segments_info"]:
            name = _find_class_name(self.classes, int(segment["label_id"]))
            mask = encode_mask(segment_map == segment["id"])
            rows.append((picture, name, float(segment["score"]), *mask))
        return rows


def _find_class_name(classes: ClassMap, number: int) -> str:
    return classes.names[number] if 0 <= number < len(classes.names) else str(number)


def _stack_image_sizes(torch: Any, batch: Sequence[ProcessedImage]) -> Any:
    return torch.tensor([[model_input.height, model_input.width] for model_input in batch])


def _convert_detections_to_rows(
    image_index: int,
    detection: Mapping[str, Any],
    names: Sequence[str],
    model_input: ProcessedImage,
    to_numpy: Any,
) -> list[tuple[Any, ...]]:
    """Make rows of boxes that are corners in the picture's pixels, cut off at its edges."""
    x_min, top, x_max, bottom = to_numpy(detection["boxes"]).reshape(-1, 4).T
    x_min, x_max = (np.clip(x, 0, model_input.width) for x in (x_min, x_max))
    top, bottom = (np.clip(y, 0, model_input.height) for y in (top, bottom))
    boxes_xywh = zip(
        x_min, top, np.maximum(x_max - x_min, 0), np.maximum(bottom - top, 0), strict=True
    )
    return [
        (image_index, name, *(float(coordinate) for coordinate in box), float(score))
        for name, box, score in zip(names, boxes_xywh, to_numpy(detection["scores"]), strict=True)
    ]
