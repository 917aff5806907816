"""From a world's YAML text to plain lists and mappings, and never anything more.

``yaml.safe_load`` alone would take the word ``no`` as false, keep the last of two equal keys
without a word, and let ten lines of anchors stand for billions of values. Here words stay words,
a key that stands twice is refused, and so are anchors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.core.errors import FileError, SpecError

__all__ = ["LARGEST_BYTES", "read_yaml_file", "read_yaml_text"]

LARGEST_BYTES = 256 * 1024
"""A world is a page of text; a larger file is something else."""

_BOOL, _TEXT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"


def read_yaml_file(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise FileError("there is no such file", where=str(path)) from error
    except (OSError, ValueError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    if len(content) > LARGEST_BYTES:
        expected = f"at most {LARGEST_BYTES:,} bytes"
        raise FileError("the file is too large to be a world", expected=expected, where=str(path))
    return read_yaml_text(text, source=str(path))


def read_yaml_text(text: str, *, source: str | None = None) -> dict[str, Any]:
    """Read YAML text that holds one mapping; errors as in ``read_yaml_file``."""
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is not None:
                _check_no_anchors_and_double_keys(root, source)
            document = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        first = " ".join(str(error).split())[:300]
        raise FileError("the file is not valid YAML", found=first, where=source) from error
    if not isinstance(document, dict):
        description, expected = type(document).__name__, "lines such as `name: fair`"
        description = "an empty file" if document is None else description
        raise SpecError(
            "the file holds no world", expected=expected, found=description, where=source
        )
    return {str(key): content for key, content in document.items()}


def _check_no_anchors_and_double_keys(root: Any, source: str | None) -> None:
    """Walk every node once: refuse anchors and double keys, and keep words as words."""
    visited_ids: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in visited_ids:
            problem, expected = (
                "a world is written without anchors",
                "every value where it is meant",
            )
            description = "an alias such as *name"
            raise SpecError(
                problem,
                expected=expected,
                found=description,
                where=_format_source_line(node, source),
            )
        visited_ids.add(id(node))
        if node.id == "mapping":
            _check_keys_are_unique(node, source)
            waiting += [child for pair in node.value for child in pair]
        elif node.id == "sequence":
            waiting += node.value
        elif node.tag == _BOOL and node.value.lower() not in ("true", "false"):
            node.tag = _TEXT


def _check_keys_are_unique(node: Any, source: str | None) -> None:
    seen_keys: set[str] = set()
    for key, _ in node.value:
        if key.id == "scalar" and key.value in seen_keys:
            problem = f"the key {key.value[:80]!r} occurs twice"
            raise SpecError(
                problem, expected="every key once", where=_format_source_line(key, source)
            )
        seen_keys.add(str(key.value))


def _format_source_line(node: Any, source: str | None) -> str:
    line = f"line {node.start_mark.line + 1}"
    return f"{source}, {line}" if source else line
