"""What is wrong with text that stops to be JSON, and at which byte of its file."""

from __future__ import annotations

import re

import msgspec

from isolux.vocabulary.errors import FileError, TableError

__all__ = ["raise_damage"]


def raise_damage(text: bytes, where: str, *, byte: int, cause: Exception | None = None) -> None:
    """Raise the error that tells at which byte of the file this text stops to be JSON."""
    try:
        msgspec.json.decode(b"[" + text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    except RecursionError:
        problem = "nested too deep"
    else:
        problem = ""
    found = re.search(r"byte (\d+)", problem)
    if found is None and ("truncated" in problem or not problem):
        raise FileError(
            "the file is cut off: its JSON ends in the middle of a list",
            expected="a list that is closed: [ … ]",
            found=f"the end at byte {byte + len(text)}",
            where=where,
        ) from cause
    at = int(found[1]) - 1 if found else 0
    at -= text[at - 1 : at + 1] == b"-I"  # -Infinity
    near = text[max(at, 0) : at + 20].decode("utf-8", "replace")
    if re.match(r"-?(NaN|Infinity|I|N)", near):
        raise TableError(
            "a number is not finite, which JSON does not know",
            expected="finite numbers",
            found=f"{near!r} at byte {byte + at}",
            where=where,
            hint="leave such results out when the file is written",
        ) from cause
    raise FileError(
        "this is not valid JSON",
        expected="a list of objects: [{…}, …]",
        found=f"{problem.partition(' (byte')[0]}, at byte {byte + at}: {near!r}",
        where=where,
    ) from cause
