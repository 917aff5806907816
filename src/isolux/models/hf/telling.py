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
from isolux.models._boxes import boxes_table, once
from isolux.models._classes import label_rows, probabilities
from isolux.models._torch import of_one_shape
from isolux.models.hf.loading import Loaded

_CAPTION = {"florence2": "<CAPTION>", "kosmos-2": "An image of"}
"""What a model of that type is asked for a caption; others by their own words, or by none."""
_CHAT_CAPTION = "Describe this picture in one sentence."
_GROUNDING = "<CAPTION_TO_PHRASE_GROUNDING>"
_WORD = re.compile(r"[^\W_]+")
_NO_CONFIDENCE = "The model writes boxes without a confidence: each has the score 1."
_BINS = 1000  # words for places along a side
_CERTAIN = 1.0  # the score of a box that was written: no confidence comes with it


@dataclass(frozen=True, slots=True)
class Asked:
    """A picture and what is asked of it, as the model takes them, and its height and width."""

    values: Mapping[str, npt.NDArray[Any]]
    height: int
    width: int

    @property
    def nbytes(self) -> int:
        """How much room it takes."""
        return sum(int(one.nbytes) for one in self.values.values())

    @property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """What pictures of one batch have in common."""
        return tuple((name, one.shape) for name, one in self.values.items())


@dataclass(frozen=True, slots=True)
class Writing:
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

    def said(self) -> dict[str, Any]:
        """Say what moves an answer."""
        return {name: getattr(self, name) for name in ("words", "beams", "top_p", "seed")}


@dataclass(frozen=True)
class _Worded:
    """What those have in common that take a picture and a text."""

    loaded: Loaded

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        return {**self.loaded.identity, **self._more()}

    def _more(self) -> dict[str, Any]:
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint."""
        return self.loaded.notes

    def _asked(self, pixels: Pixels, text: str | None) -> Asked:
        processor = self.loaded.processor
        if text is not None and getattr(processor, "chat_template", None):
            said = [{"type": "image"}, {"type": "text", "text": text}]
            text = processor.apply_chat_template(
                [{"role": "user", "content": said}], add_generation_prompt=True, tokenize=False
            )
        given = {"images": pixels} if text is None else {"images": pixels, "text": text}
        found = processor(**given, return_tensors="np")
        height, width = pixels.shape[:2]
        return Asked({k: np.asarray(v) for k, v in found.items()}, height, width)

    def _batches(self, shown: Sequence[Asked]) -> Iterator[tuple[Sequence[Asked], dict[str, Any]]]:
        """Give runs of one shape, and their tensors."""
        torch, model = self.loaded.torch, self.loaded.model
        for _, part in of_one_shape(shown, lambda one: one.shapes):
            tensors = {}
            for name in part[0].values:
                found = torch.from_numpy(np.concatenate([one.values[name] for one in part]))
                kind = model.dtype if found.is_floating_point() else found.dtype
                tensors[name] = found.to(self.loaded.device, kind)
            yield part, tensors

    def _written(self, tensors: Mapping[str, Any], how: Writing, *, plain: bool) -> list[str]:
        """Let the model write, and leave out what it was told."""
        if how.top_p is not None:
            n = min(len(one) for one in tensors.values())
            each = [{name: one[k : k + 1] for name, one in tensors.items()} for k in range(n)]
            if n > 1:  # what is drawn for a picture does not depend on the others
                return [line for one in each for line in self._written(one, how, plain=plain)]
            self.loaded.torch.manual_seed(how.seed)
        drawn = {} if how.top_p is None else {"top_p": how.top_p, "top_k": 0}
        found = self.loaded.model.generate(
            **tensors,
            max_new_tokens=how.words,
            do_sample=how.top_p is not None,
            num_beams=how.beams,
            **drawn,
        )
        told = tensors.get("input_ids")
        tokenizer = self.loaded.processor.tokenizer
        lines = []
        for k, one in enumerate(found):
            kept = one if told is None else _after(one, told[k])
            lines.append(tokenizer.decode(kept, skip_special_tokens=plain))
        return lines


def _after(written: Any, told: Any) -> Any:
    """Leave out the words that a model was told, where it repeats them before its own."""
    for n in (len(told), len(told) - 1):  # some leave the mark of the end out
        if n > 1 and len(written) >= n and bool((written[:n] == told[:n]).all()):
            return written[n:]
    return written


@dataclass(frozen=True)
class Telling(_Worded):
    """Captioning and question answering: what the model writes, or the class that it names."""

    question: str | None
    classes: Mapping[str, tuple[str, ...]] | None
    writing: Writing
    predicts: str = "labels"

    def _more(self) -> dict[str, Any]:
        known = None if self.classes is None else [[k, list(v)] for k, v in self.classes.items()]
        return {"question": self.text, "classes": known, **self.writing.said()}

    @property
    def text(self) -> str | None:
        """What the model is asked."""
        if self.question is not None:
            return self.question
        if getattr(self.loaded.processor, "chat_template", None):
            return _CHAT_CAPTION
        return _CAPTION.get(str(self.loaded.model.config.model_type))

    def prepare(self, pixels: Pixels) -> Asked:
        """Prepare one picture and the question."""
        return self._asked(pixels, self.text)

    def __call__(self, pictures: Sequence[Asked]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        said: list[str | None] = []
        with self.loaded.torch.inference_mode():
            for _, tensors in self._batches(pictures):
                for line in self._written(tensors, self.writing, plain=True):
                    text = " ".join(line.split())
                    said.append(text if self.classes is None else class_told(text, self.classes))
        # A model that writes nothing has no answer.
        labels = pl.Series([one or None for one in said], dtype=pl.String)
        rows = pl.DataFrame({"picture": pl.int_range(len(said), eager=True), "label": labels})
        return rows.with_columns(score=pl.lit(None, dtype=pl.Float64))


def class_told(text: str, classes: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the class that a text names; None where it names none, or several.

    Examples
    --------
    >>> classes = {"nurse": ("nurse", "nurses"), "chef": ("chef", "head cook")}
    >>> class_told("A Nurse, with a chart.", classes)
    'nurse'
    >>> class_told("a nursery", classes), class_told("a nurse and a chef", classes)
    (None, None)
    """
    plain = _plain(text)
    found = [name for name, words in classes.items() if any(_plain(one) in plain for one in words)]
    return found[0] if len(found) == 1 else None


