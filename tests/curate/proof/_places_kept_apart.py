"""Hiding places that were written after the search, to try it: no reader was designed for them."""

from __future__ import annotations

import gzip
import io
import json
import plistlib
import shelve
import socket
import sqlite3
import struct
import subprocess
import tarfile
import textwrap
import unicodedata
import wave
import zipfile
import zlib
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from PIL import Image
from scipy.io import netcdf_file, savemat

from tests.curate.proof._writers import (
    ID,
    JPEG,
    NAME,
    NUMBER,
    PIXELS,
    TEXT,
    database,
    mail,
    parquet,
    picture,
    to_bytes,
    zipped,
)

_B64 = b64encode(JPEG).decode()
_NORMAL = ((PIXELS / 255 - 0.485) / 0.229).round(4)


def opened(*, of_them=True):
    return Image.open(io.BytesIO(picture("PNG", of_them=of_them)))


def saved(form, image=None, **settings):
    return to_bytes(lambda out: (image or opened()).save(out, form, **settings))


def stream_of_arrow(table):
    def write(out):
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)

    return to_bytes(write)


def wide_database(folder):
    connection = sqlite3.connect(folder / "x.db")
    connection.executescript("PRAGMA encoding='UTF-16'; CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (?)", [ID])
    connection.commit()
    connection.close()


def log_of_database(folder):
    connection = sqlite3.connect(folder / "x.db")
    connection.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (?)", [ID])
    connection.commit()
    (folder / "copy.db-wal").write_bytes((folder / "x.db-wal").read_bytes())
    connection.close()
    (folder / "x.db").unlink()


def keyed_store(folder):
    with shelve.open(str(folder / "store")) as store:  # noqa: S301 (written, not read)
        store[ID] = [1, 2]


def bundle(folder):
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c")
    (folder / "x.txt").write_bytes(TEXT)
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-qm", "x"),
        ("bundle", "create", "-q", "../b.bundle", "HEAD"),
    ):
        subprocess.run([*git, *words], check=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder.parent / "b.bundle").rename(folder / "b.bundle")


def loop(folder):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")


def listening(folder):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))


def tar_with(**fields):
    def write(out):
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            info = tarfile.TarInfo("a.txt")
            for name, value in fields.items():
                setattr(info, name, value)
            archive.addfile(info, io.BytesIO(b""))

    return to_bytes(write)


def sound():
    def write(out):
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(bytes(200))

    return to_bytes(write)


def folded(text, indent=" "):
    return ("\n" + indent).join(textwrap.wrap(text, 60))


def classic_array(**named):
    return to_bytes(lambda out: savemat(out, named, do_compression=True))


def climate_file(folder):
    with netcdf_file(folder / "a.nc", "w") as file:
        file.createDimension("n", PIXELS.size)
        file.createVariable("images", "b", ("n",))[:] = PIXELS.ravel().astype(np.int8)


_REPR = np.array2string(PIXELS, threshold=10**6)

