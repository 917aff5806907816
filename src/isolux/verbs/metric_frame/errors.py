"""What is refused here is a ``ValueError`` too, as it is in fairlearn and scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from isolux.vocabulary.errors import IsoluxError, SpecError, TableError, UnknownNameError


class FrameTableError(TableError, ValueError):
    """Inputs of ``metric_frame`` that do not fit together."""


class FrameSpecError(SpecError, ValueError):
    """A setting of ``metric_frame`` that cannot be used."""


class FrameNameError(UnknownNameError, ValueError):
    """A metric that there is not."""


_KINDS: tuple[tuple[type[IsoluxError], type[IsoluxError]], ...] = (
    (UnknownNameError, FrameNameError),
    (TableError, FrameTableError),
    (SpecError, FrameSpecError),
)


@contextmanager
def refused_as_values() -> Iterator[None]:
    """Raise isolux's errors as errors that are a ``ValueError`` too; nothing else of them changes.

    Examples
    --------
    >>> try:
    ...     with refused_as_values():
    ...         raise TableError("the inputs differ in length")
    ... except ValueError as error:
    ...     print(error, isinstance(error, TableError))
    the inputs differ in length True
    """
    try:
        yield
    except IsoluxError as error:
        kind = next((new for old, new in _KINDS if type(error) is old), None)
        if kind is None:
            raise
        same = kind.__new__(kind)
        same.args = error.args
        vars(same).update(vars(error))
        raise same from error.__cause__
