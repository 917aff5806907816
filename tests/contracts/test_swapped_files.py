"""Files of one dataset in one another's place: refused in our words, or read; never a trace."""

from __future__ import annotations

import itertools

import pytest

from isolux.core import registry
from isolux.core.errors import IsoluxError
from tests.contracts._samples import DATASETS

_PICTURES = (".jpg", ".png", ".jpeg")


def text_files(path):
    root = path if path.is_dir() else path.parent
    return sorted(p for p in root.rglob("*") if p.is_file() and p.suffix.lower() not in _PICTURES)


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_swapped_files_are_refused_or_read(name, tmp_path):
    path = DATASETS[name](tmp_path)
    load = registry.load("datasets", name).load
    for first, second in itertools.permutations(text_files(path)[:6], 2):
        kept = first.read_bytes(), second.read_bytes()
        for swapped in ((kept[1], kept[0]), (kept[1], kept[1])):
            first.write_bytes(swapped[0])
            second.write_bytes(swapped[1])
            try:
                load(path)
            except IsoluxError as error:
                assert error.problem, "says what is wrong"  # noqa: PT017
        first.write_bytes(kept[0])
        second.write_bytes(kept[1])