def _plain(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "


@dataclass(frozen=True)
class Choosing(_Worded):
    """Question answering by a model that chooses among answers that it knows (ViLT)."""

    question: str
    names: tuple[str, ...]
    top: int
    predicts: str = "labels"

    def _more(self) -> dict[str, Any]:
        return {"question": self.question, "top": self.top}

    def prepare(self, pixels: Pixels) -> Asked:
        """Prepare one picture and the question."""
        return self._asked(pixels, self.question)

    def __call__(self, pictures: Sequence[Asked]) -> pl.DataFrame:
        """Answer for prepared pictures."""
        rows = [np.zeros((0, len(self.names)))]
        with self.loaded.torch.inference_mode():
            for _, tensors in self._batches(pictures):
                logits = self.loaded.model(**tensors).logits.float().cpu().numpy()
                rows.append(probabilities(logits, "sigmoid"))  # each answer was trained by itself
        return label_rows(np.concatenate(rows), self.names, self.top)


@dataclass(frozen=True)
class Pointing(_Worded):
    """Grounding by a model that writes boxes (Florence-2, Kosmos-2): a class's prompt at a time.

    ``places`` reads boxes of any other model that writes four numbers as words of their own, as OFA
    does, and asks it with the prompt as it stands.
    """

    prompts: Mapping[str, tuple[str, ...]]
    writing: Writing
    places: str | None = None
    predicts: str = "boxes"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint, and of scores."""
        return (*self.loaded.notes, _NO_CONFIDENCE)

    def _more(self) -> dict[str, Any]:
        told = [[name, list(texts)] for name, texts in self.prompts.items()]
        return {"prompts": told, **self.writing.said(), "places": self.places}

    @property
    def _florence(self) -> bool:
        return str(self.loaded.model.config.model_type) == "florence2"

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Answer for pictures."""
        rows: list[tuple[Any, ...]] = []
        asked = [(name, text) for name, texts in self.prompts.items() for text in texts]
        with self.loaded.torch.inference_mode():
            for name, text in asked:
                rows += self._rows(pictures, name, text)
        return boxes_table(sorted(once(rows), key=lambda row: row[0]))

    def _rows(self, pictures: Sequence[Pixels], name: str, text: str) -> list[tuple[Any, ...]]:
        """Ask for one phrase in every picture."""
        told = f"{_GROUNDING}{text}" if self._florence else f"<grounding><phrase>{text}</phrase>"
        told = told if self.places is None else text
        shown = [self._asked(one, told) for one in pictures]
        rows, at = [], 0
        for part, tensors in self._batches(shown):
            lines = self._written(tensors, self.writing, plain=False)
            for k, (one, line) in enumerate(zip(part, lines, strict=True)):
                found = self._boxes(line, told, one)
                rows += [(at + k, name, *box, _CERTAIN) for box in found]
            at += len(part)
        return rows

    def _boxes(self, line: str, told: str, shown: Asked) -> list[tuple[float, float, float, float]]:
        """Read the boxes that a model wrote: x, y, w, h in the picture's pixels."""
        processor, (w, h) = self.loaded.processor, (shown.width, shown.height)
        if self.places is not None:
            corners = corners_in(line, self.places, w, h)
        elif self._florence:
            found = processor.post_process_generation(line, task=_GROUNDING, image_size=(w, h))
            corners = found[_GROUNDING]["bboxes"]
        else:  # shares of the picture, and the phrase stands in what the model was told
            _, entities = processor.post_process_generation(told + line)
            corners = [(a * w, b * h, c * w, d * h) for *_, some in entities for a, b, c, d in some]
        kept = []
        for left, top, right, bottom in corners:
            x, y = min(max(left, 0), w), min(max(top, 0), h)
            sides = min(max(right, x), w) - x, min(max(bottom, y), h) - y
            kept.append((float(x), float(y), float(sides[0]), float(sides[1])))
        return kept


def corners_in(
    line: str, word: str, width: int, height: int
) -> list[tuple[float, float, float, float]]:
    """Read the boxes in what a model wrote: left, top, right, bottom in pixels.

    OFA (Wang et al. 2022, section 3.1) writes ``<bin_k>``, k from 0 to 999 along either side.

    Examples
    --------
    >>> corners_in("a dog<bin_0><bin_0><bin_999><bin_333>", "<bin_{}>", 999, 333)
    [(0.0, 0.0, 999.0, 111.0)]
    """
    before, after = (re.escape(part) for part in word.split("{}"))
    found = []
    for run in re.findall(rf"(?:{before}\d+{after}\s*){{4}}", line):
        numbers = [int(one) for one in re.findall(rf"{before}(\d+){after}", run)]
        if max(numbers) < _BINS:
            a, b, c, d = (one / (_BINS - 1) for one in numbers)
            found.append((a * width, b * height, c * width, d * height))
    return found


@dataclass(frozen=True)
class Questioning:
    """A model that is asked each of several questions.

    Parameters
    ----------
    asking : tuple of (str, Telling or Choosing)
        Each question, and the model that is asked it.
    prompts : mapping of str to tuple of str
        As the file has them, by name.
    """

    asking: tuple[tuple[str, Telling | Choosing], ...]
    prompts: Mapping[str, tuple[str, ...]]
    predicts: str = "labels"

    @property
    def identity(self) -> dict[str, Any]:
        """What moves an answer."""
        own = dict(self.asking[0][1].identity)
        told = [[name, list(texts)] for name, texts in self.prompts.items()]
        return {**own, "question": None, "prompts": told}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the checkpoint."""
        return self.asking[0][1].notes

    def __call__(self, pictures: Sequence[Pixels]) -> pl.DataFrame:
        """Answer for pictures: a row for each picture and question."""
        frames = []
        for rank, (question, model) in enumerate(self.asking, start=1):
            found = model([model.prepare(one) for one in pictures])
            frames.append(
                found.with_columns(question=pl.lit(question), rank=pl.lit(rank, dtype=pl.Int64))
            )
        return pl.concat(frames).sort("picture", "rank", maintain_order=True)
