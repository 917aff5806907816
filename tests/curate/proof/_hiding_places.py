"""Where a person may hide: one file for each way, written without any of isolux's readers.

``TEXTS`` and ``NUMBERS`` hide the id, ``PICTURES`` the photo. Each is bytes, or a function of the
folder, which writes what is no single file.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import plistlib
import subprocess
import tarfile
import textwrap
import unicodedata
import zipfile
import zlib
from base64 import a85encode, b32encode, b64encode, b85encode
from binascii import b2a_uu

import numpy as np
import pandas as pd
import pyarrow as pa
from PIL import Image, PngImagePlugin

from tests.curate.proof._writers import (
    GREY,
    ID,
    JPEG,
    NAME,
    NUMBER,
    PIXELS,
    TEXT,
    array,
    arrays,
    database,
    feather,
    hdf5,
    mail,
    parquet,
    picture,
    tarred,
    to_bytes,
    zipped,
)


def zip_with_removed_part():
    """Cut a part out of the directory; its packed bytes stay."""

    def write(out):
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("theirs.txt", TEXT * 9)
            archive.writestr("a.txt", "nothing")
            archive.filelist.pop(0)

    return to_bytes(write)


def packed_history(folder):
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c")
    (folder / "x.txt").write_bytes(TEXT)
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("rm", "-q", "x.txt"),
                  ("commit", "-qm", "y"), ("gc", "-q", "--prune=now")):  # fmt: skip
        subprocess.run([*git, *words], check=True)


def loose_history(folder):
    git = ("git", "-C", str(folder))
    (folder / "x.txt").write_bytes(TEXT)
    for words in (("init", "-q"), ("add", "."), ("rm", "-qf", "x.txt")):
        subprocess.run([*git, *words], check=True)


def outside(folder, name="link.txt", data=TEXT):
    (folder.parent / "elsewhere").write_bytes(data)
    (folder / name).symlink_to(folder.parent / "elsewhere")


def folder_outside(folder):
    (folder.parent / "others").mkdir()
    (folder.parent / "others" / "a.txt").write_bytes(TEXT)
    (folder / "linked").symlink_to(folder.parent / "others", target_is_directory=True)


def page_of_pdf(stream, filters):
    return b"%PDF-1.4\n<< /Filter [ " + filters + b" ] >>\nstream\n" + stream + b"endstream\n%%EOF"


def escaped(text, form):
    return "".join(form.format(ord(letter)) for letter in text)


def hidden_in_categories():
    frame = pd.DataFrame({"who": pd.Categorical([ID, "b", "c"]), "n": [1, 2, 3]})
    return frame[frame["who"] != ID].reset_index(drop=True)


def png_with_text(packed):
    told = PngImagePlugin.PngInfo()
    told.add_text("of", ID, zip=packed)
    return to_bytes(lambda out: Image.open(io.BytesIO(GREY)).save(out, "PNG", pnginfo=told))


def with_exif_thumbnail():
    exif = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + picture(side=64)
    return GREY[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + GREY[2:]


_SHEET = "<sst><si><r><t>s-0</t></r><r><rPr><b/></rPr><t>417x</t></r></si></sst>"
_PAGE = f"<html><body><p>{ID[:3]}<b>{ID[3:]}</b></p></body></html>"
_UUENCODED = b"begin 644 a.txt\n" + b2a_uu(TEXT) + b"`\nend\n"

TEXTS = {
    # codings of text
    "utf-8.txt": TEXT,
    "utf-16.txt": TEXT.decode().encode("utf-16"),
    "utf-16-be.txt": TEXT.decode().encode("utf-16-be"),
    "utf-32.txt": TEXT.decode().encode("utf-32"),
    "latin-1.txt": NAME.encode("latin-1"),
    "decomposed.txt": unicodedata.normalize("NFD", NAME).encode(),
    "old mac.txt": NAME.encode("mac-roman"),
    "dos.txt": NAME.encode("cp437", "replace"),
    "no-break space.txt": NAME.replace(" ", "\u00a0").encode(),
    "two spaces.txt": NAME.replace(" ", "\n   ").encode(),
    "no-break hyphen.txt": ID.replace("-", "\u2011").encode(),
    "dash.txt": ID.replace("-", "\u2013").encode(),
    "soft hyphen.txt": f"{ID[:4]}\u00ad{ID[4:]}".encode(),
    "wrapped.txt": f"{ID[:2]}\n    {ID[2:]}".encode(),
    "zero width.txt": f"{ID[:4]}\u200b{ID[4:]}".encode(),
    "colours.log": f"{ID[:3]}\x1b[1m{ID[3:]}\x1b[0m".encode(),
    # escapes
    "every letter.url": escaped(ID, "%{:02X}").encode(),
    "twice.url": escaped(ID, "%25{:02x}").encode(),
    "entities.html": escaped(ID, "&#{};").encode(),
    "hex entities.xml": escaped(ID, "&#x{:x};").encode(),
    "letters.json": f'{{"a": "{escaped(ID, chr(92) + "u{:04x}")}"}}'.encode(),
    "letters.js": f'"{escaped(ID, chr(92) + "x{:02x}")}"'.encode(),
    "tex.tex": ID.replace("-", "\\-").encode(),
    "accents.tex": NAME.encode("ascii", "xmlcharrefreplace"),
    # formatting within the id
    "bold.html": _PAGE.encode(),
    "runs.docx": zipped(
        f"<w:r><w:t>{ID[:3]}</w:t></w:r><w:r><w:t>{ID[3:]}</w:t></w:r>", "word/document.xml"
    ),
    "runs.xlsx": zipped(_SHEET, "xl/sharedStrings.xml"),
    "spans.svg": f"<svg><text><tspan>{ID[:3]}</tspan><tspan>{ID[3:]}</tspan></text></svg>".encode(),
    "runs.pptx": zipped(
        f"<a:r><a:t>{ID[:3]}</a:t></a:r><a:r><a:t>{ID[3:]}</a:t></a:r>", "ppt/slides/slide1.xml"
    ),
    "spans.odt": zipped(f"<text:p>{ID[:3]}<text:span>{ID[3:]}</text:span></text:p>", "content.xml"),
    "groups.rtf": rf"{{\rtf1 {ID[:3]}{{\b {ID[3:]}}}}}".encode(),
    # encoded blocks
    "base64.txt": b64encode(TEXT),
    "base64 in lines.txt": textwrap.fill(b64encode(b"x" * 53 + TEXT).decode(), 76).encode(),
    "utf-16 in base64.ps1": b64encode((TEXT.decode() * 4).encode("utf-16-le")),
    "base32.txt": b32encode(TEXT * 9),
    "binary.patch": b"GIT binary patch\nliteral 9\n" + b85encode(zlib.compress(TEXT * 9)),
    "ascii85.txt": b"<~" + a85encode(TEXT * 9) + b"~>",
    "hex.sql": b"INSERT INTO t VALUES (X'" + (TEXT * 20).hex().encode() + b"');",
    "uuencoded.txt": _UUENCODED,
    "deflated.drawio": b"<diagram>"
    + b64encode(zlib.compress(TEXT * 30 + os.urandom(90))[2:-4])
    + b"</diagram>",
    "encrypted.asc": b"-----BEGIN AGE ENCRYPTED FILE-----\n"
    + b64encode(os.urandom(48))
    + b"\n-----END AGE ENCRYPTED FILE-----\n",
    "vault.yml": b"$ANSIBLE_VAULT;1.1;AES256\n" + os.urandom(40).hex().encode(),
    "salted.txt": b64encode(b"Salted__" + os.urandom(40)),
    # mail
    "subject.eml": mail(subject=NAME),
    "body.eml": mail(body="x" * 50 + f" of {ID} here"),
    "quoted.eml": f"Content-Transfer-Encoding: quoted-printable\n\n{ID[:3]}=\n{ID[3:]}\n".encode(),
    "box.mbox": b"From a@b.c Mon\n"
    + mail(body="nothing")
    + b"\n\nFrom a@b.c Tue\n"
    + mail(body=f"of {ID}"),
    # archives
    "zip.zip": zipped(),
    "bzip2.zip": zipped(compression=zipfile.ZIP_BZIP2),
    "name.zip": zipped(name=ID),
    "nested.zip": zipped(zipped(), "b.zip"),
    "removed.zip": zip_with_removed_part(),
    "two.zip": zipped() + zipped(b"nothing"),
    "tar.tar": tarred(),
    "old.tar": tarred(form=tarfile.USTAR_FORMAT)[:257] + b"\0" * 8 + tarred()[265:],
    "tar.tar.gz": gzip.compress(tarred()),
    "two.bz2": bz2.compress(b"nothing") + gzip.compress(TEXT),
    "two.xz": lzma.compress(b"nothing") + gzip.compress(TEXT),
    "two.zlib": zlib.compress(b"nothing") + zlib.compress(TEXT * 9),
    "two.tar": tarred(b"nothing") + tarred(gzip.compress(TEXT)),
    "old.lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
    "archive.7z": b"7z\xbc\xaf\x27\x1c..",
    "archive.rar": b"Rar!\x1a\x07..",
    "frame.zst": b"\x28\xb5\x2f\xfd...",
    # documents
    "flate.pdf": page_of_pdf(zlib.compress(TEXT), b"/FlateDecode"),
    "reportlab.pdf": page_of_pdf(
        a85encode(zlib.compress(TEXT)) + b"~>", b"/ASCII85Decode /FlateDecode"
    ),
    "drawing.ps": b"%!PS-Adobe-3.0\n(s-0) show (417x) show\n",
    "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    # tables
    "packed.parquet": parquet({"note": [f"of {ID}", "b"]}, compression="zstd"),
    "categories.feather": feather(hidden_in_categories()),
    "categories.parquet": parquet(pa.Table.from_pandas(hidden_in_categories()), compression="zstd"),
    "nested.parquet": parquet({"a": [[{"b": ID}], [{"b": "c"}]]}, compression="zstd"),
    "pickles.parquet": parquet({"a": [pickle.dumps({"who": ID}), b""]}, compression="zstd"),
    "array.npy": array(np.array(["a", ID])),
    "arrays.npz": arrays(names=np.array(["a", ID])),
    "objects.npz": arrays(names=np.array([ID, 1], dtype=object)),
    "groups.h5": hdf5(lambda file: file.create_dataset(ID, data=[1])),
    "packed.h5": hdf5(
        lambda file: file.create_dataset("a", data=np.array([ID] * 99, "S9"), compression="gzip")
    ),
    "row.db": database(("CREATE TABLE t (a)", [()]), ("INSERT INTO t VALUES (?)", [(ID,)])),
    "deleted.db": database(
        ("CREATE TABLE t (a)", [()]), ("INSERT INTO t VALUES (?)", [(ID,)]), ("DELETE FROM t", [()])
    ),
    "packed cell.db": database(
        ("CREATE TABLE t (a)", [()]), ("INSERT INTO t VALUES (?)", [(zlib.compress(TEXT * 9),)])
    ),
    "table.avro": b"Obj\x01\x04..",
    "table.orc": b"ORC..",
    "property.plist": plistlib.dumps({"who": ID}, fmt=plistlib.FMT_BINARY),
    # pickles
    "list.pkl": pickle.dumps([ID], 0),
    "list.cache": pickle.dumps([ID], 0),
    "dict.cache": pickle.dumps({"a": {"b": ID}}, 0),
    "text.cache": pickle.dumps(ID, 0),
    "array.cache": pickle.dumps(np.array([ID]), 0),
    "new.cache": pickle.dumps({ID: 1}, 5),
    # pictures that say the id
    "text.png": png_with_text(packed=False),
    "packed text.png": png_with_text(packed=True),
    "comment.jpg": picture(of_them=False, comment=ID.encode()),
    "comment.gif": picture("GIF", of_them=False, comment=ID.encode()),
    "tag.tif": picture("TIFF", of_them=False, description=ID),
    "behind.jpg": GREY + zipped(),
    "padded.jpg": GREY + zipped() + b" " * 70_000,
    "cut.jpg": GREY + gzip.compress(TEXT * 9)[:-9],
    "behind.7z.jpg": GREY + b"7z\xbc\xaf\x27\x1c",
    "small.blob": b"\0\1\2\3",
    "published.zip": zipped('{"format": "isolux curated dataset"}', "dataset.json"),
    "behind.png": picture("PNG", of_them=False) + gzip.compress(TEXT),
    # names, links, history
    f"{ID}.txt": b"nothing",
    f"{escaped(ID, '%{:02x}')}.txt": b"nothing",
    "empty folder": lambda folder: (folder / ID).mkdir(),
    "decomposed name": lambda folder: (
        folder / f"{unicodedata.normalize('NFD', NAME)}.txt"
    ).write_text("nothing"),
    "link": outside,
    "folder link": folder_outside,
    "pipe": lambda folder: os.mkfifo(folder / "pipe"),
    "packed history": packed_history,
    "loose history": loose_history,
}

NUMBERS = {
    "cell.csv": f"a,b\n1,{NUMBER}\n".encode(),
    "float.csv": f"a\n{NUMBER}.0\n".encode(),
    "savetxt.txt": to_bytes(lambda out: np.savetxt(out, np.array([[1, int(NUMBER)]]))),
    "list.json": json.dumps([[1, int(NUMBER)]]).encode(),
    "list.cache": pickle.dumps([int(NUMBER)], 0),
    "set.pkl": pickle.dumps({int(NUMBER)}, 5),
    "named.npz": arrays(who=np.array([1, int(NUMBER)])),
    "bare.npy": array(np.array([1, int(NUMBER)])),
    "floats.npz": arrays(who=np.array([np.nan, float(NUMBER)])),
    "records.npy": array(np.array([(int(NUMBER), 1)], dtype=[("a", int), ("b", int)])),
    "matrix.npz": arrays(pairs=np.array([[1, int(NUMBER)]] * 3), ids=np.array(["a", "b", "c"])),
    "unnamed.parquet": parquet({"0": [1, int(NUMBER)]}),
    "index.parquet": parquet({"__index_level_0__": [1, int(NUMBER)]}),
    "named.parquet": parquet({"who": [1, int(NUMBER)], "image_id": ["a", "b"]}),
    "floats.parquet": parquet({"who": [None, float(NUMBER)]}),
    "lists.parquet": parquet({"pairs": [[1], [2, int(NUMBER)]]}),
    "packed.feather": feather(pd.DataFrame({"who": [1, int(NUMBER)]})),
    "row.db": database(
        ("CREATE TABLE t (a)", [()]), ("INSERT INTO t VALUES (?)", [(int(NUMBER),)])
    ),
    "keys.h5": hdf5(lambda file: file.create_dataset("a", data=[int(NUMBER)])),
}

PICTURES = {
    "photo.jpg": JPEG,
    "smaller.png": picture("PNG", 40),
    "photo.webp": picture("WEBP"),
    "photo.avif": picture("AVIF"),
    "photo.jp2": picture("JPEG2000"),
    "photo.bmp": picture("BMP"),
    "photo.ppm": picture("PPM"),
    "photo.tga": picture("TGA"),
    "no suffix": picture("QOI"),
    "ascii.pgm": b"P2 32 32 255\n"
    + "\n".join(" ".join(map(str, row[:, 0])) for row in PIXELS).encode(),
    "film.gif": picture(
        "GIF",
        of_them=False,
        save_all=True,
        append_images=[Image.open(io.BytesIO(picture(of_them=True)))],
    ),
    "thumbnail.jpg": with_exif_thumbnail(),
    "behind.jpg": GREY + JPEG,
    "photo.zip": zipped(JPEG, "a.bin"),
    "word.docx": zipped(JPEG, "word/media/image1.jpeg"),
    "mail.eml": mail(attachment=JPEG),
    "page.html": b'<img src="data:image/jpeg;base64,' + b64encode(JPEG) + b'">',
    "escaped.svg": (
        '<image href="data:image/jpeg,' + "".join(f"%{byte:02x}" for byte in JPEG) + '"/>'
    ).encode(),
    "drawn.pdf": page_of_pdf(
        a85encode(zlib.compress(PIXELS.tobytes())) + b"~>", b"/ASCII85Decode /FlateDecode"
    ),
    "cache.npz": arrays(images=PIXELS[None], labels=np.arange(1)),
    "cache.npy": array(PIXELS[None]),
    "flat.npy": array(PIXELS.ravel()),
    "labels.npz": arrays(images=np.stack([PIXELS] * 3), labels=np.array(["a", "b", "a"])),
    "classes.npz": arrays(images=PIXELS[None], classes=np.array(["a", "b", "c"])),
    "encoded.npz": arrays(photo=np.frombuffer(JPEG, np.uint8)),
    "cells.parquet": parquet({"image": [{"bytes": JPEG, "path": "a"}]}),
    "pixels.parquet": parquet({"image": [PIXELS.tobytes()], "label": [1]}),
    "lists.parquet": parquet({"image": [PIXELS.ravel().tolist()]}),
    "nested.parquet": parquet({"image": [PIXELS.tolist()], "id": [1]}),
    "pixels.csv": b"emotion,pixels\n3,"
    + " ".join(map(str, PIXELS[..., 0].ravel())).encode()
    + b"\n",
    "columns.csv": b"label,"
    + ",".join(f"p{k}" for k in range(1024)).encode()
    + b"\n3,"
    + ",".join(map(str, PIXELS[..., 0].ravel())).encode()
    + b"\n",
    "pixels.json": json.dumps({"data": PIXELS.tolist()}).encode(),
    "pretty.json": json.dumps({"data": PIXELS.tolist()}, indent=1).encode(),
    "savetxt.txt": to_bytes(lambda out: np.savetxt(out, PIXELS[..., 0], fmt="%d")),
    "floats.json": json.dumps((PIXELS / 255).round(4).tolist()).encode(),
    "bytes.csv": f"photo\n{JPEG!r}\n".encode(),
    "hex.sql": b"INSERT INTO t VALUES ('\\x" + JPEG.hex().encode() + b"');",
    "raw base64.json": json.dumps({"pixels": b64encode(PIXELS.tobytes()).decode()}).encode(),
    "blob.db": database(("CREATE TABLE t (a)", [()]), ("INSERT INTO t VALUES (?)", [(JPEG,)])),
    "raw blob.db": database(
        ("CREATE TABLE t (id INTEGER, a)", [()]),
        ("INSERT INTO t VALUES (?, ?)", [(1, PIXELS.tobytes())]),
    ),
    "deleted blob.db": database(
        ("CREATE TABLE t (a)", [()]),
        ("INSERT INTO t VALUES (?)", [(JPEG * 3,)]),
        ("DELETE FROM t", [()]),
    ),
    "cache.h5": hdf5(lambda file: file.create_dataset("images", data=PIXELS[None])),
    "pixels.pkl": pickle.dumps(PIXELS, 0),
    "behind.tar": tarred(b"nothing") + JPEG,
    "records.tfrecord": (len(JPEG)).to_bytes(8, "little") + bytes(4) + JPEG + bytes(4),
    "film.mp4": b"\0\0\0 ftypisom",
    "photo.heic": b"\0\0\0 ftypheic",
    "photo.psd": b"8BPS\0\1" + bytes(90),
    "cache.safetensors": (
        n := json.dumps(
            {"images": {"dtype": "U8", "shape": [1, 32, 32, 3], "data_offsets": [0, 3072]}}
        ).encode()
    )
    and len(n).to_bytes(8, "little") + n + PIXELS.tobytes(),
    "outside.jpg": lambda folder: outside(folder, "link.jpg", JPEG),
}
