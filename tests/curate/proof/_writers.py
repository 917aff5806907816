"""Writers of files of many formats, each by the library that owns the format, or in a few lines."""

from __future__ import annotations

import email.message
import io
import sqlite3
import tarfile
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

ID, NAME, NUMBER = "s-0417x", "Zoë Ñandú", "20417"


def picture(form="JPEG", side=96, *, of_them=True, **settings):
    """Write their photo, or plain grey."""
    tiles = np.random.default_rng(7).integers(0, 256, 64).tolist()
    small = Image.frombytes("L", (8, 8), bytes(tiles if of_them else [90] * 64))
    large = small.resize((side, side), Image.Resampling.BICUBIC).convert("RGB")
    return to_bytes(lambda out: large.save(out, form, **settings))


def to_bytes(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


JPEG, GREY = picture(), picture(of_them=False)
PIXELS = np.asarray(Image.open(io.BytesIO(picture("PNG", 32))))
TEXT = f"of {ID} here\n".encode()


def zipped(data=TEXT, name="a.txt", **settings):
    with_defaults = {"compression": zipfile.ZIP_DEFLATED} | settings

    def write(out):
        with zipfile.ZipFile(out, "w", **with_defaults) as archive:
            archive.writestr(name, data)

    return to_bytes(write)


def tarred(data=TEXT, name="a.txt", form=tarfile.PAX_FORMAT):
    def write(out):
        with tarfile.open(fileobj=out, mode="w", format=form) as archive:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))

    return to_bytes(write)


def arrays(**named):
    return to_bytes(lambda out: np.savez_compressed(out, **named))


def array(values):
    return to_bytes(lambda out: np.save(out, values))


def parquet(columns, **settings):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    return to_bytes(lambda out: pq.write_table(table, out, **settings))


def feather(frame):
    return to_bytes(lambda out: frame.to_feather(out, compression="zstd"))


def database(*statements):
    def write(folder):
        connection = sqlite3.connect(folder / "x.db")
        connection.execute("PRAGMA secure_delete = OFF")
        for statement, rows in statements:
            connection.executemany(statement, rows)
            connection.commit()
        connection.close()

    return write


def mail(subject="hello", body="nothing", attachment=None, **headers):
    message = email.message.EmailMessage()
    message["Subject"] = subject
    for name, value in headers.items():
        message[name] = value
    message.set_content(body, cte="base64")
    if attachment:
        message.add_attachment(attachment, maintype="image", subtype="jpeg", filename="a.jpg")
    return message.as_bytes()


def hdf5(write):
    def write_file(out):
        with h5py.File(out, "w") as file:
            write(file)

    return to_bytes(write_file)
