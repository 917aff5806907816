"""What is to be audited, as the command line and Python name it: a dataset or a settings file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isolux.io.settings_files import read_mapping
from isolux.vocabulary.spec import AuditSpec, parse_spec, validated

_FILES = (".yaml", ".yml", ".json")


def asked_for(data: str | Path, settings: Mapping[str, Any]) -> AuditSpec:
    """Read what is to be audited, as the command line and Python name it."""
    text = str(data)
    if not names_file(text):
        return parse_spec({"data": text, **settings})
    written = validated(read_settings(text), where=text).said()
    return parse_spec({**written, **settings}, where=text)


def names_file(data: str) -> bool:
    """Tell a file of settings from NAME:PATH.

    Examples
    --------
    >>> names_file("audit.yaml"), names_file("table:people.json")
    (True, False)
    """
    return Path(data).suffix.lower() in _FILES and ":" not in data and not data.startswith("-")


def read_settings(path: str | Path) -> dict[str, Any]:
    """Read a file of settings as it stands, names written with ``_``."""
    return {key.replace("-", "_"): value for key, value in read_mapping(path).items()}
