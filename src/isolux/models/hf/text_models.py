"""Models that answer in words: captions, answers to a question, and boxes written as words.

A model's words become labels: as they stand, or the class whose words stand in them. Every picture
of a run is asked the same, so that nothing has to be filled up to one length: a batch of one and a
batch of many give the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.images import Pixels
from isolux.models._boxes import build_box_table, keep_best_duplicate_boxes
from isolux.models._classes import build_top_label_table, to_probabilities
from isolux.models._torch import iterate_batches_of_equal_shape
from isolux.models.hf.checkpoint import LoadedCheckpoint
from isolux.models.hf.image_models import CHANNELS_LAST

_CAPTION = {"florence2": "<CAPTION>", "kosmos-2": "An image of"}
"""What a model of that type is asked for a caption; others by their own words, or by none."""
_CHAT_CAPTION = "Describe this picture in one sentence."
_GROUNDING = "<CAPTION_TO_PHRASE_GROUNDING>"
_WORD = re.compile(r"[^\W_]+")
_NO_CONFIDENCE = "The model writes boxes without a confidence: each has the score 1."
_N_LOCATION_BINS = 1000  # words for places along a side
_WRITTEN_BOX_SCORE = 1.0  # the score of a box that was written: no confidence comes with it


@dataclass(frozen=True, slots=True)
class PromptedImage:
    """A picture and what is asked of it, as the model takes them, and its height and width."""

    values: Mapping[str, npt.NDArray[Any]]
    height: int
    width: int

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return sum(int(array.nbytes) for array in self.values.values())

    @property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """What pictures of one batch have in common."""
        return tuple((name, array.shape) for name, array in self.values.items())


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How a model's words are chosen.

    Parameters
    ----------
    words : int
        How many tokens it may write.
    beams : int
        Of beam search; 1: the likeliest word at each place.
    top_p : float or None
        Words are drawn among the likeliest that have this much probability together; None: none is
        drawn, and nothing depends on chance.
    seed : int
        Of what is drawn, for each picture anew.
    """

    words: int
    beams: int = 1
    top_p: float | None = None
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Say what moves an answer."""
        return {name: getattr(self, name) for name in ("words", "beams", "top_p", "seed")}


@dataclass(frozen=True)
class _ImageTextModel:
    """What those have in common that take a picture and a text."""

    loaded: LoadedCheckpoint

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        return {**self.loaded.identity, **self._extra_identity()}

    def _extra_identity(self) -> dict[str, Any]:
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint."""
        return self.loaded.notes

    def _prepare_prompt(self, pixels: Pixels, text: str | None) -> PromptedImage:
        processor = self.loaded.processor
        if text is not None and getattr(processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": text}]
            text = processor.apply_chat_template(
                [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
            )
        inputs = {"images": pixels} if text is None else {"images": pixels, "text": text}
        outputs = processor(**inputs, return_tensors="np", **CHANNELS_LAST)
        height, width = pixels.shape[:2]
        return PromptedImage({k: np.asarray(v) for k, v in outputs.items()}, height, width)

    def _batches(
        self, inputs: Sequence[PromptedImage]
    ) -> Iterator[tuple[Sequence[PromptedImage], dict[str, Any]]]:
        """Yield batches of one shape, with their tensors."""
        torch, model = self.loaded.torch, self.loaded.model
        for _, batch in iterate_batches_of_equal_shape(
            inputs, lambda model_input: model_input.shapes
        ):
            tensors = {}
            for name in batch[0].values:
                tensor = torch.from_numpy(
                    np.concatenate([model_input.values[name] for model_input in batch])
                )
                dtype = model.dtype if tensor.is_floating_point() else tensor.dtype
                tensors[name] = tensor.to(self.loaded.device, dtype)
            yield batch, tensors

    def _generate_lines(
        self, tensors: Mapping[str, Any], generation: GenerationSettings, *, skip_special: bool
    ) -> list[str]:
        """Generate text and drop the prompt from it."""
        if generation.top_p is not None:
            n = min(len(tensor) for tensor in tensors.values())
            per_image = [
                {name: tensor[k : k + 1] for name, tensor in tensors.items()} for k in range(n)
            ]
            if n > 1:  # what is drawn for a picture does not depend on the others
                return [
                    line
                    for image_tensors in per_image
                    for line in self._generate_lines(
                        image_tensors, generation, skip_special=skip_special
                    )
                ]
            self.loaded.torch.manual_seed(generation.seed)
        sampling = {} if generation.top_p is None else {"top_p": generation.top_p, "top_k": 0}
        generated = self.loaded.model.generate(
            **tensors,
            max_new_tokens=generation.words,
            do_sample=generation.top_p is not None,
            num_beams=generation.beams,
            **sampling,
        )
        prompt_ids = tensors.get("input_ids")
        tokenizer = self.loaded.processor.tokenizer
        lines = []
        for k, token_ids in enumerate(generated):
            new_ids = (
                token_ids if prompt_ids is None else _drop_repeated_prompt(token_ids, prompt_ids[k])
            )
            lines.append(tokenizer.decode(new_ids, skip_special_tokens=skip_special))
        return lines


def _drop_repeated_prompt(token_ids: Any, prompt_ids: Any) -> Any:
    """Leave out the words that a model was told, where it repeats them before its own."""
    for n in (len(prompt_ids), len(prompt_ids) - 1):  # some leave the mark of the end out
        if n > 1 and len(token_ids) >= n and bool((token_ids[:n] == prompt_ids[:n]).all()):
            return token_ids[n:]
    return token_ids


@dataclass(frozen=True)
class TextGenerator(_ImageTextModel):
    """Captioning and question answering: what the model writes, or the class that it names."""

    question: str | None
    classes: Mapping[str, tuple[str, ...]] | None
    writing: GenerationSettings
    predicts: str = "labels"

    def _extra_identity(self) -> dict[str, Any]:
        class_words = (
            None if self.classes is None else [[k, list(v)] for k, v in self.classes.items()]
        )
        return {"question": self.text, "classes": class_words, **self.writing.to_json()}

    @property
    def text(self) -> str | None:
        """What the model is asked."""
        if self.question is not None:
            return self.question
        if getattr(self.loaded.processor, "chat_template", None):
            return _CHAT_CAPTION
        return _CAPTION.get(str(self.loaded.model.config.model_type))

    def prepare(self, pixels: Pixels) -> PromptedImage:
        """Prepare one picture and the question."""
        return self._prepare_prompt(pixels, self.text)

    def __call__(self, pictures: Sequence[PromptedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        labels_or_texts: list[str | None] = []
        with self.loaded.torch.inference_mode():
            for _, tensors in self._batches(pictures):
                for line in self._generate_lines(tensors, self.writing, skip_special=True):
                    text = " ".join(line.split())
                    labels_or_texts.append(
                        text if self.classes is None else find_only_named_class(text, self.classes)
                    )
        # A model that writes nothing has no answer.
        labels = pl.Series(
            [text_or_label or None for text_or_label in labels_or_texts], dtype=pl.String
        )
        rows = pl.DataFrame(
            {"picture": pl.int_range(len(labels_or_texts), eager=True), "label": labels}
        )
        return rows.with_columns(score=pl.lit(None, dtype=pl.Float64))


def find_only_named_class(text: str, classes: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the class that a text names; None where it names none, or several.

    Examples
    --------
    >>> classes = {"nurse": ("nurse", "nurses"), "chef": ("chef", "head cook")}
    >>> find_only_named_class("A Nurse, with a chart.", classes)
    'nurse'
    >>> texts = "a nursery", "a nurse and a chef"
    >>> [find_only_named_class(text, classes) for text in texts]
    [None, None]
    """
    normalised = _normalise_to_padded_words(text)
    matches = [
        name
        for name, words in classes.items()
        if any(_normalise_to_padded_words(word) in normalised for word in words)
    ]
    return matches[0] if len(matches) == 1 else None


def _normalise_to_padded_words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "


@dataclass(frozen=True)
class AnswerClassifier(_ImageTextModel):
    """Question answering by a model that chooses among answers that it knows (ViLT)."""

    question: str
    names: tuple[str, ...]
    top: int
    predicts: str = "labels"

    def _extra_identity(self) -> dict[str, Any]:
        return {"question": self.question, "top": self.top}

    def prepare(self, pixels: Pixels) -> PromptedImage:
        """Prepare one picture and the question."""
        return self._prepare_prompt(pixels, self.question)

    def __call__(self, pictures: Sequence[PromptedImage]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows = [np.zeros((0, len(self.names)))]
        with self.loaded.torch.inference_mode():
            for _, tensors in self._batches(pictures):
                logits = self.loaded.model(**tensors).logits.float().cpu().numpy()
                rows.append(
                    to_probabilities(logits, "sigmoid")
                )  # each answer was trained by itself
        return build_top_label_table(np.concatenate(rows), self.names, self.top)


@dataclass(frozen=True)
class GroundingModel(_ImageTextModel):
    """Grounding by a model that writes boxes (Florence-2, Kosmos-2): a class's prompt at a time.

    ``location_template`` reads boxes of any other model that writes four numbers as words of their
    own, as OFA does, and asks it with the prompt as it stands.
    """

    prompts: Mapping[str, tuple[str, ...]]
    writing: GenerationSettings
    location_template: str | None = None
    predicts: str = "boxes"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint, and of scores."""
        return (*self.loaded.notes, _NO_CONFIDENCE)

    def _extra_identity(self) -> dict[str, Any]:
        prompt_lists = [[name, list(texts)] for name, texts in self.prompts.items()]
        return {"prompts": prompt_lists, **self.writing.to_json(), "places": self.location_template}

    @property
    def _florence(self) -> bool:
        return str(self.loaded.model.config.model_type) == "florence2"

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Answer for pictures."""
        rows: list[tuple[Any, ...]] = []
        named_prompts = [(name, text) for name, texts in self.prompts.items() for text in texts]
        with self.loaded.torch.inference_mode():
            for name, text in named_prompts:
                rows += self._rows(pictures, name, text)
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


@dataclass(frozen=True)
class MultiQuestionModel:
    """A model that is asked each of several questions.

    Parameters
    ----------
    asking : tuple of (str, TextGenerator or AnswerClassifier)
        Each question, and the model that is asked it.
    prompts : mapping of str to tuple of str
        As the file has them, by name.
    """

    asking: tuple[tuple[str, TextGenerator | AnswerClassifier], ...]
    prompts: Mapping[str, tuple[str, ...]]
    predicts: str = "labels"

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        model_identity = dict(self.asking[0][1].identity)
        prompt_lists = [[name, list(texts)] for name, texts in self.prompts.items()]
        return {**model_identity, "question": None, "prompts": prompt_lists}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint."""
        return self.asking[0][1].notes

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Answer for pictures: a row for each picture and question."""
        frames = []
        for rank, (question, model) in enumerate(self.asking, start=1):
            answers = model([model.prepare(picture) for picture in pictures])
            frames.append(
                answers.with_columns(question=pl.lit(question), rank=pl.lit(rank, dtype=pl.Int64))
            )
        return pl.concat(frames).sort("picture", "rank", maintain_order=True)
