"""What a function's docstring says of its parameters: the one place where an option is described.

A plugin and a public function describe each parameter once, in numpydoc form; ``--help`` and
``isolux list`` show its first sentence.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

_HEAD = re.compile(r"^(?P<names>\*{0,2}\w+(?:,\s+\*{0,2}\w+)*)(?: :.*)?$")
_CROSS_REFERENCE = re.compile(r"As in (\w+)")
_UNDERLINE = re.compile(r"^-{3,}$")
# A sentence ends at a full stop before a capital; "e.g. Asian" and "Table 7. It" do not decide it.
_END = re.compile(r"(?<=[^.][a-z0-9)\"'`%:²])\.\s+(?=[A-Z\"`(])")


@cache
def parse_parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Map each parameter that a numpydoc docstring names to what it says of it, on one line.

    Examples
    --------
    >>> def score(*, scale: float = 1.0):
    ...     '''Score.
    ...
    ...     Parameters
    ...     ----------
    ...     scale : float
    ...         What a box is divided by.
    ...         In pixels.
    ...     '''
    >>> parse_parameter_descriptions(score)
    {'scale': 'What a box is divided by. In pixels.'}
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    lines_by_name: dict[str, list[str]] = {}
    names: list[str] = []
    inside = False
    for line_index, line in enumerate(lines):
        next_line = lines[line_index + 1] if line_index + 1 < len(lines) else ""
        if _UNDERLINE.match(next_line):
            inside = line.strip() in {"Parameters", "Other Parameters"}
            names = []
        elif inside and not _UNDERLINE.match(line):
            head = _HEAD.match(line)
            if head:
                names = [name.strip().lstrip("*") for name in head["names"].split(",")]
            elif line.strip():
                for name in names:
                    lines_by_name.setdefault(name, []).append(line.strip())
    descriptions = {
        name: " ".join(description_lines) for name, description_lines in lines_by_name.items()
    }
    return {
        name: _resolve_docstring_reference(function, name, text)
        for name, text in descriptions.items()
    }


def _resolve_docstring_reference(
    function: Callable[..., Any], parameter_name: str, description: str
) -> str:
    """Follow "As in detection" to where a parameter is described."""
    reference = _CROSS_REFERENCE.match(description)
    package = ".".join(function.__module__.split(".")[:2])
    if reference is None or importlib.util.find_spec(f"{package}.{reference[1]}") is None:
        return description
    referenced_function = getattr(
        importlib.import_module(f"{package}.{reference[1]}"), function.__name__, None
    )
    return (
        parse_parameter_descriptions(referenced_function).get(parameter_name, description)
        if callable(referenced_function)
        else description
    )


def extract_first_sentence(text: str) -> str:
    """Return the first sentence, without its full stop and its marks of code.

    Examples
    --------
    >>> extract_first_sentence("What ``recall`` is read at. In pixels.")
    'What recall is read at'
    """
    return _END.split(text, maxsplit=1)[0].rstrip(".").replace("``", "")