TEXTS = {
    "utf-16 bold.html": f"<p>{ID[:3]}<b>{ID[3:]}</b></p>".encode("utf-16"),
    "utf-16 escapes.json": json.dumps({"a": NAME}).encode("utf-16"),
    "utf-16 cells.csv": f"a\tb\n1\t{ID}\n".encode("utf-16"),
    "dash.docx": zipped(f"<w:t>{ID.replace('-', chr(8211))}</w:t>", "word/document.xml"),
    "escapes.parquet": parquet({"a": [json.dumps({"who": NAME}), "b"]}, compression="gzip"),
    "escapes in lines.jsonl.gz": gzip.compress(
        json.dumps({"a": f"\x1b[1m{ID[:2]}\x1b[0m{ID[2:]}"}).encode()
    ),
    "wide.db": wide_database,
    "log.db": log_of_database,
    "store": keyed_store,
    "history.bundle": bundle,
    "loop": loop,
    "socket": listening,
    "owner.tar": tar_with(uname=ID),
    "linked.tar": tar_with(type=tarfile.SYMTYPE, linkname=f"../{ID}"),
    "header.tar": tar_with(pax_headers={"comment": NAME}),
    "decomposed.zip": zipped(name=f"{unicodedata.normalize('NFD', NAME)}.txt"),
    "stream.arrows": stream_of_arrow(pa.table({"a": [ID]})),
    "cells.mat": classic_array(a=np.array([ID], object)),
    "list.plist": plistlib.dumps({"a": TEXT}),
    "word.eml": b"Subject: =?utf-8?Q?Zo=C3=AB_=C3=91and=C3=BA?=\n\nnothing\n",
    "file name.eml": b"Content-Type: image/jpeg; name*=utf-8''Zo%C3%AB%20%C3%91and%C3%BA.jpg\n\n",
    "markdown.md": f"*{ID.replace('-', chr(92) + '-')}*\n".encode(),
    "soft.html": f"{ID[:4]}&shy;{ID[4:]}".encode(),
    "break.html": f"{ID[:4]}<wbr>{ID[4:]}<p>".encode(),
    "comment.html": f"<p>{ID[:4]}<!-- x -->{ID[4:]}</p>".encode(),
    "cdata.xml": f"<a><![CDATA[{ID}]]></a>".encode(),
    "token.txt": b"a." + urlsafe_b64encode(json.dumps({"sub": ID}).encode()).rstrip(b"=") + b".c",
    "deep.json": json.dumps(json.dumps(json.dumps({"a": NAME}))).encode(),
    "joblib.dat": zlib.compress(b"\x80\x04\x95" + ID.encode()[::-1] + bytes(40)),
    "compose.yaml": f"a: >-\n  of {ID[:2]}\n  {ID[2:]}\n".encode(),
    "numbers.r": b"A\n3\n262401\n" + ID.encode() + b"\n",
    "table.tex": f"{ID.replace('-', '{-}')} & 1 \\\\".encode(),
    "cyrillic.txt": "Иван Zoë".encode("cp1251", "replace"),
    "stamp.bin": b"\0\1" + ID.encode("utf-16-be"),
    "style.css": ("a{content:'" + "".join(f"\\00{ord(c):04x}" for c in ID) + "'}").encode(),
    "octal.c": "".join(f"\\{ord(c):03o}" for c in ID).encode(),
    "long.py": "".join(f"\\U{ord(c):08x}" for c in ID).encode(),
    "braces.rs": "".join(f"\\u{{{ord(c):x}}}" for c in ID).encode(),
    "inline.xlsx": zipped("<is><r><t>s-0</t></r><r><t>417x</t></r></is>", "xl/worksheets/a.xml"),
    "swap.swp": b"b0VIM 8.2" + bytes(90),
}

NUMBERS = {
    "stream.arrows": stream_of_arrow(pa.table({"who": [int(NUMBER)]})),
    "cells.mat": classic_array(a=np.array([int(NUMBER)])),
    "dates.parquet": parquet({"a": [{"b": int(NUMBER)}]}),
    "decimals.parquet": parquet(
        pa.table({"a": pa.array([int(NUMBER)]).cast(pa.decimal128(20, 0))})
    ),
    "map.parquet": parquet(
        pa.table({"a": pa.array([[("k", int(NUMBER))]], pa.map_(pa.string(), pa.int64()))})
    ),
    "timed.npy": to_bytes(lambda out: np.save(out, np.array([int(NUMBER)], "m8[s]"))),
    "complex.npy": to_bytes(lambda out: np.save(out, np.array([int(NUMBER)], complex))),
    "unsigned.npz": to_bytes(lambda out: np.savez(out, a=np.array([int(NUMBER)], np.uint16))),
    "wide.csv": f"a\n{NUMBER}\n".encode("utf-16"),
    "frame.json": pd.DataFrame({"a": [1.0, float(NUMBER)]}).to_json().encode(),
    "frame.html": pd.DataFrame({"a": [int(NUMBER)]}).to_html().encode(),
    "bits.feather": to_bytes(
        lambda out: pl.DataFrame({"a": [int(NUMBER)]}).write_ipc(out, compression="lz4")
    ),
    "binary.bin": struct.pack("<i", int(NUMBER)) * 9,
}

