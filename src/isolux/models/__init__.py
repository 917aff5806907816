"""Models: one file a family, with ``INFO`` and ``load(spec, ...)``; perceptual distances too.

PyTorch and its like are imported here, and only when a model is loaded. Nothing is downloaded:
weights are files that are already on the machine.

To add a family, write ``models/<name>.py``, or in another package a module that an entry point
``isolux.models`` names: ``INFO`` (a ``ModelInfo``) says what its models answer, and ``load(spec)``
gives a ``Predictor``; ``answers`` holds what one gave to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.errors import TableError
from isolux.vocabulary.info import ModelInfo
from isolux.vocabulary.tables import (
    BOX_PREDICTIONS,
    EMBEDDINGS,
    KEYPOINT_PREDICTIONS,
    LABEL_PREDICTIONS,
    MASK_PREDICTIONS,
    Table,
)

__all__ = ["ANSWERS", "Predictor", "answers"]

ANSWERS: dict[str, Table] = {
    "labels": LABEL_PREDICTIONS,
    "boxes": BOX_PREDICTIONS,
    "masks": MASK_PREDICTIONS,
    "keypoints": KEYPOINT_PREDICTIONS,
    "embeddings": EMBEDDINGS,
}
"""What a family may answer (``ModelInfo.predicts``), and the table that this is."""

_NAMED = ("model", "instance_id", "image_id")  # whose answer it is: a predictor knows no ids


@runtime_checkable
class Predictor(Protocol):
    """A loaded model: pictures in, a table out.

    The same pictures get the same answers, however they are parted into calls.
    """

    def __call__(self, pictures: Sequence[npt.NDArray[np.uint8]]) -> pl.DataFrame:
        """Answer for pictures ``[height, width, 3]`` of 8 bits, RGB.

        Returns
        -------
        polars.DataFrame
            ``picture`` (int: the position in the list) and the columns of the family's table of
            predictions, without ``model`` and ids. No row, or several, for a picture.
        """
        ...


def answers(
    predictor: Predictor,
    info: ModelInfo,
    pictures: Sequence[npt.NDArray[np.uint8]],
    ids: Sequence[str],
    *,
    model: str,
) -> pl.DataFrame:
    """Ask a model, and hold what it gives to what its family says that it answers.

    Parameters
    ----------
    predictor : Predictor
    info : ModelInfo
        Its family's.
    pictures : sequence of [height, width, 3] uint8
    ids : sequence of str
        Whom or what each picture shows: ``instance_id`` of labels and embeddings, else
        ``image_id``.
    model : str
        The model's name.

    Returns
    -------
    polars.DataFrame
        A table of predictions, as ``ANSWERS`` names it.

    Raises
    ------
    TableError
        Columns that are not there; an answer for a picture that was not given.

    Examples
    --------
    >>> info = ModelInfo(title="t", summary="s.", references=(), predicts="labels")
    >>> def bright(pictures):
    ...     said = ["day" if one.mean() > 127 else "night" for one in pictures]
    ...     return pl.DataFrame({"picture": range(len(said)), "label": said, "score": 1.0})
    >>> picture = np.zeros((2, 2, 3), np.uint8)
    >>> answers(bright, info, [picture], ["a.jpg"], model="bright").row(0)
    ('bright', 'a.jpg', 'night', 1.0, 1, None)
    """
    table = ANSWERS[info.predicts]
    found = predictor(pictures)
    whose = next(name for name in table.schema if name in _NAMED[1:])
    needed = {
        "picture",
        *(c.name for c in table.columns if not c.optional and c.name not in _NAMED),
    }
    if info.predicts == "labels" and "rank" not in found.columns and "picture" in found.columns:
        found = found.with_columns(rank=pl.int_range(1, pl.len() + 1).over("picture"))
    missing = sorted(needed - set(found.columns))
    if missing:
        raise TableError(
            f"the model {model!r} does not answer with {info.predicts}",
            expected=", ".join(sorted(needed)),
            found=", ".join(found.columns) or "no columns",
            hint="see isolux.models.Predictor",
        )
    strange = found.filter(~pl.col("picture").is_between(0, len(pictures) - 1))
    if not strange.is_empty():
        raise TableError(
            f"the model {model!r} answers for a picture that it was not given",
            expected=f"picture from 0 to {len(pictures) - 1}",
            found=str(strange["picture"][0]),
        )
    named = pl.Series(list(ids), dtype=pl.String).gather(found["picture"])
    return table.conform(
        found.drop("picture").with_columns(named.alias(whose), model=pl.lit(model))
    )
