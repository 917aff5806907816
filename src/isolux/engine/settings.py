"""Settings and outcome of a prediction run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from isolux.core.errors import InputError
from isolux.engine.shards import Shard

Progress = Callable[[int, int, int], None]
"""Called with how many pictures are done, of how many, and how many of them were looked at now."""

_MAX_LISTED_REASONS = 3  # reasons in an error


@dataclass(frozen=True, slots=True)
class PredictionSettings:
    """Settings of a run. Only ``batch`` and ``box_factor`` can change a prediction.

    Parameters
    ----------
    batch : int
        Looks at a time, at most.
    readers : int or None
        Threads that read ahead. Default: one for each core, at most 8.
    time_limit : float
        Seconds a shard.
    max_failures : float
        The share of inferences, 0 to 1, that may remain without an answer.
    box_factor : float
        See ``open_picture``.
    reader_processes : int or None
        See ``process_count``.
    """

    batch: int = 16
    readers: int | None = None
    time_limit: float = 1800.0
    max_failures: float = 0.05
    box_factor: float = 1.0
    reader_processes: int | None = None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run: shards with their keys, what was computed, whether it is complete."""

    keys: list[tuple[Shard, str]]
    n_computed: int
    n_images: int
    is_complete: bool
    batch: int


@dataclass(slots=True)
class Failures:
    """Inferences without a prediction, counted over a run, which ends if there are too many.

    Parameters
    ----------
    n_inferences : int
        Of the whole run.
    max_share : float
        How many of them, 0 to 1, may have no answer.
    folder : Path
        The directory of answers, for the error.

    Examples
    --------
    >>> failures = Failures(4, 0.25, Path("out"))
    >>> failures.add_shard_failures(
    ...     pl.DataFrame(
    ...         {
    ...             "unit_id": ["a", "b"],
    ...             "reason": [None, "no such image"],
    ...             "fault": [None, "picture"],
    ...         }
    ...     ),
    ... )
    >>> failures.counts.total()
    1
    """

    n_inferences: int
    max_share: float
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    n_by_fault: Counter[str] = field(default_factory=Counter)
    example: str = ""

    def add_earlier_failures(self, n: int) -> None:
        """Count the failures of a shard that an earlier run committed."""
        self.counts["a picture that could not be used, as the run before found"] += n
        self.n_by_fault["picture"] += n
        self._check_failure_limit()

    def add_shard_failures(self, table: pl.DataFrame) -> None:
        """Count the failures of a shard."""
        missing = table.drop_nulls("reason")
        for unit, reason, fault in missing.select("unit_id", "reason", "fault").iter_rows():
            self.example = self.example or f"{unit!r}: {reason}"
            self.counts[reason] += 1
            self.n_by_fault[fault] += 1
        self._check_failure_limit()

    def _check_failure_limit(self) -> None:
        n_failed = self.counts.total()
        if n_failed <= self.max_share * self.n_inferences:
            return
        reasons_text = ", ".join(
            f"{n:,} × {reason}" for reason, n in self.counts.most_common(_MAX_LISTED_REASONS)
        )
        first = f"; the first: {self.example}" if self.example else ""
        is_fault_of_images = 2 * self.n_by_fault["picture"] > n_failed
        remedy = (
            "`isolux check` finds broken images"
            if is_fault_of_images
            else "most images could be read, so mend the model or its settings"
        )
        raise InputError(
            "too many pictures have no answer",
            expected=f"at most {self.max_share:.3g} of {self.n_inferences:,} (max_failures)",
            found=f"{n_failed:,} so far: {reasons_text}{first}",
            where=str(self.folder),
            hint=f"{remedy}; what was answered is kept",
        )
