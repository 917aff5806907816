"""Reading one picture ahead of the model: opened, people cut out, prepared.

Threads of the command do this, and on a machine with a GPU processes beside it: the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from isolux.engine.answering import Said
from isolux.engine.pictures import Opened, Picture, open_picture
from isolux.io.picture_folder import PictureFolder


@dataclass(slots=True)
class Read:
    """A picture that was read ahead: what the model is shown of it, and the room that takes.

    Parameters
    ----------
    opened : Opened
        Without its cuts.
    shown : list
        What the model is shown of each unit; None where there is nothing.
    said : list of Said or None
        Why there is nothing; None: there is something, and the model says more.
    n_bytes : int
        Of all that is shown.
    """

    opened: Opened
    shown: list[Any]
    said: list[Said | None]
    n_bytes: int = 0


def read_picture(
    picture: Picture, folder: PictureFolder, prepare: Callable[..., Any] | None, box_factor: float
) -> Read:
    """Read, unpack, cut out, prepare."""
    opened = open_picture(picture, folder, box_factor)
    # Without its cuts: a shard of large pictures would fill the memory until it is committed.
    read = Read(replace(opened, cuts=()), [], [])
    for cut in opened.cuts:
        if cut.pixels is None:
            read.shown.append(None)
            read.said.append(Said(None, cut.reason, "picture"))
            continue
        try:
            # A model of poses is given people's boxes with the picture (``by_box``).
            boxes = () if picture.boxes is None else (picture.boxes,)
            shown = cut.pixels if prepare is None else prepare(cut.pixels, *boxes)
        except Exception as error:  # noqa: BLE001 - whatever a model raises is its own
            why = (str(error).splitlines() or [""])[0][:200]
            read.shown.append(None)
            read.said.append(
                Said(None, f"the model's preparation raised {type(error).__name__}: {why}", "model")
            )
            continue
        read.shown.append(shown)
        read.said.append(None)
        taken = getattr(shown, "nbytes", None)
        read.n_bytes += taken if isinstance(taken, int) else cut.pixels.nbytes
    return read
