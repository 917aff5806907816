"""The manifest of a published folder: its settings, its counts, and the hash of every file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isolux.io.hashing import sha256_file

RELEASE_FILE = "publish.json"
PEOPLE_FILE = "people.csv"
ROW_FILES = (PEOPLE_FILE, "answers.csv", "objects.json")
"""Files with a row or an entry for each person or answer; all others but photos count people."""
PHOTO_FOLDER = "photos"


def format_release_manifest(
    folder: Path, record: Mapping[str, Any], file_names: Iterable[str]
) -> str:
    """Format the manifest of a published folder, with the hashes of its files."""
    hashes = {name: sha256_file(folder / name) for name in file_names}
    text = json.dumps({**record, "files": hashes}, indent=1, ensure_ascii=False, sort_keys=True)
    return text + "\n"
