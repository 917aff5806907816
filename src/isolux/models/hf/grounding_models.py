"""Grounding by a model that writes boxes as words: Florence-2, Kosmos-2, OFA."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.io.images import Pixels
from isolux.models._boxes import build_box_table, keep_best_duplicate_boxes
from isolux.models.hf.text_models import GenerationSettings, ImageTextModel, PromptedImage

_GROUNDING = "<CAPTION_TO_PHRASE_GROUNDING>"
_NO_CONFIDENCE = "The model writes boxes without a confidence: each has the score 1."
_N_LOCATION_BINS = 1000  # words for places along a side
_WRITTEN_BOX_SCORE = 1.0  # the score of a box that was written: no confidence comes with it
_PRESENT_ALONE = (
    "In each image only the classes of its people were asked for: the answers say nothing of boxes"
    " that the model would draw for others, as precision does."
)


@dataclass(frozen=True, slots=True)
class PicturePhrases:
    """A picture, and the classes whose phrases are asked of it."""

    pixels: Pixels
    classes: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return int(self.pixels.nbytes)


@dataclass(frozen=True)
class GroundingModel(ImageTextModel):
    """Grounding by a model that writes boxes (Florence-2, Kosmos-2): a class's prompt at a time.

    ``location_template`` reads boxes of any other model that writes four numbers as words of their
    own, as OFA does, and asks it with the prompt as it stands.
    """

    prompts: Mapping[str, tuple[str, ...]]
    writing: GenerationSettings
    location_template: str | None = None
    by_class: bool = False
    predicts: str = "boxes"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint, and of scores."""
        return (*self.loaded.notes, _NO_CONFIDENCE, *([_PRESENT_ALONE] if self.by_class else []))

    def prepare(self, pixels: Pixels, classes: Sequence[str] | None = None) -> PicturePhrases:
        """Choose which classes are asked for: all, or those of the picture's people."""
        present = tuple(name for name in self.prompts if name in (classes or ()))
        return PicturePhrases(pixels, present or tuple(self.prompts))

    def _extra_identity(self) -> dict[str, Any]:
        prompt_lists = [[name, list(texts)] for name, texts in self.prompts.items()]
        return {
            "prompts": prompt_lists,
            **self.writing.to_json(),
            "places": self.location_template,
            "present": self.by_class,
        }

    @property
    def _florence(self) -> bool:
        return str(self.loaded.model.config.model_type) == "florence2"

    def __call__(self, pictures: Sequence[PicturePhrases]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows: list[tuple[Any, ...]] = []
        with self.loaded.torch.inference_mode():
            for name, texts in self.prompts.items():
                queried = [k for k, picture in enumerate(pictures) if name in picture.classes]
                pixels = [pictures[k].pixels for k in queried]
                for text in texts if queried else ():
                    named_rows = self._rows(pixels, name, text)
                    rows += [(queried[row[0]], *row[1:]) for row in named_rows]
        return build_box_table(sorted(keep_best_duplicate_boxes(rows), key=lambda row: row[0]))

    def _rows(self, pictures: Sequence[Pixels], name: str, text: str) -> list[tuple[Any, ...]]:
        """Ask for one phrase in every picture."""
        prompt = f"{_GROUNDING}{text}" if self._florence else f"<grounding><phrase>{text}</phrase>"
        prompt = prompt if self.location_template is None else text
        inputs = [self._prepare_prompt(picture, prompt) for picture in pictures]
        rows, offset = [], 0
        for batch, tensors in self._batches(inputs):
            lines = self._generate_lines(tensors, self.writing, skip_special=False)
            for k, (model_input, line) in enumerate(zip(batch, lines, strict=True)):
                boxes = self._boxes(line, prompt, model_input)
                rows += [(offset + k, name, *box, _WRITTEN_BOX_SCORE) for box in boxes]
            offset += len(batch)
        return rows

    def _boxes(
        self, line: str, prompt: str, model_input: PromptedImage
    ) -> list[tuple[float, float, float, float]]:
        """Read the boxes that a model wrote: x, y, w, h in the picture's pixels."""
        processor, (w, h) = self.loaded.processor, (model_input.width, model_input.height)
        if self.location_template is not None:
            corners = parse_pixel_corner_boxes(line, self.location_template, w, h)
        elif self._florence:
            parsed = processor.post_process_generation(line, task=_GROUNDING, image_size=(w, h))
            corners = parsed[_GROUNDING]["bboxes"]
        else:  # shares of the picture, and the phrase stands in what the model was told
            _, entities = processor.post_process_generation(prompt + line)
            corners = [
                (a * w, b * h, c * w, d * h)
                for *_, entity_boxes in entities
                for a, b, c, d in entity_boxes
            ]
        boxes = []
        for x_min, top, x_max, bottom in corners:
            x, y = min(max(x_min, 0), w), min(max(top, 0), h)
            size = min(max(x_max, x), w) - x, min(max(bottom, y), h) - y
            boxes.append((float(x), float(y), float(size[0]), float(size[1])))
        return boxes


def parse_pixel_corner_boxes(
    generated_text: str, phrase: str, width: int, height: int
) -> list[tuple[float, float, float, float]]:
    """Read the boxes in what a model wrote: left, top, right, bottom in pixels.

    OFA (Wang et al. 2022, section 3.1) writes ``<bin_k>``, k from 0 to 999 along either side.

    Examples
    --------
    >>> parse_pixel_corner_boxes("a dog<bin_0><bin_0><bin_999><bin_333>", "<bin_{}>", 999, 333)
    [(0.0, 0.0, 999.0, 111.0)]
    """
    before, after = (re.escape(segment) for segment in phrase.split("{}"))
    corners = []
    for run in re.findall(rf"(?:{before}\d+{after}\s*){{4}}", generated_text):
        numbers = [int(digits) for digits in re.findall(rf"{before}(\d+){after}", run)]
        if max(numbers) < _N_LOCATION_BINS:
            a, b, c, d = (number / (_N_LOCATION_BINS - 1) for number in numbers)
            corners.append((a * width, b * height, c * width, d * height))
    return corners
