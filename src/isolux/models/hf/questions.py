"""Several questions of every picture, one after another: positive, neutral and negative prompts.

Every question is asked of every picture in the same words, so that answers differ by picture alone
(Xiang et al. 2025, Methods, BLIP-2). Answers are kept as they were written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.io.images import Pixels
from isolux.models.hf.telling import Choosing, Telling

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
