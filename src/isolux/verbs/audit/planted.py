"""What was planted in made-up data, read beside an audit of it: a written world's ``planted.json``.

The report then shows the truth of each group beside what was found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isolux.io.frames import refuse_unless_file
from isolux.vocabulary.errors import FileError, SpecError, UnknownNameError

_MOST_BYTES = 1 << 26
_SHAPE = (
    "the planted.json that `isolux synthesize` writes: "
    '{"tasks": {…}, "models": {NAME: {"groups": […]}}}'
)


def read_planted(
    path: str | Path, *, task: str, by: Sequence[str], model: str | None
) -> list[dict[str, Any]]:
    """Read the truths that an audit by these attributes can be held against."""
    planted = _read(Path(path).expanduser())
    models, tasks = planted["models"], planted["tasks"]
    if model is None and len(models) > 1:
        raise SpecError(
            "several models' truths are planted",
            expected="--model-name, one of " + ", ".join(models),
            found="none",
            where=str(path),
        )
    name = next(iter(models)) if model is None else model
    if name not in models:
        raise UnknownNameError("planted model", name, models, where=str(path))
    if task not in tasks:
        raise SpecError(
            f"no value of the task {task} is planted exactly",
            expected="one of " + ", ".join(tasks),
            found=task,
            hint="leave planted out: planted.json says which groups are served worse",
        )
    try:
        measure = {key: tasks[task][key] for key in ("metric", "threshold")}
        rows = _rows(models[name], by)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _another(path, f"{type(error).__name__} at {error}") from error
    return [measure | row for row in rows]


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any]
    refuse_unless_file(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _another(path, "a file of more than 64 MiB")
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _another(path, str(error).splitlines()[0][:120]) from error
    models = found.get("models") if isinstance(found, dict) else None
    if not isinstance(models, dict) or not models:
        raise _another(path, "no models in it")
    if not isinstance(found.get("tasks"), dict):
        raise _another(path, "no metric of any task; written by an older isolux: write it again")
    return found


def _another(path: object, found: str) -> FileError:
    return FileError(
        "this file does not say what was planted", expected=_SHAPE, found=found, where=str(path)
    )


def _rows(truths: Mapping[str, Any], by: Sequence[str]) -> list[dict[str, Any]]:
    """Give groups' values of attributes, and the widest difference of every grouping."""
    named: dict[tuple[str, str], tuple[str, str]] = {}
    rows: list[dict[str, Any]] = []
    for group in truths["groups"]:
        found = None if group["attribute"] is None else _in_the_words_of(group, by)
        if found is None:
            continue
        named[group["attribute"], group["group"]] = found
        if "*" not in found[0]:
            rows.append({"attribute": found[0], "group": found[1], "value": float(group["value"])})
    for gap in truths["widest"]:
        ends = [named.get((gap["attribute"], gap[end])) for end in ("group_a", "group_b")]
        if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
            rows.append(
                {
                    "attribute": ends[0][0],
                    "kind": "difference",
                    "group_a": ends[0][1],
                    "group_b": ends[1][1],
                    "value": float(gap["value"]),
                    "note": str(gap["note"]),
                }
            )
    return rows


def _in_the_words_of(group: Mapping[str, Any], by: Sequence[str]) -> tuple[str, str] | None:
    """Name a group as the audit does: in the data's words, else in the world's own."""
    told = [group["in_data"], {"attribute": group["attribute"], "values": group["values"]}]
    for words in told:
        if words is not None and words["attribute"] in by and all(words["values"]):
            return words["attribute"], " × ".join(words["values"])
    return None
