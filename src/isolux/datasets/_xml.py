"""Annotation files in XML, read with the standard library and without what makes XML dangerous."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers.expat import ExpatError

from isolux.vocabulary.errors import FileError, TableError

__all__ = ["number_in", "parsed", "text_in"]


def parsed(data: bytes, where: str, root: str) -> Element:
    """Parse a document whose root element has this name."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise FileError(
            "the file declares a document type or entities, which are not read",
            expected=f"<{root}> and what is in it",
            where=where,
        )
    try:
        found = fromstring(data)  # noqa: S314  (no entities: refused above)
    except (ParseError, ExpatError, ValueError, LookupError, RecursionError) as error:
        raise FileError(
            "this is not valid XML, or it is cut off", found=str(error)[:200], where=where
        ) from error
    if found.tag != root:
        raise FileError(
            "this XML is of another kind", expected=f"<{root}>", found=f"<{found.tag}>"[:80],
            where=where,
        )  # fmt: skip
    return found


def text_in(element: Element, path: str) -> str | None:
    """Return the text of the first such child; null where there is none or it is empty."""
    found = element.findtext(path)
    return found.strip() or None if found is not None else None


def number_in(text: str | None, where: str, field: str) -> float:
    """Read a number that must be there."""
    try:
        number = float(text or "")
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise TableError(
            "a number is missing or is none", expected=f"a finite number as {field}",
            found=repr(text), where=where,
        )  # fmt: skip
    return number
