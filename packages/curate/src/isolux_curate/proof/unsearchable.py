"""Files that cannot be searched, and why: an unsearchable file is never counted as clean.

Searchable are only text, and formats that can be unpacked: all others are unsearchable, and so are
texts that hold something else than text (packed bytes, lists of pixels, a pickle).
"""

from __future__ import annotations

import json
import pickletools
import re
import unicodedata
from pathlib import PurePosixPath

from isolux_curate.id_columns import parse_id_column_or_none

_UNREADABLE_FORMATS = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "packed by zstandard",
    b"\x04\x22\x4d\x18": "packed by LZ4",
    b"\x1f\x9d": "packed by compress",
    b"\xd0\xcf\x11\xe0": "an old or an encrypted office document",
    b"\x89HDF": "HDF5, whose chunks may be packed",
    b"-----BEGIN PGP": "encrypted",
    b"-----BEGIN AGE": "encrypted",
    b"-----BEGIN CMS": "encrypted",
    b"-----BEGIN PKCS7": "encrypted",
    b"$ANSIBLE_VAULT": "encrypted",
    b"age-encryption": "encrypted",
    b"Salted__": "encrypted",
    b"ORC": "an ORC table",
    b"Obj\x01": "an Avro table",
    b"LZIP": "packed by lzip",
    b"\x00\x00\x00\x0cJXL": "a picture that cannot be opened here",
    b"/* XPM */": "a picture that cannot be opened here",
    b"PACK": "a pack of git's history",
    b"%!PS": "PostScript: its pictures are not compared",
    b"\xc5\xd0\xd3\xc6": "PostScript: its pictures are not compared",
    b"%PDF": "a PDF: its text may be coded, and its pictures are not compared",
    b"{\\rtf": "a document in RTF, whose text may be coded",
}
UNREADABLE_MAGIC = tuple(_UNREADABLE_FORMATS)
"""The first bytes of formats that no reader here opens."""
_MEDIA_SUFFIXES = (
    *(".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg"),
    *(".wav", ".mp3", ".m4a", ".ogg", ".flac"),
)
_IMAGE_SUFFIXES = (
    *(".heic", ".heif", ".avif", ".jxl", ".cr2", ".nef", ".arw", ".dng", ".raw"),
    *(".pbm", ".pgm", ".ppm", ".pnm", ".xbm", ".xpm"),
)
_PICKLE = "a pickle, which no one should open"
_UNREADABLE_SUFFIXES = {
    _MEDIA_SUFFIXES: "a film or a sound",
    _IMAGE_SUFFIXES: "a picture that cannot be opened here",
    (".obj", ".ply", ".stl", ".off", ".wrl"): "a shape: it is not compared",
    (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt"): _PICKLE,
}
WEIGHTS_SUFFIXES = (".safetensors", ".onnx", ".gguf", ".tflite")
_PIXEL_NAMES = ("images", "image", "pixels", "pixel_values", "photos", "faces", "crops")
_CONTROL_BYTES = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))
_MIN_ASCII_SHARE = 0.75
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NON_TEXT_CATEGORIES = ("Cc", "Cn", "Co", "Cs")
_WIDE_CODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def explain_unsearchable_or_empty(
    file_name: str, file_bytes: bytes, *, is_opened: bool, is_ascii_search: bool = True
) -> str:
    r"""Find why a file cannot be searched; empty if it can.

    Examples
    --------
    >>> explain_unsearchable_or_empty("a.7z", b"7z\xbc\xaf\x27\x1c", is_opened=False)
    'a 7z archive'
    """
    for magic_bytes, description in _UNREADABLE_FORMATS.items():
        if file_bytes.startswith(magic_bytes):
            return description
    suffix = PurePosixPath(file_name).suffix.lower()
    for suffixes, description in _UNREADABLE_SUFFIXES.items():
        if suffix in suffixes and not (is_opened and suffixes == _IMAGE_SUFFIXES):
            return description
    if is_searchable_text(file_bytes):
        return _explain_unread_text_or_empty(file_bytes, is_ascii_search=is_ascii_search)
    if suffix in WEIGHTS_SUFFIXES:
        return _explain_unread_weights_or_empty(suffix, file_bytes)
    return "" if is_opened else "no text, and of a format that isolux cannot read"


