"""Whether a run's files are as they were written: the one rule for everything that opens a run.

A run keeps the SHA-256 of each of its files. One that was changed, lost or added since is used for
nothing; ``isolux view`` alone shows it, with a warning that comes first. What isolux itself changes
(``explain``, a withdrawal) is written with hashes of its own. They hold off accidents and edits by
hand, not someone who writes the hashes anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from isolux.core.errors import IsoluxError, RunError
from isolux.core.formatting import AND_MORE, join_first
from isolux.io.run_record import FILES_KEY, hash_run_files, read_record


def list_changed_files(path: str | Path) -> list[str]:
    """Name the files of a run that are not as they were written: changed, gone or added."""
    root = Path(path).expanduser()
    record = read_record(root)
    recorded = record.pop(FILES_KEY, None)
    recorded = recorded if isinstance(recorded, Mapping) else {}
    current = hash_run_files(root, record)
    return sorted(
        name for name in recorded.keys() | current.keys() if recorded.get(name) != current.get(name)
    )


@contextmanager
def explain_changes(path: str | Path) -> Iterator[None]:
    """Raise ``RunError`` for unexpected errors in the block if files of the run were changed."""
    try:
        yield
    except IsoluxError:
        raise
    except Exception as error:
        changed = list_changed_files(path)
        if not changed:
            raise
        raise RunError(
            "this run was changed since it was written, and cannot be shown",
            expected="its files as isolux wrote them",
            found="changed: " + join_first(changed, 5, AND_MORE),
            where=str(path),
            hint="make the run again",
        ) from error


def describe_changes(changed: Sequence[str]) -> str:
    """Format the warning for a changed run that is shown nevertheless."""
    return (
        f"Files of this run are not as they were written ({join_first(changed, 5, AND_MORE)}): its"
        " numbers may not be those that were measured. Make the run again."
    )


def refuse_changed(
    run: str | Path,
    *,
    description: str = "the run",
    hint: str = "make the run again; `isolux view` alone shows one that was changed, and says so",
) -> None:
    """Refuse a run whose files do not match their recorded hashes."""
    changed = list_changed_files(run)
    if changed:
        raise RunError(
            f"files of {description} are not as they were written",
            expected="the files whose hashes audit.json holds",
            found=join_first(changed, 5, AND_MORE),
            where=str(run),
            hint=hint,
        )
