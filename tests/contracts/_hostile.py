"""What a file from elsewhere may hold, put into the made-up copy of any dataset or format.

``MUTATIONS`` damage one file of a sample; each takes the file, a source of chance and a folder
outside, into which nothing may look. A loader may refuse what comes out (one of our errors, which
names the file) or load it (tables as they should be); nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

TEXT = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".jsonlines", ".ndjson"}
DEEP = 10_000
LONG = 200_000
OWNED = "owned-by-a-file"
"""The name of a file that hostile data would write if any of it were run."""


def values(outside: Path) -> tuple[str, ...]:
    """Cells that nobody should have to expect."""
    return (
        "", " ", "\x00", "a\nb", "a\r\nb", 'a"b', "a,b;c\td", "x" * LONG, "\n" * 1000,
        "nan", "NaN", "inf", "-inf", "1e999", "-1", "-0", "0", "9" * 400, "1e-320", "2147483648",
        "9223372036854775808", "0x10", "1_000", "١٢٣", "½", "True", "null", "None",
        "../../secret.jpg", str(outside / "secret.jpg"), "/etc/passwd", "C:\\secret.jpg",
        "~/secret.jpg", "a/../../secret.jpg", "..\\secret.jpg", "//host/share", "http://x/y.jpg",
        "a\x00.jpg", "é" * 300, "李明.jpg", "\u202egpj.exe", "\ufeffid", "🙂" * 70,
        "a" * 5000 + ".jpg",
        "[" * DEEP, "{" * DEEP, '{"a":' * DEEP, "[" * DEEP + "]" * DEEP, "(" * 500,
        "['a'", "['a', 1]", "[1, 2, 30, 'x']", "[1e400, 2, 3, 4]", "[-5, -5, -1, -1]", "{}",
        '{"x": 1}', "{'x': NaN}", "<script>alert(1)</script>", "=cmd|' /C calc'!A0",
        f"__import__('pathlib').Path('{OWNED}').touch()",
        f"!!python/object/apply:os.mkdir [{OWNED}]",
    )  # fmt: skip


JSON_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), float("inf"), "", [], {}, [None], [[]],
    [1, 2, 3], ["a", 1], {"a": None}, "x" * LONG, "a\u0000b", "\ud800", [1e308] * 4,
    [-1, -1, -1, -1],
)  # fmt: skip


def files_of(path: Path) -> list[Path]:
    """List the files of a sample."""
    if path.is_file():
        return sorted(p for p in path.parent.iterdir() if p.is_file())
    return sorted(p for p in path.rglob("*") if p.is_file())


def _cut(file: Path, chance: random.Random, outside: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data) + 1)])


def _flip(file: Path, chance: random.Random, outside: Path) -> None:
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice((1, 1, 3, 20))):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(bytes(data))


def _put_in(file: Path, chance: random.Random, outside: Path) -> None:
    data = file.read_bytes()
    at = chance.randrange(len(data) + 1)
    odd = (b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"\r", b"\n\n", b"\xc3", b"\\", b"\x1a",
           "\u2028".encode(), b",,,", b"}", b"]", b"[" * DEEP, b'{"a":' * DEEP)  # fmt: skip
    file.write_bytes(data[:at] + chance.choice(odd) + data[at:])


def _whole(file: Path, chance: random.Random, outside: Path) -> None:
    odd = (b"", b" \n\t", b"\0" * 1000, b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP,
           b"null", b"[]", b"{}", b"0", b'"a"', b"\xff" * 64, b"PK\x03\x04" + b"\0" * 30,
           b"\x1f\x8b\x08\0", b"\n" * 5000, b"a" * LONG, b"id\n", b"PAR1", b"ARROW1\0\0",
           b"\x93NUMPY\x01\0", b"MATLAB 5.0 MAT-file" + b" " * 105 + b"\0\x01IM",
           "é,ü\n1,2\n".encode("utf-16"), "é,ü\n1,2\n".encode("latin-1"))  # fmt: skip
    file.write_bytes(chance.choice(odd))


def _no_file(file: Path, chance: random.Random, outside: Path) -> None:
    file.unlink()
    kind = chance.randrange(4)
    if kind == 0:
        file.mkdir()
    elif kind == 1:
        file.symlink_to(file)
    elif kind == 2:
        file.symlink_to(outside / "absent")
    else:
        os.mkfifo(file)  # whoever opens it waits for ever


def _rows(file: Path, chance: random.Random, outside: Path) -> None:
    """Repeat, drop or swap lines: ids that occur twice, ids without a partner."""
    lines = file.read_bytes().splitlines(keepends=True)
    if not lines:
        return
    i, j = (chance.randrange(len(lines)) for _ in range(2))
    kind = chance.randrange(4)
    if kind == 0:
        lines.insert(j, lines[i])
    elif kind == 1:
        del lines[i]
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines *= 2
    file.write_bytes(b"".join(lines))


def _cell(file: Path, chance: random.Random, outside: Path) -> None:
    """Put a hostile value into one cell, or one leaf of JSON, as a writer would quote it."""
    text = file.read_text(encoding="utf-8")
    value = chance.choice(values(outside))
    if file.suffix == ".json":
        tree = json.loads(text)
        places = list(_leaves(tree))
        if places:
            holder, key = chance.choice(places)
            holder[key] = chance.choice((*JSON_VALUES, value, value))
        file.write_text(json.dumps(tree), encoding="utf-8", errors="surrogatepass")
    elif file.suffix in {".csv", ".tsv"}:
        comma = "\t" if file.suffix == ".tsv" else ","
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=comma))
        row = chance.choice([row for row in rows if row])
        row[chance.randrange(len(row))] = value
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=comma, lineterminator="\n").writerows(rows)
        file.write_text(out.getvalue(), encoding="utf-8", newline="")
    else:
        words = text.split(" ")
        words[chance.randrange(len(words))] = value
        file.write_text(" ".join(words), encoding="utf-8", newline="")


def _leaves(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Walk through JSON: each place that holds a value, inner ones too."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        yield tree, key
        yield from _leaves(tree[key])


MUTATIONS: dict[str, Callable[[Path, random.Random, Path], None]] = {
    "cut off": _cut,
    "bytes changed": _flip,
    "bytes put in": _put_in,
    "another file": _whole,
    "no file": _no_file,
}
OF_TEXT: dict[str, Callable[[Path, random.Random, Path], None]] = {
    "rows repeated or gone": _rows,
    "a hostile cell": _cell,
}


def damage(path: Path, kind: str, seed: int, outside: Path) -> Path:
    """Damage one file of a sample; return which."""
    chance = random.Random(seed)  # noqa: S311 - a test's chance
    files = files_of(path)
    if kind in OF_TEXT:
        files = [file for file in files if file.suffix in TEXT and file.stat().st_size]
    file = chance.choice(files) if files else path
    if files:
        (MUTATIONS | OF_TEXT)[kind](file, chance, outside)
    return file


class Pickled:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path(OWNED),))


def objects(path: Path) -> None:
    """Save an array of objects, as ``numpy.save`` does it: with pickle inside."""
    np.save(path, np.array([[Pickled()]], dtype=object), allow_pickle=True)
