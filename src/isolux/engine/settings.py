"""Settings and outcome of a prediction run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from isolux.engine.shards import Shard
from isolux.vocabulary.errors import InputError

Progress = Callable[[int, int, int], None]
"""Called with how many pictures are done, of how many, and how many of them were looked at now."""

_MAX_LISTED_REASONS = 3  # reasons in an error


@dataclass(frozen=True, slots=True)
class Settings:
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
        The share of looks, 0 to 1, that may remain without an answer.
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
class Ran:
    """Outcome of a run: shards with their keys, what was computed, whether it is complete."""

    keys: list[tuple[Shard, str]]
    computed: int
    pictures: int
    whole: bool
    batch: int


@dataclass(slots=True)
class Failures:
    """Inferences without a prediction, counted over a run, which ends if there are too many.

    Parameters
    ----------
    looks : int
        Of the whole run.
    share : float
        How many of them, 0 to 1, may have no answer.
    where : Path
        The directory of answers, for the error.

    Examples
    --------
    >>> failures = Failures(4, 0.25, Path("out"))
    >>> failures.count(pl.DataFrame({"unit_id": ["a", "b"], "reason": [None, "no such picture"]}))
    >>> failures.found.total()
    1
    """

    looks: int
    share: float
    where: Path
    found: Counter[str] = field(default_factory=Counter)
    example: str = ""

    def earlier(self, n: int) -> None:
        """Count the failures of a shard that an earlier run committed."""
        self.found["a picture that could not be used, as the run before found"] += n
        self._refuse_too_many()

    def count(self, table: pl.DataFrame) -> None:
        """Count the failures of a shard."""
        missing = table.drop_nulls("reason")
        for unit, reason in missing.select("unit_id", "reason").iter_rows():
            self.example = self.example or f"{unit!r}: {reason}"
            self.found[reason] += 1
        self._refuse_too_many()

    def _refuse_too_many(self) -> None:
        n_failed = self.found.total()
        if n_failed <= self.share * self.looks:
            return
        reasons_text = ", ".join(
            f"{n:,} × {reason}" for reason, n in self.found.most_common(_MAX_LISTED_REASONS)
        )
        first = f"; the first: {self.example}" if self.example else ""
        raise InputError(
            "too many pictures have no answer",
            expected=f"at most {self.share:.3g} of {self.looks:,} (max_failures)",
            found=f"{n_failed:,} so far: {reasons_text}{first}",
            where=str(self.where),
            hint="`isolux check` finds broken pictures; what was answered is kept",
        )
