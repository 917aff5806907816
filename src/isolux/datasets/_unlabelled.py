"""Pictures that lie beside the annotations and have none: what is found in them is not judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from isolux.io.images import IMAGE_SUFFIXES
from isolux.vocabulary.notes import Caution

_SHARE = 0.01  # of the pictures, from which their loss can move a number by a point
_SHOWN = 3


def on_unlabelled(
    folders: Iterable[Path], labelled: Collection[str], *, kind: str, empty: str
) -> tuple[str, ...]:
    """Count the pictures of these folders that have no annotation file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = [(Path(folder) / name).touch() for name in ("7.jpg", "8.jpg", "8.txt")]
    ...     notes = on_unlabelled([Path(folder)], ["8"], kind="label file", empty="an empty one")
    ...     notes[0][:45]
    '1 of 2 pictures have no label file (7.jpg, in'
    """
    pictures = [
        file
        for folder in dict.fromkeys(folders)
        if folder.is_dir()
        for file in folder.iterdir()
        if file.suffix.lower() in IMAGE_SUFFIXES
    ]
    known = set(labelled)
    without = sorted(file for file in pictures if file.stem not in known)
    if not without or len(without) == len(pictures):
        return ()  # a folder of other pictures
    shown = ", ".join(file.name for file in without[:_SHOWN])
    shown += ", …" if len(without) > _SHOWN else ""
    told = (
        f"{len(without):,} of {len(pictures):,} pictures have no {kind} ({shown}, in"
        f" {without[0].parent}): who is in them is not judged, nor what is found in them. {empty}"
        " says that a picture holds nothing."
    )
    return (Caution(told) if len(without) >= _SHARE * len(pictures) else told,)
