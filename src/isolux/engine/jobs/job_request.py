"""The request to an executor: jobs, their store, and when to stop or give up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from isolux.core.errors import IsoluxError
from isolux.engine.jobs.job import Job, JobLimits, Tables
from isolux.engine.jobs.store import JobStore


def _ignore_finished_job(_: Job) -> None:
    pass


def _never_stop() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Jobs to compute.

    Parameters
    ----------
    jobs : iterable of Job
        Taken as workers are free; they come to their end in any order.
    n_jobs : int
        How many there are.
    store : JobStore
        Where their tables go.
    limits : JobLimits
    on_finished : callable
        Called after each piece whose tables are in the store, in the thread that asked.
    first_job : Job, optional
        What a worker computes before its first piece, without a time limit: it opens a model. Its
        tables are dropped. A worker that has one is kept until the work ends.
    should_stop : callable
        Asked often; once it is true no further piece is begun, and those at hand are finished.
    on_lost : callable, optional
        Gives the tables of a piece whose worker was lost or late too often, from why, and whether
        it was late; default: that ends the work.
    """

    jobs: Iterable[Job]
    n_jobs: int
    store: JobStore
    limits: JobLimits = field(default_factory=JobLimits)
    on_finished: Callable[[Job], None] = _ignore_finished_job
    first_job: Job | None = None
    should_stop: Callable[[], bool] = _never_stop
    on_lost: Callable[[Job, str, bool], Tables] | None = None

    def replace_or_raise_lost_job(self, job: Job, reason: str, *, is_late: bool) -> None:
        """Commit replacement tables of a job that no worker could compute, or raise."""
        if self.on_lost is None:
            raise IsoluxError(
                "a shard was not computed",
                expected=f"its tables, in one of {self.limits.retries + 1} tries",
                found=reason,
                where=job.name,
                hint="what other shards gave is kept where the setting sums names a folder; "
                "time_limit gives more seconds, smaller shards need less memory",
            )
        self.store.commit(job.key, self.on_lost(job, reason, is_late))


class Executor(Protocol):
    """Computes jobs, and commits each of them to the store."""

    def __call__(self, request: JobRequest) -> None:
        """Compute all jobs, in any order, or raise the first error that is not retried."""
