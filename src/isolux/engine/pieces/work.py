"""The request to an executor: jobs, their store, and when to stop or give up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from isolux.engine.pieces.piece import Limits, Piece, Tables
from isolux.engine.pieces.store import PieceStore
from isolux.vocabulary.errors import IsoluxError


def _ignore_job(_: Piece) -> None:
    pass


def _never_stop() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs to compute.

    Parameters
    ----------
    pieces : iterable of Piece
        Taken as workers are free; they come to their end in any order.
    count : int
        How many there are.
    store : PieceStore
        Where their tables go.
    limits : Limits
    done : callable
        Called after each piece whose tables are in the store, in the thread that asked.
    first : Piece, optional
        What a worker computes before its first piece, without a time limit: it opens a model. Its
        tables are dropped. A worker that has one is kept until the work ends.
    stop : callable
        Asked often; once it is true no further piece is begun, and those at hand are finished.
    lost : callable, optional
        Gives the tables of a piece whose worker was lost or late too often, from why, and whether
        it was late; default: that ends the work.
    """

    pieces: Iterable[Piece]
    count: int
    store: PieceStore
    limits: Limits = field(default_factory=Limits)
    done: Callable[[Piece], None] = _ignore_job
    first: Piece | None = None
    stop: Callable[[], bool] = _never_stop
    lost: Callable[[Piece, str, bool], Tables] | None = None

    def give_up(self, job: Piece, reason: str, *, late: bool) -> None:
        """Commit replacement tables of a job that no worker could compute, or raise."""
        if self.lost is None:
            raise IsoluxError(
                "a shard was not computed",
                expected=f"its tables, in one of {self.limits.retries + 1} tries",
                found=reason,
                where=job.name,
                hint="what other shards gave is kept where the setting sums names a folder; "
                "time_limit gives more seconds, smaller shards need less memory",
            )
        self.store.commit(job.key, self.lost(job, reason, late))


class Executor(Protocol):
    """Computes jobs, and commits each of them to the store."""

    def __call__(self, request: Work) -> None:
        """Compute all jobs, in any order, or raise the first error that is not retried."""
