"""The heads of a network that answers several questions of one picture, and its file.

One last layer holds all heads side by side: FairFace's has 7 + 2 + 9 outputs (section 4.2 and the
authors' released code). A file that isolux wrote says in its metadata, as JSON under ``isolux``,
what its outputs are; the authors' own, converted to safetensors, says nothing and has 18.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isolux.datasets.fairface import AGES, GENDERS, RACES
from isolux.vocabulary.errors import FileError, SpecError

FILE = "fairface.safetensors"
"""What a trained network's weights are called in its folder."""

SIDE = 224  # pixels, as the authors' released code
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_KEY = "isolux"


@dataclass(frozen=True, slots=True)
class Heads:
    """What a network is asked, in the order of its outputs, and how pictures are brought to it.

    Parameters
    ----------
    classes : mapping of str to tuple of str
        Each head's classes.
    side : int
        Height and width of its input in pixels.
    """

    classes: Mapping[str, tuple[str, ...]]
    side: int = SIDE

    @property
    def outputs(self) -> int:
        """How many numbers the last layer has."""
        return sum(len(names) for names in self.classes.values())

    def slices(self) -> dict[str, slice]:
        """Say where each head's outputs lie.

        Examples
        --------
        >>> Heads({"light": ("day", "night"), "hue": ("red", "blue", "grey")}).slices()["hue"]
        slice(2, 5, None)
        """
        found, at = {}, 0
        for name, classes in self.classes.items():
            found[name] = slice(at, at + len(classes))
            at += len(classes)
        return found


FAIRFACE_HEADS: dict[str, tuple[str, ...]] = {"race": RACES, "gender": GENDERS, "age": AGES}
"""The paper's: 7, 2 and 9 classes, in the order of the authors' released weights."""


def heads_text(heads: Heads, **more: Any) -> dict[str, str]:
    """Write heads as a file's metadata holds them."""
    said = {"heads": {k: list(v) for k, v in heads.classes.items()}, "side": heads.side, **more}
    return {_KEY: json.dumps(said, ensure_ascii=False)}


def heads_in(metadata: Mapping[str, str] | None, outputs: int, where: str | Path) -> Heads:
    """Read what a file's outputs are."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        own = Heads(FAIRFACE_HEADS)
        if outputs != own.outputs:
            raise SpecError(
                "nothing says what the network's outputs are",
                expected="a file that `isolux train fairface` wrote, or FairFace's 18 outputs",
                found=f"{outputs:,} outputs",
                where=str(where),
            )
        return own
    try:
        said = json.loads(text)
        classes = {str(k): _names(v) for k, v in said["heads"].items()}
        heads = Heads(classes, int(said["side"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError(
            "the file does not say what its outputs are", found=str(error)[:100], where=str(where)
        ) from error
    if heads.outputs != outputs:
        raise SpecError(
            "the file's heads do not fit its network",
            expected=f"{outputs:,} classes", found=f"{heads.outputs:,}", where=str(where),
        )  # fmt: skip
    return heads


def _names(classes: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(classes, str):
        raise TypeError("a list of classes is a text")
    return tuple(str(one) for one in classes)
