"""Finished runs: whether two of them are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from isolux.vocabulary.containers import Run


def given_twice(named: Mapping[str, Sequence[Run]]) -> Iterator[tuple[str, str]]:
    """Find runs that are one, under two names or one: the same files and the same numbers."""
    every = [(name, run) for name, own in named.items() for run in own]
    for k, (name, run) in enumerate(every):
        for other, earlier in every[:k]:
            files = run.record.get("inputs")
            same = bool(files) and files == earlier.record.get("inputs")
            if run is earlier or (same and run.group_metrics.equals(earlier.group_metrics)):
                yield other, name
