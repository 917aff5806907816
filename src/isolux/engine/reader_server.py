"""Processes that read pictures for a command: one is started, imports what it takes, and forks.

Started as ``python -m isolux.engine.reader_server MEMORY LINE…`` (descriptors). It starts
no thread until all have come of it, so that a fork copies nothing half-done (polars starts a few as
it is imported, but no process calls polars), and they share what is imported.
A process ends at once when the command's end of its socket closes, whatever it is at: however the
command ends, none of them outlives it.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import queue
import signal
import socket
import sys
import threading
from contextlib import suppress

import numpy as np

from isolux.engine.reader_messages import How, answer, asked, not_read
from isolux.engine.reading import read_picture
from isolux.io.picture_folder import PictureFolder
from isolux.io.resizing import resized_part

__all__ = ["main"]

_BUFFER = 1 << 16


def main() -> None:
    """Fork a process for each socket, and end after the last of them."""
    memory, *lines = map(int, sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the command
    _warm()
    gc.freeze()
    for own in lines:
        if os.fork() == 0:
            for other in lines:
                if other != own:
                    os.close(other)
            _serve(memory, own)
    for line in lines:
        os.close(line)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)  # there is nothing to put away


def _warm() -> None:
    """Import and compile what a picture takes, once for all processes."""
    import simplejpeg  # noqa: F401
    from PIL import Image

    import isolux.io.resize_kernels  # noqa: F401

    Image.init()
    noise = np.random.default_rng(0).integers(0, 256, (12, 16, 3)).astype(np.uint8)
    for _ in range(3):
        resized_part(noise, (6, 8), slice(0, 6), slice(0, 8), "bilinear")


def _serve(memory: int, line: int) -> None:
    """Read what is asked for until the command is gone."""
    heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    with socket.socket(fileno=line) as to:
        threading.Thread(target=_listen, args=(to, heard), daemon=True).start()
        how = How.read(heard.get())  # by then the memory has its size
        prepare, folder = how.preprocessing(), PictureFolder(how.folder)
        places = np.frombuffer(mmap.mmap(memory, 0), np.uint8).reshape(-1, *prepare.shape)
        told: list[list[object]] = []
        while True:
            to.sendall(json.dumps(told).encode() + b"\n")  # the first says that it is ready
            told = []
            for one in asked(heard.get()):
                try:
                    read = read_picture(one.picture, folder, prepare, how.box_factor)
                    for place, shown in zip(one.places, read.shown, strict=True):
                        if shown is not None:
                            places[place] = shown.pixels
                    told.append(answer(one.number, read))
                except Exception:  # noqa: BLE001 - raised again by the thread that reads it
                    told.append(not_read(one.number))


def _listen(of: socket.socket, heard: queue.SimpleQueue[bytes]) -> None:
    waiting = b""
    with suppress(OSError):
        while data := of.recv(_BUFFER):
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                heard.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
