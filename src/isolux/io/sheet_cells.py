"""Cells of a workbook that have no value to read, though they do not look empty.

A spreadsheet's error (``#N/A``, ``#DIV/0!``) and a formula whose value was never saved both reach a
reader as an empty cell. People without an answer would be counted where a formula had one, so both
are looked for in the file itself and told by sheet and cell. Of xls and xlsb this is not possible.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator, Mapping

from isolux.vocabulary.errors import FileError

_SHOWN = 5
_NAME = r"(?:\w+:)?"  # some programs write every element with its namespace's prefix
_CELL = re.compile(rf"<{_NAME}c\b([^>]*?)(?:/>|>(.*?)</{_NAME}c>)".encode(), re.DOTALL)
_FORMULA = re.compile(rf"<{_NAME}f\b".encode())
_VALUE = re.compile(rf"<{_NAME}v\b[^>]*?(/>|>\s*</|>)".encode())
_INLINE = re.compile(rf"<{_NAME}is\b".encode())
_ODS_TABLE = re.compile(rb"<table:table\b([^>]*)>(.*?)</table:table>", re.DOTALL)
_ODS_ERROR = re.compile(rb"""calcext:value-type\s*=\s*["']error["']""")
_CALC = "open the workbook in a spreadsheet program and save it there, or save the sheet as CSV"


def refuse_without_value(
    parts: Mapping[str, bytes], sheet: str, *, header: int, where: str
) -> None:
    """Refuse a sheet with errors for values, or with formulas whose values were not saved."""
    if "content.xml" in parts:
        _refuse_errors_of_ods(parts["content.xml"], sheet, where)
        return
    text = parts.get(sheet_files(parts).get(sheet, ""), b"")
    if not (b"<" in text and (_FORMULA.search(text) or b'"e"' in text or b"'e'" in text)):
        return
    errors: list[str] = []
    unsaved: list[str] = []
    for cell, row, kind, error in _valueless(text):
        if row > header:
            (errors if kind == "error" else unsaved).append(f"{cell} {error}".strip())
    if unsaved:
        raise FileError(
            "formulas of this sheet have no saved values, so that their cells would be empty",
            expected="a workbook that was saved by the program that works out its formulas",
            found=_named(unsaved), where=f"{where}, sheet {sheet!r}", hint=_CALC,
        )  # fmt: skip
    if errors:
        raise _of_errors(_named(errors), sheet, where)


def _valueless(text: bytes) -> Iterator[tuple[str, int, str, str]]:
    """Give the cells without a value: where, the row, ``error`` or ``unsaved``, which error."""
    for found in _CELL.finditer(text):
        given, inside = found.group(1), found.group(2) or b""
        kind, at = _attribute(given, "t"), _attribute(given, "r")
        row = int(re.sub(r"\D", "", at) or 0)
        value = _VALUE.search(inside)
        if kind == "e":
            error = inside[value.end() :].partition(b"<")[0] if value is not None else b""
            yield at, row, "error", html.unescape(error.decode("utf-8", "replace"))
        elif _FORMULA.search(inside) and not _INLINE.search(inside):
            # A text that a formula gives may be empty, and is then a saved value.
            empty = value is None or (value.group(1) != b">" and kind != "str")
            if empty:
                yield at, row, "unsaved", ""


def _attribute(given: bytes, name: str) -> str:
    found = re.search(rf"""(?:^|\s){name}\s*=\s*["']([^"']*)["']""".encode(), given)
    return html.unescape(found.group(1).decode("utf-8", "replace")) if found else ""


def linked_files(parts: Mapping[str, bytes], book: str = "workbook.xml") -> dict[str, str]:
    """Find the files that a workbook's main part names, by the names that it has for them."""
    files = {}
    links = parts.get(f"xl/_rels/{book}.rels", b"")
    for link in re.finditer(rb"<\w*:?Relationship\b([^>]*)>", links):
        target = posixpath.normpath(posixpath.join("/xl", _attribute(link.group(1), "Target")))
        files[_attribute(link.group(1), "Id")] = target.removeprefix("/")
    return files


def sheet_files(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Find the file inside an xlsx that holds each sheet, by the sheet's name."""
    book, files = parts.get("xl/workbook.xml", b""), linked_files(parts)
    sheets = [found.group(1) for found in re.finditer(rf"<{_NAME}sheet\b([^>]*)>".encode(), book)]
    ids = {_attribute(sheet, "name"): _attribute(sheet, r"\w+:id") for sheet in reversed(sheets)}
    return {name: files[number] for name, number in ids.items() if number in files}


def _refuse_errors_of_ods(text: bytes, sheet: str, where: str) -> None:
    for one in _ODS_TABLE.finditer(text):
        n = len(_ODS_ERROR.findall(one.group(2)))
        if n and _attribute(one.group(1), "table:name") == sheet:
            raise _of_errors(f"{n:,} cell{'s' if n != 1 else ''}", sheet, where)


def _of_errors(found: str, sheet: str, where: str) -> FileError:
    return FileError(
        "cells of this sheet hold an error of the spreadsheet, and no value",
        expected="a value, or an empty cell if it is not known",
        found=found, where=f"{where}, sheet {sheet!r}",
        hint="correct what they refer to, or empty them",
    )  # fmt: skip


def _named(cells: list[str]) -> str:
    more = f" and {len(cells) - _SHOWN:,} more" if len(cells) > _SHOWN else ""
    return ", ".join(cells[:_SHOWN]) + more
