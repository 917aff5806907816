"""Settings that stand in files: a YAML audit, a map from a model's labels to classes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isolux.core.errors import FileError, SpecError, format_location
from isolux.io.frames import read_table, refuse_unless_file

_MAX_NESTING = 200
_NO_BRACKET = re.compile(r"[^\[\]{}]+")


def read_mapping(path: str | Path) -> dict[str, Any]:
    """Read a YAML or JSON file that holds one mapping."""
    import yaml

    refuse_unless_file(Path(path))
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    _refuse_deep(text, str(path))
    try:
        settings = json.loads(text) if str(path).endswith(".json") else yaml.safe_load(text)
    except (yaml.YAMLError, json.JSONDecodeError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise FileError("the file is not valid YAML", found=reason, where=str(path)) from error
    if not isinstance(settings, Mapping):
        raise SpecError(
            "the file holds no settings",
            expected="lines such as `by: race`",
            found=type(settings).__name__ if settings is not None else "an empty file",
            where=str(path),
        )
    return {str(k): v for k, v in settings.items()}


def _refuse_deep(text: str, source: str) -> None:
    """Refuse deeply nested brackets early: YAML's reader takes half a second to fail on them."""
    import numpy as np

    brackets = np.frombuffer(_NO_BRACKET.sub("", text).encode(), np.uint8)
    opens = np.isin(brackets, np.frombuffer(b"[{", np.uint8))
    deepest = int(np.cumsum(np.where(opens, 1, -1)).max(initial=0))
    if deepest > _MAX_NESTING:
        raise FileError(
            "the file is nested too deeply to hold settings",
            expected=f"at most {_MAX_NESTING} brackets in one another",
            found=f"{deepest:,}",
            where=source,
        )


def refuse_repeated_keys(path: str | Path) -> None:
    """Refuse a YAML file in which a key stands twice, of which YAML would take the last."""
    import yaml

    pending = [yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, child in node.value:
                if str(key.value) in keys:
                    raise SpecError(
                        f"the key {str(key.value)!r} occurs twice",
                        expected="it once",
                        where=f"{path}, line {key.start_mark.line + 1}",
                    )
                keys.add(str(key.value))
                pending.append(child)


def read_label_map_file(path: str | Path) -> dict[str, str]:
    """Read a map from a model's labels to classes: YAML, JSON, or a CSV of two columns."""
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        frame = read_table(path)
        if frame.width != 2:
            raise SpecError(
                "the label map has the wrong columns",
                expected="two: the model's label, the class",
                found=", ".join(frame.columns),
                where=str(path),
            )
        pairs = [(str(a), str(b)) for a, b in frame.iter_rows()]
    else:
        pairs = []
        for key, entry in read_mapping(path).items():
            if isinstance(entry, list):
                pairs += [(str(label), key) for label in entry]
            else:
                pairs.append((key, str(entry)))
    class_by_label: dict[str, str] = {}
    for row, (label, of_class) in enumerate(pairs, start=1):
        if class_by_label.setdefault(label, of_class) != of_class:
            raise SpecError(
                f"the label {label!r} goes to two classes",
                found=f"{class_by_label[label]!r} and {of_class!r}",
                where=format_location(path, row),
            )
    return class_by_label
