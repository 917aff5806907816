"""Remove a person from text files: CSV, lists of ids, JSON, JSON lines and HTML pages.

Remaining lines keep their bytes. JSON entries are removed, also those that a COCO file links to
them. Tables embedded in a page lose rows; a page that shows a person otherwise is deleted: it is
made from a run and can be rebuilt, so its sentences and images are not edited.
"""

from __future__ import annotations

import base64
import binascii
import csv
import gzip
import hashlib
import html
import io
import json
import re
from typing import Any

import polars as pl

from isolux_curate.id_columns import parse_id_column_or_none
from isolux_curate.withdrawal.rewriting.tables import (
    RewriteResult,
    UnsearchableFile,
    build_cell_test,
    decode_text_and_name_coding,
    flag_rows_naming_people,
    rewrite_parquet_or_arrow,
)
from isolux_curate.withdrawal.terms import IdentifyingTerms, list_file_name_and_stem

_DELIMITERS = ",;\t|"
SUFFIXES = (".csv", ".tsv", ".tab")


def rewrite_delimited_table(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove the people's rows from a delimited table with a header."""
    text, coding = decode_text_and_name_coding(file_bytes)
    records = _split_csv_records(text)
    frame = parse_delimited_or_none(text)
    if frame is None or not records:
        raise UnsearchableFile("rows of unequal length")
    is_person_row = flag_rows_naming_people(frame, terms)
    remaining = [
        records[0],
        *(r for r, out in zip(records[1:], is_person_row, strict=True) if not out),
    ]
    return "".join(remaining).encode(coding), int(is_person_row.sum())


def parse_delimited_or_none(text: str) -> pl.DataFrame | None:
    """Parse a delimited table, one row a record; None where records do not fit the header."""
    records = _split_csv_records(text)
    if not records:
        return None
    delimiter = max(_DELIMITERS, key=records[0].count)
    rows = list(csv.reader(io.StringIO("".join(records), newline=""), delimiter=delimiter))
    if not rows or len(rows) != len(records):
        return None
    names = [name or f"column {k}" for k, name in enumerate(rows[0])]
    names = [n if names.count(n) == 1 else f"{n} {k}" for k, n in enumerate(names)]
    n_columns = max(map(len, rows))
    names += [f"column {k}" for k in range(len(names), n_columns)]
    cells = [[*row, *[None] * (n_columns - len(row))] for row in rows[1:]]
    return pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String), orient="row")


def read_delimited_or_none(file_bytes: bytes) -> pl.DataFrame | None:
    """Read a delimited table; None if the file is none."""
    try:
        return parse_delimited_or_none(decode_text_and_name_coding(file_bytes)[0])
    except UnsearchableFile:
        return None


def _split_csv_records(text: str) -> list[str]:
    """Split a text at line ends outside quotation marks; each record keeps its line end."""
    records, pending = [], ""
    for line in io.StringIO(text, newline="") if "\r" in text else text.splitlines(keepends=True):
        pending += line
        if pending.count('"') % 2 == 0:
            records.append(pending)
            pending = ""
    return [*records, pending] if pending else records


