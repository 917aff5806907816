"""The templates' byte code, kept between commands as Python keeps its own modules'.

Compiling them takes a quarter of a second of CPU, each time that a report is written. What was
compiled lies in ``__pycache__`` beside the templates, with the digest of all that it depends on;
where that may not be written to, it is compiled again.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import CodeType

import jinja2
from jinja2.bccache import Bucket, BytecodeCache

__all__ = ["KeptTemplates"]


class KeptTemplates(BytecodeCache):
    """What jinja2 asks for a template's code.

    Parameters
    ----------
    folder : Path
        The templates'.
    settings : Path
        The file that says how templates are read: escaping is part of the code.
    """

    def __init__(self, folder: Path, settings: Path) -> None:
        self.folder = folder / "__pycache__"
        self._how = f"{jinja2.__version__} {sys.version} {settings.read_text(encoding='utf-8')}"

    def get_source_checksum(self, source: str) -> str:
        """Digest the template, and how it is compiled."""
        return hashlib.sha256(f"{self._how}\0{source}".encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read a template's code, if it was kept and the template is as it was."""
        with suppress(OSError, EOFError, ValueError, TypeError):
            digest, data = self._file(bucket).read_bytes().split(b"\n", 1)
            if digest.decode() == bucket.checksum:
                # As Python's own .pyc beside it: who may write here may change the program.
                code = marshal.loads(data)  # noqa: S302
                bucket.code = code if isinstance(code, CodeType) else None

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template's code, whole or not at all."""
        file = self._file(bucket)
        new = file.with_name(f".{file.name}.{os.getpid()}")
        with suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            try:
                new.write_bytes(f"{bucket.checksum}\n".encode() + marshal.dumps(bucket.code))
                new.replace(file)
            finally:
                new.unlink(missing_ok=True)

    def _file(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key}.{sys.implementation.cache_tag}.j2c"
