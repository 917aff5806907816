"""What came of a file that was looked through."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Rewritten", "decoded"]

_CODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file's new content.

    Parameters
    ----------
    data : bytes or None
        None: all of it is theirs, and it goes.
    n : int
        Rows, entries or parts that went; 0: the file stays as it is.
    why : str
        Why it could not be looked through, where it could not.
    """

    data: bytes | None
    n: int
    why: str = ""


def decoded(data: bytes) -> tuple[str | None, str]:
    """Read text, and tell its coding; None: it is none that is known.

    Examples
    --------
    >>> decoded(b"a"), decoded("a".encode("utf-16"))[0]
    (('a', 'utf-8'), 'a')
    """
    coding = next((name for mark, name in _CODINGS if data.startswith(mark)), "utf-8")
    for one in (coding, "latin-1") if b"\0" not in data else (coding,):
        try:
            return data.decode(one), one
        except UnicodeDecodeError:
            continue
    return None, coding
