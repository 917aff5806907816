"""Workbooks written by hand, as small as they can be: no library here writes them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import polars as pl

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
Rows = Sequence[Sequence[Any]]


class Cell(NamedTuple):
    """A cell of an xlsx as a program would write it: its attributes, and what is inside."""

    given: str
    inside: str


def write_xlsx(
    path: Path, sheets: dict[str, Rows], merged: dict[str, Sequence[str]] | None = None
) -> Path:
    """Write text as inline strings, numbers as numbers, nothing for None, ``Cell`` as it says.

    ``merged``: of a sheet, the ranges of cells that are one (``B2:B3``).
    """
    names = list(enumerate(sheets, start=1))
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="application/'
        'vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for k, _ in names
    )
    parts = {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/'
        'vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/xl/workbook.xml" ContentType="application/'
        f'vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{kinds}</Types>',
        "_rels/.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship'
        f' Id="r1" Type="{_REL}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><sheets>'
        + "".join(f'<sheet name="{escape(n)}" sheetId="{k}" r:id="r{k}"/>' for k, n in names)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="r{k}" Type="{_REL}/worksheet" Target="worksheets/sheet{k}.xml"/>'
            for k, _ in names
        )
        + "</Relationships>",
    }
    for k, name in names:
        rows = "".join(
            f'<row r="{i}">' + "".join(_cell(cell, i, j) for j, cell in enumerate(row)) + "</row>"
            for i, row in enumerate(sheets[name], start=1)
        )
        ranges = "".join(f'<mergeCell ref="{one}"/>' for one in (merged or {}).get(name, ()))
        whole = f"<mergeCells>{ranges}</mergeCells>" if ranges else ""
        parts[f"xl/worksheets/sheet{k}.xml"] = (
            f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData>{whole}</worksheet>'
        )
    return _packed(path, parts)


def _cell(cell: Any, row: int, column: int) -> str:
    at = f'r="{chr(65 + column)}{row}"'
    if cell is None:
        return ""
    if isinstance(cell, Cell):
        return f"<c {at} {cell.given}>{cell.inside}</c>"
    if isinstance(cell, bool):
        return f'<c {at} t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, int | float):
        return f"<c {at}><v>{cell!r}</v></c>"
    return f'<c {at} t="inlineStr"><is><t>{escape(cell)}</t></is></c>'


def write_ods(path: Path, sheets: dict[str, Rows]) -> Path:
    """Write the same as an OpenDocument spreadsheet."""
    office = "urn:oasis:names:tc:opendocument:xmlns"
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(
            "<table:table-row>" + "".join(map(_ods_cell, row)) + "</table:table-row>"
            for row in rows
        )
        + "</table:table>"
        for name, rows in sheets.items()
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    content = (
        f'{_HEAD}<office:document-content xmlns:office="{office}:office:1.0"'
        f' xmlns:table="{office}:table:1.0" xmlns:text="{office}:text:1.0" office:version="1.2">'
        f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    manifest = (
        f'{_HEAD}<manifest:manifest xmlns:manifest="{office}:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        "</manifest:manifest>"
    )
    parts = {"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content}
    return _packed(path, parts)


def _ods_cell(cell: Any) -> str:
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return (
            f'<table:table-cell office:value-type="float" office:value="{cell!r}">'
            f"<text:p>{cell!r}</text:p></table:table-cell>"
        )
    return (
        '<table:table-cell office:value-type="string">'
        f"<text:p>{escape(str(cell))}</text:p></table:table-cell>"
    )


def _packed(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def frame_rows(frame: pl.DataFrame) -> Rows:
    """Give a frame as rows of cells, its names first."""
    return [frame.columns, *frame.rows()]
