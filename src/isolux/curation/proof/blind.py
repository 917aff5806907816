"""Files into which no search can look: such a file is never counted as clean."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np

__all__ = ["Blind", "why_blind"]


class Blind(Exception):  # noqa: N818  (it says what the search is)
    """A file that cannot be looked into, and why."""


_PACKED = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!": "a RAR archive", b"\x28\xb5\x2f\xfd":
    "packed by zstandard", b"\x04\x22\x4d\x18": "packed by LZ4", b"\x1f\x9d": "packed by compress",
    b"\xd0\xcf\x11\xe0": "an old or an encrypted office document", b"\x89HDF": "HDF5, whose chunks"
    " may be packed", b"-----BEGIN PGP": "encrypted", b"age-encryption": "encrypted",
    b"Salted__": "encrypted", b"ORC": "an ORC table", b"Obj\x01": "an Avro table",
    b"LZIP": "packed by lzip", b"\x00\x00\x00\x0cJXL": "a picture that cannot be opened here",
}  # fmt: skip
_FILMS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".wav", ".mp3", ".m4a", ".ogg")
_PICTURES = (".heic", ".heif", ".avif", ".jxl", ".cr2", ".nef", ".arw", ".dng", ".raw")
WEIGHTS = (".safetensors", ".onnx", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".tflite", ".bin")
_LEAST = 2048  # bytes: fewer have no entropy to speak of
_NOISE = 7.8  # bits a byte; packed and encrypted data have 7.9 and more


def why_blind(name: str, data: bytes, *, opened: bool) -> str:
    r"""Say why a file cannot be looked into; empty: it can.

    Parameters
    ----------
    name : str
    data : bytes
    opened : bool
        Whether it was unpacked, read as a table or seen as a picture.

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
    if not opened and suffix not in WEIGHTS and len(data) >= _LEAST and _bits(data) > _NOISE:
        return "bytes without a pattern: packed in an unknown way, or encrypted"
    return ""


def _bits(data: bytes) -> float:
    """Measure the entropy of bytes, in bits a byte, with Miller's and Madow's correction."""
    part = np.frombuffer(data[: 1 << 20], np.uint8)
    counts = np.bincount(part, minlength=256)
    share = counts[counts > 0] / len(part)
    return float(-(share * np.log2(share)).sum() + (len(share) - 1) / (2 * len(part) * np.log(2)))
