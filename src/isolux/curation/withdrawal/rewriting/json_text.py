"""JSON and JSON lines: entries of theirs go, also those that a file of COCO's form ties to them."""

from __future__ import annotations

import json
from typing import Any

from isolux.curation.withdrawal.rewriting.cells import rule_of
from isolux.curation.withdrawal.rewriting.rewritten import Rewritten, decoded
from isolux.curation.withdrawal.terms import Terms, kinds_of_column, short_names

__all__ = ["rewrite", "rewrite_lines", "without_entries"]

_GONE = object()


def rewrite(data: bytes, terms: Terms) -> Rewritten:
    """Take entries out of a document."""
    text, coding = decoded(data)
    try:
        found = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        found = None
    if found is None:
        return Rewritten(data, 0, why="it is no JSON")
    kept, n = without_entries(found, terms)
    if not n:
        return Rewritten(data, 0)
    if kept is None:
        return Rewritten(None, n)
    indent = 2 if "\n" in str(text).strip() else None
    end = "\n" if str(text).endswith("\n") else ""
    ascii_only = "\\u" in str(text)
    return Rewritten(
        (json.dumps(kept, indent=indent, ensure_ascii=ascii_only) + end).encode(coding), n
    )


def rewrite_lines(data: bytes, terms: Terms) -> Rewritten:
    """Take lines out of a file with a document in each."""
    text, coding = decoded(data)
    if text is None:
        return Rewritten(data, 0, why="its text has no known coding")
    kept, n = [], 0
    for line in text.splitlines(keepends=True):
        try:
            found = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            return Rewritten(data, 0, why="a line is no JSON")
        left, went = without_entries(found, terms)
        n += went
        if not went:
            kept.append(line)
        elif left is not None:
            kept.append(json.dumps(left, ensure_ascii=False) + "\n")
    return Rewritten("".join(kept).encode(coding) if n else data, n)


def without_entries(found: Any, terms: Terms) -> tuple[Any, int]:
    """Take out of a document what is theirs; None where all of it is."""
    counter = [0]
    tied = _tied(found, terms)
    if tied is not None:
        return tied
    kept = _walked(found, terms, "", counter)
    return (None if kept is _GONE else kept), counter[0]


def _is_theirs(value: Any, terms: Terms, key: str, beside: tuple[str, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    if isinstance(value, int):  # "id": 9 numbers an entry, "image_id": 9 names a photo
        found = kinds_of_column(key)
        if found is None or not found[1]:
            return False
    return rule_of(terms, key, beside)(str(value))


def _walked(value: Any, terms: Terms, key: str, counter: list[int]) -> Any:
    if isinstance(value, dict):
        return _of_mapping(value, terms, counter)
    if isinstance(value, list):
        kept = []
        for one in value:
            bare = not isinstance(one, dict | list)
            left = _GONE if bare and _is_theirs(one, terms, key, ()) else None
            if left is None:
                left = _walked(one, terms, key, counter) if not bare else one
            else:
                counter[0] += 1
            if left is not _GONE:
                kept.append(left)
        return kept
    return value


def _of_mapping(value: dict[str, Any], terms: Terms, counter: list[int]) -> Any:
    """Take a record with their id out whole, and of a long sentence the name alone."""
    names = tuple(value)
    out: dict[str, Any] = {}
    for name, one in value.items():
        if _is_theirs(one, terms, name, names):
            counter[0] += 1
            if kinds_of_column(name) is not None:
                return _GONE
            out[name] = terms.blotted(one) if isinstance(one, str) else None
            continue
        if terms.is_name(name, names) or terms.in_text(name):  # keyed by id
            counter[0] += 1
            continue
        left = _walked(one, terms, name, counter)
        if left is not _GONE:
            out[name] = left
    return out


def _tied(found: Any, terms: Terms) -> tuple[Any, int] | None:
    """Take pictures out of COCO's form, with whatever names them by number."""
    if not isinstance(found, dict) or not isinstance(found.get("images"), list):
        return None
    pictures = [one for one in found["images"] if isinstance(one, dict)]
    bad = {
        one.get("id") for one in pictures
        if any(_is_picture(str(one.get(key, "")), terms) for key in ("file_name", "image_id"))
        or any(_is_theirs(one.get(k), terms, k, ("image_id",)) for k in one if k != "id")
    }  # fmt: skip
    annotations = found.get("annotations") or []
    n = 0
    out = dict(found)
    out["images"] = [one for one in found["images"] if one.get("id") not in bad]
    n += len(found["images"]) - len(out["images"])
    if isinstance(annotations, list):
        kept = [
            one for one in annotations
            if not isinstance(one, dict) or (
                one.get("image_id") not in bad
                and not any(_is_theirs(v, terms, k, ("image_id",)) for k, v in one.items()
                            if k not in ("id", "image_id", "category_id"))
            )
        ]  # fmt: skip
        n += len(annotations) - len(kept)
        if "annotations" in found:
            out["annotations"] = kept
    counter = [0]
    for key, value in found.items():
        if key not in ("images", "annotations"):
            left = _walked(value, terms, key, counter)
            out[key] = None if left is _GONE else left
    return out, n + counter[0]


def _is_picture(name: str, terms: Terms) -> bool:
    return bool(name) and any(
        terms.is_id(one, ("file", "image", "task"), strict=False)
        for one in (name, *short_names(name))
    )
