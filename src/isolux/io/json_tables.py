"""Tables in JSON: a list of objects, an object by id, columns, and what labelling tools write.

Whatever the layout, it becomes a list of objects, one a row, which is then read as JSON lines are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from isolux.core.errors import FileError, format_location
from isolux.core.formatting import join_first
from isolux.io.json_values import decode_json

_Row = dict[str, Any]
_FACE_LISTS = (
    "faces",
    "FaceDetails",
)  # of Face++ and of Amazon Rekognition: the faces of a picture
_FOREIGN_LAYOUTS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("COCO", ("images", "annotations"), "read it with coco:FILE"),
    ("FiftyOne", ("samples",), "read its folder with fiftyone:FOLDER"),
    ("labelme", ("shapes", "imagePath"), "`labelme2coco FOLDER` makes COCO, which coco:FILE reads"),
    (
        "Datumaro",
        ("categories", "items"),
        "`datum convert -i FOLDER -if datumaro -f coco -o OUT` makes COCO, which coco:FILE reads",
    ),
)
"""Files that hold shapes in pictures and no table: the name, the fields, and what reads it."""
_REGION_FIELDS = ("x", "points", "rle", "keypointlabels", "ellipselabels")
_MAX_LISTED = 5


def convert_json_to_lines(content: bytes, source: str) -> bytes:
    r"""Write the table that a JSON document holds as JSON lines.

    Examples
    --------
    >>> convert_json_to_lines(b'{"a.jpg": {"label": "x"}, "b.jpg": {"label": null}}', "net.json")
    b'{"id":"a.jpg","label":"x"}\n{"id":"b.jpg","label":null}\n'
    """
    document = decode_json(content, Any, source)
    rows = _list_rows(document, source)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise FileError(
                "an item of the list is not an object",
                expected='one object a row: [{"id": "1", "label": "nurse"}, …]',
                found=msgspec.json.encode(row)[:60].decode("utf-8", "replace"),
                where=format_location(source, number),
            )
    if rows and {"annotations", "data"} <= rows[0].keys():
        rows = _list_label_studio_answers(rows, source)
    rows = [face for row in rows for face in _iterate_faces(row)]
    _convert_choices_to_lists(rows)
    return msgspec.json.Encoder().encode_lines(rows)


def _list_rows(document: Any, source: str) -> Sequence[Any]:
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise _no_table_error(f"a single {type(document).__name__}", source)
    for name, fields, advice in _FOREIGN_LAYOUTS:
        if all(field in document for field in fields):
            raise FileError(
                f"this is a file of {name}, which is no table",
                expected="a list of objects, one a row",
                found="an object with " + ", ".join(map(repr, fields)),
                where=source,
                hint=advice,
            )
    if any(isinstance(document.get(name), list) for name in _FACE_LISTS):
        return [document]
    values = list(document.values())
    if values and all(isinstance(value, dict | list) for value in values):
        rows = _list_rows_by_key(document)
    else:
        rows = _list_wrapped_rows(document)
    if rows is None:
        raise _no_table_error(f"an object with {_format_keys(document)}", source)
    return rows


def _list_rows_by_key(document: Mapping[str, Any]) -> Sequence[Any] | None:
    """Make rows of an object by id, of one by column, and of what pandas writes."""
    values = list(document.values())
    if {"columns", "data"} <= document.keys() and isinstance(document["columns"], list):
        columns, rows = document["columns"], document["data"]  # pandas, orient="split"
        if any(not isinstance(cells, list) or len(cells) != len(columns) for cells in rows):
            return None
        return [dict(zip(columns, cells, strict=True)) for cells in rows]
    first = values[0]
    if all(isinstance(value, dict) for value in values):
        numbers = [str(k) for k in range(len(first))]
        if first and all(list(value) == numbers for value in values):  # pandas, orient="columns"
            return [{name: document[name][k] for name in document} for k in numbers]
    elif all(isinstance(value, list) and len(value) == len(first) for value in values) and not any(
        isinstance(item, dict) for value in values for item in value
    ):
        return [dict(zip(document, cells, strict=True)) for cells in zip(*values, strict=True)]
    items = [
        (key, value if isinstance(value, list) else [value]) for key, value in document.items()
    ]
    if not all(isinstance(item, dict) for _, objects in items for item in objects):
        return None
    id_name = "key" if any("id" in item for _, objects in items for item in objects) else "id"
    # A picture without a face keeps its row: nobody was detected there.
    return [{id_name: key, **item} for key, objects in items for item in objects or [{}]]


def _list_wrapped_rows(document: Mapping[str, Any]) -> Sequence[Any] | None:
    """Take the only list of objects, with the values that stand beside it (a model's name)."""
    lists = [value for value in document.values() if isinstance(value, list)]
    common_fields = {name: v for name, v in document.items() if not isinstance(v, list | dict)}
    if len(lists) != 1 or not all(isinstance(item, dict) for item in lists[0]):
        return None
    return [common_fields | item for item in lists[0]]


def _iterate_faces(row: _Row) -> Iterator[_Row]:
    """Give each face of a picture a row."""
    name = next((n for n in _FACE_LISTS if isinstance(row.get(n), list)), None)
    if name is None:
        yield row
        return
    for face in row[name] or [None]:
        yield {**row, name: face}


def _list_label_studio_answers(tasks: Sequence[_Row], source: str) -> Sequence[_Row]:
    """List the answers to whole pictures; shapes alone are refused."""
    rows = [answers for task in tasks for answers in _iterate_label_studio_answers(task)]
    task_fields = {"id", "annotator", "annotation_id"} | {
        name for task in tasks if isinstance(task.get("data"), dict) for name in task["data"]
    }
    has_marks = any(a.get("result") for t in tasks for a in t.get("annotations") or ())
    if has_marks and not any(row.keys() - task_fields for row in rows):
        raise FileError(
            "these annotations of Label Studio are shapes in pictures, and no table",
            expected="choices, ratings or texts about whole pictures",
            found="boxes, polygons or brushes alone",
            where=source,
            hint="in Label Studio: Export, COCO; then coco:FILE reads its result.json",
        )
    return rows


def _iterate_label_studio_answers(task: _Row) -> Iterator[_Row]:
    """Give each annotation of a task of Label Studio a row, named as in its export JSON-MIN."""
    task_data = task.get("data")
    task_fields = {"id": task.get("id"), **(task_data if isinstance(task_data, dict) else {})}
    annotations = [a for a in task.get("annotations") or () if isinstance(a, dict)]
    valid_annotations = [a for a in annotations if not a.get("was_cancelled")]
    for annotation in valid_annotations or [{}]:
        author = annotation.get("completed_by")
        row = {
            **task_fields,
            "annotator": author.get("id") if isinstance(author, dict) else author,
            "annotation_id": annotation.get("id"),
        }
        for mark in annotation.get("result") or ():
            region = mark.get("value") or {}
            # What belongs to a region of the picture is none of the whole picture's answers.
            if not any(field in region for field in _REGION_FIELDS):
                mark_type = mark.get("type")
                answer = region.get("text" if mark_type == "textarea" else mark_type)
                is_choice = mark_type == "choices"
                row[mark.get("from_name")] = {"choices": answer} if is_choice else answer
        yield row


def _convert_choices_to_lists(rows: Sequence[_Row]) -> None:
    """Write Label Studio's ``{"choices": […]}`` as a list, or as text if nobody chose several."""
    answers_by_name: dict[str, list[_Row]] = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, dict) and value.keys() == {"choices"}:
                answers_by_name.setdefault(name, []).append(row)
    for name, answer_rows in answers_by_name.items():
        is_multiple = any(len(row[name]["choices"] or ()) > 1 for row in answer_rows)
        for row in answer_rows:
            choices = row[name]["choices"] or []
            row[name] = choices if is_multiple else next(iter(choices), None)
        for row in rows if is_multiple else ():
            if isinstance(row.get(name), str):
                row[name] = [row[name]]


def flatten_objects(frame: pl.DataFrame) -> pl.DataFrame:
    """Write the fields of objects as columns, ``face.age``, as pandas' ``json_normalize`` does."""
    names = [
        name
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Struct)
        and not {f"{name}.{field.name}" for field in dtype.fields} & set(frame.columns)
    ]
    if not names:
        return frame
    unnested = frame.unnest(names, separator=".")
    return flatten_objects(unnested) if unnested.width else frame


def _no_table_error(description: str, source: str) -> FileError:
    return FileError(
        "this JSON is no table",
        expected='a list of objects: [{"id": "1", "label": "nurse"}, …], or one of them by id',
        found=description,
        where=source,
        hint="save the list of rows alone; answers of a service for many pictures: one object,"
        ' {"a.jpg": answer, …}',
    )


def _format_keys(document: Mapping[str, Any]) -> str:
    return join_first(map(repr, document), _MAX_LISTED) or "nothing in it"
