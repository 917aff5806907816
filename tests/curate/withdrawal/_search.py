"""A search of its own, sharing no code with isolux: every byte, unpacked, every picture."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import re
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image


def grey(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("L").resize((8, 8), Image.Resampling.BOX), float)


def hits(root: Path, words: list[str], pixels: list[np.ndarray]) -> list[str]:
    """Name the places below a folder in which a word or a picture stands."""
    search = _Search(words, pixels)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        search.text(name, name)
        if path.is_file():
            search.look(name, path.read_bytes())
    return search.found


class _Search:
    def __init__(self, words: list[str], pixels: list[np.ndarray]) -> None:
        # Words end where letters, digits and "_" end: s0003 is not s00031.
        told = "|".join(rf"(?<![A-Za-z0-9_]){re.escape(w)}(?![A-Za-z0-9])" for w in words)
        self.told = re.compile(told)
        self.thumbs = [grey(Image.fromarray(one)) for one in pixels]
        self.found: list[str] = []

    def text(self, where: str, said: str) -> None:
        if hit := self.told.search(said):
            self.found.append(f"{where}: {hit[0]}")

    def look(self, where: str, data: bytes) -> None:
        self.text(where, data.decode("latin-1"))
        self.text(where, data.decode("utf-8", "replace"))
        for shift in (0, 1):
            self.text(where, data[shift:].decode("utf-16-le", "replace"))
        for mark, way in (
            (b"PAR1", self._parquet), (b"PK", self._zip), (b"\x93NUMPY", self._array),
            (b"\xff\xd8\xff", self._picture), (b"\x89PNG", self._picture),
        ):  # fmt: skip
            if data.startswith(mark):
                way(where, data)
        if data.startswith(b"\x1f\x8b"):
            self.look(f"{where}!gz", gzip.decompress(data))
        if data.startswith(b"BZh"):
            self.look(f"{where}!bz2", bz2.decompress(data))
        if data[257:262] == b"ustar":
            self._tar(where, data)
        self._packed(where, data)

    def _parquet(self, where: str, data: bytes) -> None:
        self.text(where, json.dumps(pl.read_parquet(io.BytesIO(data)).to_dicts(), default=str))

    def _zip(self, where: str, data: bytes) -> None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                self.text(where, name)
                self.look(f"{where}!{name}", archive.read(name))

    def _tar(self, where: str, data: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for one in archive.getmembers():
                self.text(where, one.name)
                if one.isfile():
                    self.look(f"{where}!{one.name}", archive.extractfile(one).read())

    def _array(self, where: str, data: bytes) -> None:
        array = np.load(io.BytesIO(data))
        if array.dtype.kind == "U":
            self.text(where, " ".join(map(str, array.ravel())))

    def _picture(self, where: str, data: bytes) -> None:
        mine = grey(Image.open(io.BytesIO(data)))
        if any(np.abs(mine - one).mean() < 12 for one in self.thumbs):
            self.found.append(f"{where}: a picture")

    def _packed(self, where: str, data: bytes) -> None:
        for packed in re.finditer(rb"[A-Za-z0-9+/]{80,}={0,2}", data):
            block = packed[0]
            try:
                inner = base64.b64decode(block[: len(block) - len(block) % 4])
            except ValueError:
                continue
            if inner.startswith((b"\x1f\x8b", b"PK", b"\xff\xd8\xff", b"\x89PNG")):
                self.look(f"{where}!base64", inner)
