"""Files into which no search can look: such a file is never counted as clean.

What can be searched is listed, not what cannot: text, and what ``unpacking`` opens.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePosixPath

__all__ = ["Blind", "is_text", "why_blind"]


class Blind(Exception):  # noqa: N818  (it says what the search is)
    """A file that cannot be looked into, and why."""


_PACKED = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!": "a RAR archive", b"\x28\xb5\x2f\xfd":
    "packed by zstandard", b"\x04\x22\x4d\x18": "packed by LZ4", b"\x1f\x9d": "packed by compress",
    b"\xd0\xcf\x11\xe0": "an old or an encrypted office document", b"\x89HDF": "HDF5, whose chunks"
    " may be packed", b"-----BEGIN PGP": "encrypted", b"age-encryption": "encrypted",
    b"Salted__": "encrypted", b"ORC": "an ORC table", b"Obj\x01": "an Avro table",
    b"LZIP": "packed by lzip", b"\x00\x00\x00\x0cJXL": "a picture that cannot be opened here",
    b"PACK": "a pack of git's history", b"%!PS": "PostScript: its pictures are not compared",
    b"\xc5\xd0\xd3\xc6": "PostScript: its pictures are not compared",
}  # fmt: skip
_FILMS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".wav", ".mp3", ".m4a", ".ogg")
_PICTURES = (".heic", ".heif", ".avif", ".jxl", ".cr2", ".nef", ".arw", ".dng", ".raw")
_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt")
_PICKLE = re.compile(rb"[(\]}cVSILFN)](?:.{0,200}\n){1,3}?p[0-9]+\n")
"""Of protocol 0, which is text: a letter that says what it is stands before each name."""
WEIGHTS = (".safetensors", ".onnx", ".gguf", ".tflite")
_CONTROL = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NO_SIGN = ("Cc", "Cn", "Co", "Cs")
_WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def why_blind(name: str, data: bytes, *, opened: bool) -> str:
    r"""Say why a file cannot be looked into; empty: it can.

    Examples
    --------
    >>> why_blind("a.7z", b"7z\xbc\xaf\x27\x1c", opened=False)
    'a 7z archive'
    """
    for mark, what in _PACKED.items():
        if data.startswith(mark):
            return what
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in _FILMS:
        return "a film or a sound"
    if suffix in _PICTURES and not opened:
        return "a picture that cannot be opened here"
    if suffix in _PICKLES or (_PICKLE.match(data) and data.rstrip().endswith(b".")):
        return "a pickle, which no one should open"
    if not opened and suffix not in WEIGHTS and not is_text(data):
        return "no text, and of a format that isolux cannot read"
    return ""


def is_text(data: bytes) -> bool:
    r"""Tell whether bytes are text in a coding that names are searched for in.

    Examples
    --------
    >>> is_text(b"a\n"), is_text("a\n".encode("utf-16")), is_text(b"a\0\x01")
    (True, True, False)
    """
    if len(data.translate(None, _CONTROL)) == len(data):
        return True
    for coding in _WIDE:
        try:
            text = data.decode(coding)
        except UnicodeDecodeError:
            continue
        is_plain = 2 * sum(map(str.isascii, text)) >= len(text) or data.startswith(_MARKS)
        signs = set(text) - set("\t\n\f\r")
        if is_plain and all(unicodedata.category(one) not in _NO_SIGN for one in signs):
            return True
    return False
