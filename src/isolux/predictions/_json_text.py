"""Large JSON a block at a time, so that a file of any length takes little memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, NoReturn, TypeVar

import msgspec

from isolux.core.errors import FileError, TableError
from isolux.io.text import check_utf8

_Element = TypeVar("_Element")
_BLOCK_BYTES = 1 << 18
_BLANKS = b" \t\r\n"
_HEAD_BYTES = 4096
_NOT_ASCII = bytes(range(0x80, 0x100))
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
"""How msgspec says that the value ends before the text: the byte of the rest, from 1."""
_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises over text that is no JSON, and over JSON of another shape."""


class JsonText:
    """The text of a JSON file from where it was read to, as far as it is in memory."""

    def __init__(self, stream: IO[bytes], source: str, block: int = _BLOCK_BYTES) -> None:
        self.stream, self.source, self.block = stream, source, block
        self.text, self.offset, self.is_complete = b"", 0, False
        self.read_block()
        # A character may be cut in two where the head ends.
        head = self.text[:_HEAD_BYTES].rstrip(_NOT_ASCII)
        self.drop_bytes(len(head) - len(check_utf8(head, source)))
        self.skip_blanks()
        if not self.text:
            raise FileError("the file is empty", expected="a model's answers", where=source)

    def read_block(self) -> None:
        """Read a block behind the text, or as much again where a long object fills it."""
        addition = self.stream.read(max(self.block, len(self.text)))
        self.is_complete = not addition
        self.text += addition

    def drop_bytes(self, n_bytes: int) -> None:
        """Drop bytes from the beginning of the text."""
        self.text, self.offset = self.text[n_bytes:], self.offset + n_bytes

    def skip_blanks(self) -> None:
        """Go on to the next byte that is not white space."""
        while True:
            self.drop_bytes(len(self.text) - len(self.text.lstrip(_BLANKS)))
            if self.text or self.is_complete:
                return
            self.read_block()

    def iterate_objects(
        self, decoder: msgspec.json.Decoder[list[_Element]]
    ) -> Iterator[list[_Element]]:
        """Yield the objects of the list that begins here, those of a block at a time."""
        self.drop_bytes(1)  # [
        self.skip_blanks()
        while self.text[:1] != b"]":
            if self.text and not self.text.startswith(b"{"):
                self._refuse_item()
            items, stop = self._decode_block(decoder)
            yield items
            self.drop_bytes(stop)
            self.skip_blanks()
            if self.text.startswith(b","):
                self.drop_bytes(1)
                self.skip_blanks()
                if not self.text or self.text.startswith(b"]"):
                    self.refuse_damage()
            elif not self.text.startswith(b"]"):
                self.refuse_damage()
        self.drop_bytes(1)
        self.skip_blanks()

    def _decode_block(
        self, decoder: msgspec.json.Decoder[list[_Element]]
    ) -> tuple[list[_Element], int]:
        """Decode the objects of the block, and tell where the last of them ends."""
        stop = self._find_last_object_end()
        while not stop and not self.is_complete:
            self.read_block()
            stop = self._find_last_object_end()
        try:
            if stop:
                return decoder.decode(b"[" + self.text[:stop] + b"]"), stop
        except msgspec.ValidationError:
            raise
        except (
            _DECODE_ERRORS
        ):  # the list ends before that, there are braces within text, or it is damaged
            pass
        while not self.is_complete:
            self.read_block()
        array_text = b"[" + self.text
        try:
            return decoder.decode(array_text), array_text.rindex(b"]") - 1
        except msgspec.ValidationError:
            raise
        except _DECODE_ERRORS as error:
            end = _TRAILING.search(str(error))
            if end is None:
                self.refuse_damage(error)
            array_text = array_text[: int(end[1]) - 1]
            return decoder.decode(array_text), array_text.rindex(b"]") - 1

    def _find_last_object_end(self) -> int:
        """Return the byte after the last object that is whole, by braces alone; 0: none is."""
        text = self.text
        depth = text.count(b"{") - text.count(b"}")
        stop = len(text)
        while (brace := text.rfind(b"}", 0, stop)) >= 0:
            depth -= text.count(b"{", brace, stop)
            if depth == 0:
                return brace + 1
            depth += 1
            stop = brace
        return 0

    def _refuse_item(self) -> None:
        """Refuse an item of the list that is no object."""
        raise FileError(
            "an item of the list is not an object",
            expected="[{…}, …]",
            found=f"{self.format_position()} at byte {self.offset}",
            where=self.source,
        )

    def refuse_trailing(self) -> None:
        """Refuse trailing text."""
        if self.text:
            raise FileError(
                "something follows the list",
                expected="the end of the file",
                found=self.format_position(),
                where=f"{self.source}, byte {self.offset}",
            )

    def format_position(self) -> str:
        """Format the next characters of the text."""
        return repr(self.text[:20].decode("utf-8", "replace"))

    def refuse_damage(self, cause: BaseException | None = None) -> NoReturn:
        """Raise the error that tells at which byte of the file the text stops to be JSON."""
        while not self.is_complete:
            self.read_block()
        problem = "JSON is malformed: invalid character" if cause is None else str(cause)
        if "truncated" in problem or not self.text:
            raise FileError(
                "the file is cut off: its JSON ends in the middle of a list",
                expected="a list that is closed: [ … ]",
                found=f"the end at byte {self.offset + len(self.text)}",
                where=self.source,
            ) from cause
        byte_match = re.search(r"byte (\d+)", problem)
        offset = int(byte_match[1]) - 1 if byte_match else 0
        offset -= self.text[offset - 1 : offset + 1] == b"-I"  # -Infinity
        near = self.text[max(offset, 0) : offset + 20].decode("utf-8", "replace")
        if re.match(r"-?(NaN|Infinity|I|N)", near):
            raise TableError(
                "a number is not finite, which JSON does not know",
                expected="finite numbers",
                found=f"{near!r} at byte {self.offset + offset}",
                where=self.source,
                hint="leave such results out when the file is written",
            ) from cause
        raise FileError(
            "this is not valid JSON",
            expected="a list of objects: [{…}, …]",
            found=f"{problem.partition(' (byte')[0]}, at byte {self.offset + offset}: {near!r}",
            where=self.source,
        ) from cause
