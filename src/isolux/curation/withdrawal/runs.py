"""Runs that lost people say so first of all, and have their pages made anew."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from isolux.curation.withdrawal.progress import Work
from isolux.curation.withdrawal.walking import files_below
from isolux.io.atomic import RUN_MARK

__all__ = ["mend_runs"]

_TOLD = (
    "People withdrew after this audit: their rows are gone, and its values still rest on them."
    " Audit again to take them out of the values."
)


def mend_runs(
    work: Work,
    folders: Sequence[Path],
    remake: Callable[[Path, str], None] | None,
) -> None:
    """Tell in the records of runs that people left, with the hashes of their tables as they are."""
    from isolux.io.run_changes import changed_files
    from isolux.io.run_directory import tell

    ours = {one.after for one in work.artefacts() if one.after}
    for place in files_below(folders):
        if place.path.name != RUN_MARK:
            continue
        run = place.path.parent
        changed = changed_files(run) or []
        sums = {name: _sum(run / name) for name in changed}
        if changed and all(one in ours or name == RUN_MARK for name, one in sums.items()):
            tell(run, _TOLD)
            if remake is not None:
                remake(run, _TOLD)


def _sum(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
