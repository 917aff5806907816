"""Models that answer in words: captions, and answers to a question.

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
from isolux.models._classes import build_top_label_table, to_probabilities
from isolux.models._torch import iterate_batches_of_equal_shape
from isolux.models.hf.checkpoint import LoadedCheckpoint
from isolux.models.hf.image_models import CHANNELS_LAST

_CAPTION = {"florence2": "<CAPTION>", "kosmos-2": "An image of"}
"""What a model of that type is asked for a caption; others by their own words, or by none."""
_CHAT_CAPTION = "Describe this picture in one sentence."
_WORD = re.compile(r"[^\W_]+")


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
class ImageTextModel:
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
class TextGenerator(ImageTextModel):
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
class AnswerClassifier(ImageTextModel):
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
