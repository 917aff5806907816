"""A column that was read and is no attribute: an error that asks for it says why it is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import UnknownNameError


@contextmanager
def told_of_unread(dataset: Dataset) -> Iterator[None]:
    """Add to an error about a name what ``Dataset.unread`` says of it."""
    try:
        yield
    except UnknownNameError as error:
        why = dataset.unread.get(error.name)
        if why is None:
            raise
        raise UnknownNameError(
            error.kind, error.name, error.known, where=error.where, found=f"a column: {why}"
        ) from error