def rewrite_text_lines(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove lines with ids or hashes of files from a text, and redact names in sentences."""
    text, coding = decode_text_and_name_coding(file_bytes)
    lines = text.splitlines(keepends=True)
    kept_lines = [
        ln
        for ln in lines
        if ln.strip() not in terms.all_names and not _is_hash_line_of_people(ln, terms)
    ]
    remaining_text = "".join(kept_lines)
    redacted_text = terms.mask_names_in_text(remaining_text)
    return redacted_text.encode(coding), len(lines) - len(kept_lines) + (
        redacted_text != remaining_text
    )


def _is_hash_line_of_people(line: str, terms: IdentifyingTerms) -> bool:
    """Check whether a line holds a hash and a file of the people: ``HEX  crops/s17.png``."""
    words = line.split()
    if len(words) != 2 or len(words[0]) not in (32, 40, 64):
        return False
    return words[0] in terms.photo_hashes or any(
        name in terms.all_names
        for name in (words[1].lstrip("*"), *list_file_name_and_stem(words[1]))
    )


_REMOVED = object()


def rewrite_json_document(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove the people's entries from a JSON document."""
    text, coding = decode_text_and_name_coding(file_bytes)
    remaining, n = remove_entries_or_none(_parse_json_or_unsearchable(text, "it is no JSON"), terms)
    if remaining is None:
        return None, n
    indent = 2 if "\n" in text.strip() else None
    end = "\n" if text.endswith("\n") else ""
    return (json.dumps(remaining, indent=indent, ensure_ascii="\\u" in text) + end).encode(
        coding
    ), n


def _parse_json_or_unsearchable(text: str, problem: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnsearchableFile(problem) from error
    return document


def rewrite_json_lines(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove the people's entries from a file of JSON lines."""
    text, coding = decode_text_and_name_coding(file_bytes)
    kept_lines, n = [], 0
    for line in text.splitlines(keepends=True):
        document = _parse_json_or_unsearchable(line, "a line is no JSON") if line.strip() else None
        remaining, n_removed = remove_entries_or_none(document, terms)
        n += n_removed
        if not n_removed:
            kept_lines.append(line)
        elif remaining is not None:
            kept_lines.append(json.dumps(remaining, ensure_ascii=False) + "\n")
    return "".join(kept_lines).encode(coding), n


def remove_entries_or_none(document: Any, terms: IdentifyingTerms) -> tuple[Any, int]:
    """Remove the people's entries from a document; None if nothing remains."""
    counter = [0]
    coco_result = _remove_coco_entries_or_none(document, terms)
    if coco_result is not None:
        return coco_result
    remaining = _remove_nested_and_count(document, terms, "", counter)
    return (None if remaining is _REMOVED else remaining), counter[0]


def _does_entry_name_people(
    entry: Any, terms: IdentifyingTerms, key: str, neighbours: tuple[str, ...]
) -> bool:
    if isinstance(entry, bool) or not isinstance(entry, str | int):
        return False
    if isinstance(entry, int):  # "id": 9 numbers an entry, "image_id": 9 names a photo
        parsed = parse_id_column_or_none(key)
        if parsed is None or not parsed[1]:
            return False
    return build_cell_test(terms, key, neighbours)(str(entry))


def _remove_nested_and_count(
    node: Any, terms: IdentifyingTerms, key: str, counter: list[int]
) -> Any:
    if isinstance(node, dict):
        return _remove_from_mapping_and_count(node, terms, counter)
    if not isinstance(node, list):
        return node
    remaining = []
    for child in node:
        if not isinstance(child, dict | list) and _does_entry_name_people(child, terms, key, ()):
            counter[0] += 1
            continue
        remaining_child = _remove_nested_and_count(child, terms, key, counter)
        if remaining_child is not _REMOVED:
            remaining.append(remaining_child)
    return remaining


def _remove_from_mapping_and_count(
    record: dict[str, Any], terms: IdentifyingTerms, counter: list[int]
) -> Any:
    """Remove a record with a person's id completely; redact names in other texts."""
    names = tuple(record)
    remaining: dict[str, Any] = {}
    for name, child in record.items():
        if _does_entry_name_people(child, terms, name, names):
            counter[0] += 1
            if parse_id_column_or_none(name) is not None:
                return _REMOVED
            remaining[name] = terms.mask_names_in_text(child) if isinstance(child, str) else None
            continue
        if terms.is_name_among_neighbours(name, names) or terms.does_text_name_people(
            name
        ):  # keyed by id
            counter[0] += 1
            continue
        remaining_child = _remove_nested_and_count(child, terms, name, counter)
        if remaining_child is not _REMOVED:
            remaining[name] = remaining_child
    return remaining


def _remove_coco_entries_or_none(coco: Any, terms: IdentifyingTerms) -> tuple[Any, int] | None:
    """Remove images from a COCO document, with the annotations that refer to them."""
    if not isinstance(coco, dict) or not isinstance(coco.get("images"), list):
        return None
    image_rows = [image for image in coco["images"] if isinstance(image, dict)]
    removed_ids = {
        image.get("id")
        for image in image_rows
        if any(
            _is_image_of_people(str(image.get(key, "")), terms) for key in ("file_name", "image_id")
        )
        or any(
            _does_entry_name_people(image.get(k), terms, k, ("image_id",))
            for k in image
            if k != "id"
        )
    }
    images = [image for image in coco["images"] if image.get("id") not in removed_ids]
    remaining_coco, counter = {**coco, "images": images}, [len(coco["images"]) - len(images)]
    for key, section in coco.items():
        if key == "annotations" and isinstance(section, list):
            remaining_coco[key] = [
                annotation
                for annotation in section
                if not isinstance(annotation, dict)
                or (
                    annotation.get("image_id") not in removed_ids
                    and not any(
                        _does_entry_name_people(v, terms, k, ("image_id",))
                        for k, v in annotation.items()
                        if k not in ("id", "image_id", "category_id")
                    )
                )
            ]
            counter[0] += len(section) - len(remaining_coco[key])
        elif key not in ("images", "annotations"):
            remaining = _remove_nested_and_count(section, terms, key, counter)
            remaining_coco[key] = None if remaining is _REMOVED else remaining
    return remaining_coco, counter[0]


def _is_image_of_people(image_name: str, terms: IdentifyingTerms) -> bool:
    return bool(image_name) and any(
        terms.does_id_cell_name_people(candidate, ("file", "image", "task"), strict=False)
        for candidate in (image_name, *list_file_name_and_stem(image_name))
    )


_TABLE = re.compile(
    r'(<script type="application/vnd\.apache\.parquet\+gzip;base64"[^>]*>)([A-Za-z0-9+/=\s]*)'
    r"(</script>)"
)
_JSON = re.compile(r'(<script type="application/json"[^>]*>)(.*?)(</script>)', re.DOTALL)
_PICTURE = re.compile(r"data:image/[a-z+]+;base64,([A-Za-z0-9+/=]+)")
_CELL = re.compile(r"<(?:td|th|bdi|li|dd)[^>]*>([^<]{1,200})<")
_GALLERY_TITLE = "Who is shown in this file"
"""The title of a gallery: on other pages a cell with a short name is a group or a number."""
_ISOLUX_MARK = re.compile(r"Made by isolux|isolux", re.IGNORECASE)
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def rewrite_or_delete_page(file_bytes: bytes, terms: IdentifyingTerms) -> RewriteResult:
    """Remove rows from a page's tables; delete a page that still names or shows a person."""
    text, coding = decode_text_and_name_coding(file_bytes)
    page = _PageRewriter(terms)
    page_text = _JSON.sub(
        page.rewrite_json_and_count, _TABLE.sub(page.rewrite_table_and_count, text)
    )
    if _does_page_name_people(
        _PICTURE.sub("", _TABLE.sub("", page_text)), terms
    ) or _does_page_show_people(page_text, terms):
        if _ISOLUX_MARK.search(text) is None:
            raise UnsearchableFile("a page that isolux did not make names or shows them")
        return None, page.n + 1
    return page_text.encode(coding), page.n


class _PageRewriter:
    """Rewrites the tables and JSON blocks of one page, and counts removed entries."""

    def __init__(self, terms: IdentifyingTerms) -> None:
        self.terms, self.n = terms, 0

    def rewrite_table_and_count(self, table_match: re.Match[str]) -> str:
        """Rewrite an embedded table."""
        try:
            table_bytes = gzip.decompress(base64.b64decode(table_match[2]))
        except (OSError, EOFError, binascii.Error) as error:
            raise UnsearchableFile("a table in it cannot be unpacked") from error
        new_bytes, n = rewrite_parquet_or_arrow(table_bytes, self.terms)
        if not n or new_bytes is None:
            return table_match[0]
        self.n += n
        return (
            table_match[1]
            + base64.b64encode(gzip.compress(new_bytes, 9, mtime=0)).decode()
            + table_match[3]
        )

    def rewrite_json_and_count(self, json_match: re.Match[str]) -> str:
        """Rewrite an embedded JSON block."""
        try:
            document = json.loads(json_match[2])
        except (ValueError, RecursionError):
            return json_match[0]
        remaining, n = remove_entries_or_none(document, self.terms)
        self.n += n
        return (
            json_match[0]
            if not n
            else json_match[1] + _encode_script_json(remaining) + json_match[3]
        )


def _encode_script_json(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return "".join(_SAFE.get(sign, sign) for sign in text)


def _does_page_name_people(page_text: str, terms: IdentifyingTerms) -> bool:
    """Check whether a text contains the people's names, or a gallery's cells are names."""
    plain_text = html.unescape(page_text)
    if terms.does_text_name_people(plain_text) or _GALLERY_TITLE not in page_text:
        return terms.does_text_name_people(plain_text)
    person_names = {
        name
        for id_kind in ("subject", "image", "instance", "file")
        for name in terms.names_by_kind.get(id_kind, ())
    }
    return any(
        html.unescape(cell_match[1]).strip() in person_names
        for cell_match in _CELL.finditer(page_text)
    )


def _does_page_show_people(page_text: str, terms: IdentifyingTerms) -> bool:
    for image_match in _PICTURE.finditer(page_text):
        try:
            image_bytes = base64.b64decode(image_match[1])
        except binascii.Error:
            continue
        if hashlib.sha256(image_bytes).hexdigest() in terms.photo_hashes:
            return True
    return False