PICTURES = {
    "base64.parquet": parquet({"a": [_B64]}, compression="zstd"),
    "base64.jsonl.gz": gzip.compress(json.dumps({"a": _B64}).encode()),
    "style.css": f"a{{background:url(data:image/jpeg;base64,{quote(_B64, safe='')})}}".encode(),
    "card.vcf": f"BEGIN:VCARD\nPHOTO;ENCODING=b;TYPE=JPEG:{folded(_B64)}\nEND:VCARD\n".encode(),
    "people.ldif": f"dn: a\njpegPhoto:: {folded(_B64)}\n".encode(),
    "photo.yaml": f"a: !!binary |\n  {folded(_B64, '  ')}\n".encode(),
    "pixels.yaml": ("a:\n" + "".join(f"- {v}\n" for v in PIXELS.ravel())).encode(),
    "notebook.ipynb": json.dumps(
        {
            "cells": [
                {"outputs": [{"data": {"image/png": b64encode(picture("PNG")).decode() + "\n"}}]}
            ]
        }
    ).encode(),
    "wrapped.json": json.dumps({"a": "\n".join(textwrap.wrap(_B64, 76))}).encode(),
    "list.plist": plistlib.dumps({"a": JPEG}),
    "sheet.xlsx": zipped(JPEG, "xl/media/image1.jpeg"),
    "book.epub": zipped(picture("WEBP"), "a.webp"),
    "page.mhtml": mail(attachment=JPEG),
    "icon.ico": saved("ICO", sizes=[(64, 64)]),
    "texture.dds": saved("DDS"),
    "scan.pcx": saved("PCX"),
    "scan.sgi": saved("SGI"),
    "photo.icns": saved("ICNS"),
    "frames.png": saved("PNG", opened(of_them=False), save_all=True, append_images=[opened()]),
    "frames.webp": saved("WEBP", opened(of_them=False), save_all=True, append_images=[opened()]),
    "two.mpo": saved("MPO", opened(of_them=False), save_all=True, append_images=[opened()]),
    "printed.jpg": saved("JPEG", opened().convert("CMYK")),
    "palette.png": saved("PNG", opened().convert("P")),
    "clear.png": saved("PNG", Image.merge("RGBA", [*opened().split(), Image.new("L", (96, 96))])),
    "real.tif": saved(
        "TIFF", Image.fromarray(np.asarray(opened().convert("L")).astype(np.float32) / 255)
    ),
    "array.c": ("char a[] = {" + ", ".join(f"0x{byte:02x}" for byte in JPEG) + "};").encode(),
    "buffer.json": json.dumps({"type": "Buffer", "data": [*JPEG]}).encode(),
    "matrix.m": (
        "a = [" + "; ".join(" ".join(map(str, row)) for row in PIXELS[..., 0]) + "];"
    ).encode(),
    "printed.txt": _REPR.encode(),
    "cell.csv": pd.DataFrame({"pixels": [_REPR], "n": [1]}).to_csv().encode(),
    "normal.json": json.dumps(_NORMAL.tolist()).encode(),
    "channels.json": json.dumps(_NORMAL.transpose(2, 0, 1).tolist()).encode(),
    "vectors.json": json.dumps(np.random.default_rng(1).normal(size=(3, 128)).tolist()).encode(),
    "vectors.csv": to_bytes(
        lambda out: np.savetxt(out, np.random.default_rng(1).normal(size=(30, 128)), delimiter=",")
    ),
    "raw.bin": PIXELS.tobytes(),
    "bright.raw": (PIXELS // 4 + 130).astype(np.uint8).tobytes(),
    "bright.ppm2": b"P6\n32 32\n255\n" + (PIXELS // 4 + 130).astype(np.uint8).tobytes(),
    "images.mat": classic_array(images=PIXELS),
    "climate": climate_file,
    "sound.wav": sound(),
    "cover.flac": b"fLaC" + bytes(30) + JPEG,
    "stream.arrows": stream_of_arrow(pa.table({"a": [PIXELS.tobytes()]})),
    "packed cell.parquet": parquet({"a": [zlib.compress(PIXELS.tobytes())]}),
    "embedded.db": database(
        ("CREATE TABLE t (id INTEGER, a)", [()]),
        ("INSERT INTO t VALUES (?, ?)", [(1, np.ones(128, np.float32).tobytes())]),
    ),
    "behind.zip": zipped(b"nothing") + JPEG,
    "before.zip": JPEG + zipped(b"nothing"),
    "tail.gz": gzip.compress(b"nothing") + JPEG,
    "comment.zip": zipped(b"nothing")[:-2] + len(JPEG).to_bytes(2, "little") + JPEG,
    "float columns.parquet": parquet(
        {f"p{k}": [float(v)] for k, v in enumerate(PIXELS[0].ravel())}
    ),
    "columns.feather": to_bytes(
        lambda out: pd.DataFrame(PIXELS.reshape(1, -1)).rename(columns=str).to_feather(out)
    ),
    "lines of hex.txt": folded(JPEG.hex(), "").encode(),
    "dump.txt": b"".join(
        b"%08x: " % k + JPEG[k : k + 16].hex(" ", 2).encode() + b"  ....\n"
        for k in range(0, len(JPEG), 16)
    ),
    "vectors.jsonl": b'{"x": ['
    + b", ".join([b"0.25"] * 128)
    + b"]}\n"
    + b'{"x": ['
    + b"-1.5, " * 127
    + b"2]}\n",
    "sparse.txt": b"1 "
    + b" ".join(b"%d:%d" % (k, v) for k, v in enumerate(PIXELS.ravel()))
    + b"\n",
    "scan.obj": b"v 0.1 0.2 0.3\n" * 500,
    "stored.zip": zipped(
        zipped(JPEG, compression=zipfile.ZIP_STORED), "b.zip", compression=zipfile.ZIP_STORED
    ),
}
