"""Reads one sheet of a workbook, in a process of its own whose memory is limited.

calamine keeps a sheet as one rectangle, copies a string into each cell that refers to it, and ends
the process where it gets no memory: a workbook of a few kilobytes can ask for terabytes. Started by
``sheets`` as a script, with a line of JSON for what is asked and one for what comes of it.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

_MAX_BYTES = 3 << 30
_MAX_CELLS = 30_000_000
"""Of the rectangle, empty ones among them."""
_MAX_ROWS = 1 << 20
"""Of a sheet in Excel and LibreOffice; a file with more was not saved by either."""


def main() -> None:
    """Read the sheet that is asked for; of several with cells, none unless it is named."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    path, sheet_name = json.loads(sys.argv[1])
    try:
        answer = _read_sheet(_open_workbook(path), sheet_name)
    except MemoryError:  # the workbook is too large, not damaged
        raise
    except Exception as error:  # noqa: BLE001 - said by the process that asked
        answer = {"error": (str(error).splitlines() or [type(error).__name__])[0][:200]}
    json.dump(answer, sys.stdout)


def _open_workbook(path: str) -> Any:
    """Open a workbook by the format of its suffix, or else by its content."""
    from python_calamine import CalamineWorkbook

    try:
        return CalamineWorkbook.from_path(path)
    except Exception:
        with suppress(Exception), Path(path).open("rb") as file:
            return CalamineWorkbook.from_filelike(file)
        raise  # it says what is wrong; the other only that no kind fits


def _read_sheet(workbook: Any, sheet_name: str | None) -> dict[str, Any]:
    names = list(workbook.sheet_names)
    if sheet_name is None:
        filled = [name for name in names if workbook.get_sheet_by_name(name).height] or names[:1]
    else:
        filled = [sheet_name] if sheet_name in names else []
    if len(filled) != 1:
        return {"sheets": filled or names}
    sheet = workbook.get_sheet_by_name(filled[0])
    end_row, end_column = sheet.end or (0, 0)
    if (end_row + 1) * (end_column + 1) > _MAX_CELLS or end_row + 1 > _MAX_ROWS:
        return {"name": filled[0], "size": [end_row + 1, end_column + 1]}
    rows = enumerate(sheet.to_python(skip_empty_area=False))
    filled_rows = {
        k: [_format_cell(cell) for cell in row] for k, row in rows if any(c != "" for c in row)
    }
    return {"name": filled[0], "rows": filled_rows, "merged": sheet.merged_cell_ranges or []}


def _format_cell(cell: Any) -> str | None:
    """Write a cell as CSV would."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        is_integral = cell.is_integer() and abs(cell) < 2**53
        return str(int(cell)) if is_integral else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(sep=" ")
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).strip() or None


if __name__ == "__main__":
    main()