def _explain_unread_weights_or_empty(suffix: str, file_bytes: bytes) -> str:
    """Find why a file of weights may be a cache of pictures: by the names and forms in its head."""
    if suffix != ".safetensors":
        return ""
    n_bytes = int.from_bytes(file_bytes[:8], "little")
    try:
        tensors = json.loads(file_bytes[8 : 8 + n_bytes])
        may_be_pixels = any(
            name.rpartition(".")[2] in _PIXEL_NAMES
            or (tensor["dtype"] == "U8" and len(tensor["shape"]) > 2)
            for name, tensor in tensors.items()
            if name != "__metadata__"
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "no safetensors file, though it is called one"
    return "numbers that may be pixels" if may_be_pixels else ""


_ENCODED_TEXT = {
    "text that uuencode, yEnc or ASCII85 coded": re.compile(
        rb"^begin [0-7]{3,4} \S|^=ybegin |<~[!-uz\s]{16,}~>", re.MULTILINE
    ),
    "a dump of bytes": re.compile(
        rb"^[0-9a-f]{7,8}:? {1,2}(?:(?:[0-9a-f]{4} ?){8}|(?:[0-9a-f]{2} {1,2}){16})", re.MULTILINE
    ),
    "a patch with bytes in base85": re.compile(rb"^GIT binary patch", re.MULTILINE),
    "bytes written as escapes": re.compile(
        rb"\\xff\\xd8\\xff|\\x89PNG|(?:\\x[0-9a-f]{2}[^\\\n]{0,8}){256}"
    ),
    "text in base32": re.compile(rb"\b(?=[A-Z]*[2-7])(?=[2-7]*[A-Z])[A-Z2-7]{64,}=*(?![\w/+])"),
}
_PIXEL = rb"(?:\d{1,5}:)?(?:0x[0-9a-fA-F]{1,2}|25[0-5]|2[0-4]\d|1?\d?\d|[01]\.\d*(?:[eE][+-]?\d+)?)"
_NUMBER = rb"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_BETWEEN_PIXELS = rb"(?:[ \t;]++|,\s*+|\s*+[\[\]{}()]\s*+|[ \t]*+\r?\n[ \t]*+- )++"
_LONG_LIST = re.compile(  # of a key that several records have
    rb"\"([^\"\\]{1,40})\"\s*:\s*\[\s*+(?:" + _NUMBER + rb"\s*+,\s*+){63}"
)
_ROW = rb"\[\s*+(?:" + _NUMBER + rb"\s*+[,\s]\s*+){23,}+" + _NUMBER + rb"\s*+\]"
_TRIPLE = rb"\[\s*+(?:" + _NUMBER + rb"\s*+[,\s]\s*+){2}" + _NUMBER + rb"\s*+\]"
_BETWEEN_ROWS = rb"[,\s]*+"
_PIXELS_OR_VECTORS = (
    re.compile(rb"(?<![\w.])(?:" + _PIXEL + _BETWEEN_PIXELS + rb"){575}"),
    re.compile(_ROW + _BETWEEN_ROWS + _ROW),
    re.compile(rb"(?:" + _TRIPLE + rb"(?:[,\s\]]|\[(?=\s*\[))*+){192}"),
    re.compile(
        rb"(?m)(?:^[ \t]*+(?:" + _NUMBER + rb"[ \t,;]++){31,}+(?:" + _NUMBER + rb")?\s*?\n){24}"
    ),
)
"""Lists of what could be pixels, lists of lists, of colours or points, and lines of a matrix: as
large as the smallest picture in which anyone could be recognised, of 24 by 24 pixels."""
_KEY = re.compile(rb"\"([^\"\\]{1,40})\"\s*:")


def _explain_unread_text_or_empty(file_bytes: bytes, *, is_ascii_search: bool) -> str:
    """Find why names in a text would not be seen; empty if they would."""
    if _is_pickle_of_protocol_0(file_bytes):
        return _PICKLE
    for description, pattern in _ENCODED_TEXT.items():
        if pattern.search(file_bytes):
            return description
    if not is_ascii_search and b"\0" not in file_bytes:
        try:
            file_bytes.decode()
        except UnicodeDecodeError:
            return "text of an unknown coding, in which letters with accents may be written anyhow"
    keys = _LONG_LIST.findall(file_bytes)
    has_numbers = len(set(keys)) < len(keys) or any(
        pattern.search(file_bytes) for pattern in _PIXELS_OR_VECTORS
    )
    is_unread = has_numbers and not _has_ids(file_bytes)
    return "numbers (pixels, vectors), and beside them no ids" if is_unread else ""


def _is_pickle_of_protocol_0(file_bytes: bytes) -> bool:
    """Check whether a text is a pickle, by reading its operations; nothing is executed."""
    if not file_bytes.rstrip().endswith(b"."):
        return False
    try:
        return sum(1 for _ in pickletools.genops(file_bytes)) > 1
    except Exception:  # noqa: BLE001  (pickletools raises many types where a text is no pickle)
        return False


def _has_ids(file_bytes: bytes) -> bool:
    """Check whether a JSON document or a table with a header has ids beside its numbers."""
    header = re.split(rb"[,;\t|]", file_bytes.partition(b"\n")[0])
    names = {name.decode("utf-8", "replace") for name in (*_KEY.findall(file_bytes), *header)}
    parsed_names = (parse_id_column_or_none(name.strip('" \r')) for name in names)
    return any(parsed is not None and parsed[1] for parsed in parsed_names)


def is_searchable_text(file_bytes: bytes) -> bool:
    r"""Check whether bytes are text in a coding in which names are searched.

    Examples
    --------
    >>> [is_searchable_text(b) for b in (b"a\n", "a\n".encode("utf-16"), b"a\0\x01")]
    [True, True, False]
    """
    if len(file_bytes.translate(None, _CONTROL_BYTES)) < len(file_bytes):
        return decode_wide_text_or_none(file_bytes) is not None
    try:
        file_bytes.decode()
    except UnicodeDecodeError:  # of other codings only those of mostly Latin letters are known
        n_ascii = len(file_bytes) - len(file_bytes.translate(None, bytes(range(128))))
        return n_ascii >= _MIN_ASCII_SHARE * len(file_bytes)
    return True


def decode_wide_text_or_none(file_bytes: bytes) -> str | None:
    """Decode text of two or four bytes a letter; None if it is none."""
    for coding in _WIDE_CODINGS:
        try:
            text = file_bytes.decode(coding)
        except UnicodeDecodeError:
            continue
        is_plain = 2 * sum(map(str.isascii, text)) >= len(text) or file_bytes.startswith(
            _BYTE_ORDER_MARKS
        )
        signs = set(text) - set("\t\n\f\r")
        if is_plain and all(
            unicodedata.category(sign) not in _NON_TEXT_CATEGORIES for sign in signs
        ):
            return text
    return None
