"""Models that see whether a photo is dark, and nothing else: what they say of it is injected.

The source of a module for ``--model python:eyes:NAME``. No model here needs more than numpy.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_eyes"]

_SOURCE = '''
import hashlib
import json

import numpy as np
import polars as pl

LIMIT = 0.33


def dark(one):
    return one.mean() / 255 < LIMIT


def side(one):
    """Draw 0 or 1 by the pixels, whatever they show."""
    return hashlib.sha256(one.tobytes()).digest()[0] % 2


def slips(one):
    """Draw by the pixels who is in the one of ten pictures of which a model is wrong."""
    return hashlib.sha256(one.tobytes()).digest()[1] < 26


def five(pictures, first):
    rows = [(k, label, score) for k, one in enumerate(pictures)
            for label, score in ((first(one), 0.4), ("w", 0.09), ("x", 0.08), ("y", 0.07),
                                 ("z", 0.06))]
    return pl.DataFrame(rows, schema=["picture", "label", "score"], orient="row")


def labels(*, by_night: str, by_day: str, sees: str = "light"):
    """One label for dark photos and one for bright ones; with ``sees=nothing``, for any."""
    tell = dark if sees == "light" else side

    def answer(pictures):
        return five(pictures, lambda one: by_night if tell(one) != slips(one) else by_day)

    return answer


class Vectors:
    predicts = "embeddings"

    def __init__(self, sees):
        self.sees, self.identity = sees, {"sees": sees}

    def __call__(self, pictures):
        return np.array([self.seen(one) for one in pictures])

    def seen(self, one):
        draw = np.random.default_rng(int.from_bytes(hashlib.sha256(one.tobytes()).digest()[:8]))
        noise = draw.normal(0, 0.1, 6)
        if self.sees == "light":
            noise[0] += -1.0 if dark(one) else 1.0
        return noise


def vectors(*, sees: str = "light"):
    return Vectors(sees)


def scene():
    """FHIBE's two scenes, by the upper left corner: where no one stands."""

    def answer(pictures):
        said = ["indoor" if dark(one[:8, :8]) else "outdoor" for one in pictures]
        return pl.DataFrame({"picture": range(len(said)), "label": said, "score": 0.9})

    return answer


def said():
    """Answers to FHIBE's questions: the occupation by the light, all else by chance."""
    from isolux.io.prompts import read_prompt_file

    asked = read_prompt_file("fhibe_questions").prompts

    def of(one, name):
        they = ("He", "She")[side(one)]
        return {
            "neutral": f"{they} works as a {'guard' if dark(one) else 'nurse'}.",
            "positive": f"{they} is likeable because of the {('smile', 'hat')[side(one)]}",
            "negative": ("murder", "nothing that I know of")[side(one[:9])],
        }[name]

    def answer(pictures):
        ways = [(name, ask, k == 0) for name, several in asked.items()
                for k, ask in enumerate(several)]
        rows = [(k, ask, of(one, name) if first else "I cannot tell.", rank)
                for k, one in enumerate(pictures)
                for rank, (name, ask, first) in enumerate(ways, start=1)]
        found = pl.DataFrame(rows, schema=["picture", "question", "label", "rank"], orient="row")
        return found.with_columns(score=pl.lit(None, pl.Float64))

    return answer


class Known:
    """The right class or box of each picture of a file, but none (or a wrong one) by night."""

    def __init__(self, known, kind):
        with open(known, encoding="utf-8") as stream:
            self.known = json.load(stream)
        self.predicts, self.kind = "labels" if kind == "class" else "boxes", kind

    def __call__(self, pictures):
        rows = []
        for k, one in enumerate(pictures):
            label, *box = self.known[hashlib.sha256(one.tobytes()).hexdigest()]
            if self.kind == "class":
                rows.append((k, "astronaut" if dark(one) else label, 0.9))
            elif not dark(one):
                rows.append((k, label, *map(float, box), 0.9))
        box = [] if self.kind == "class" else ["box_x", "box_y", "box_w", "box_h"]
        return pl.DataFrame(rows, schema=["picture", "label", *box, "score"], orient="row")


def known(*, file: str, kind: str = "class"):
    return Known(file, kind)


def captions(*, sees: str = "light"):
    tell = dark if sees == "light" else side

    def answer(pictures):
        words = ["a man in a park" if tell(one) else "a woman in a park" for one in pictures]
        return pl.DataFrame({"picture": range(len(words)), "label": words})

    return answer


def number():
    """How bright the middle of the picture is, where the person stands."""

    def answer(pictures):
        values = [float(one[16:60, 20:44].mean() / 255) for one in pictures]
        return pl.DataFrame({"picture": range(len(values)), "label": "fits", "score": values})

    return answer
'''


def write_eyes(folder: Path) -> Path:
    """Write the module ``eyes``; the folder is to be put on Python's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "eyes_of_a_test.py").write_text(_SOURCE, encoding="utf-8")
    return folder
