"""Prompts of models that are asked in words: which class each stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import SpecError

__all__ = ["read_prompts"]


def read_prompts(path: str | Path) -> Mapping[str, tuple[str, ...]]:
    r"""Read a YAML or JSON file of ``class: prompt`` or ``class: [prompt, prompt]``.

    Raises
    ------
    FileError, SpecError
        It cannot be read, or a class has no prompt.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "prompts.yaml"
    ...     _ = file.write_text("nurse: a photo of a nurse\nchef: [a chef, a cook]\n")
    ...     read_prompts(file)
    {'nurse': ('a photo of a nurse',), 'chef': ('a chef', 'a cook')}
    """
    found = {}
    for name, value in read_mapping(path).items():
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(one, str) and one.strip() for one in texts):
            raise SpecError(
                f"the class {name!r} has no prompt",
                expected="class: prompt, or class: [prompt, prompt]",
                found=repr(value),
                where=str(path),
            )
        found[name] = tuple(one.strip() for one in texts)
    return found
