"""Jobs that are done shard by shard: their definition, stored results and executors.

A job is a function of isolux by its name, with arguments as JSON; it returns tables. Its key is
the SHA-256 of all that its tables depend on. ``run_jobs`` computes the pieces whose tables a
``JobStore`` lacks, by one of three executors: this process, processes of this machine, or Ray.
Whatever computes them, the tables are the same, so an executor moves no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import polars as pl

from isolux.engine.jobs.job import Job, JobLimits, Tables, compute_job
from isolux.engine.jobs.job_request import Executor, JobRequest
from isolux.engine.jobs.store import JobStore

__all__ = [
    "Executor",
    "Job",
    "JobLimits",
    "JobRequest",
    "JobStore",
    "Tables",
    "build_executor",
    "compute_job",
    "run_jobs",
]


# Computation of the jobs that a store lacks, by the chosen executor.

JobProgress = Callable[[int, int], None]
"""Called with the number of finished jobs, and of all."""


def run_jobs(
    jobs: Sequence[Job],
    store: JobStore,
    *,
    engine: Literal["local", "ray"] = "local",
    workers: int = 0,
    address: str | None = None,
    limits: JobLimits | None = None,
    report: JobProgress | None = None,
) -> int:
    """Compute the jobs whose tables the store lacks, and return how many those were."""
    missing = [job for job in jobs if not store.has_all_tables(job.key)]
    n_finished = len(jobs) - len(missing)
    report = report or (lambda *_: None)
    report(n_finished, len(jobs))

    def count_finished_job(_job: Job) -> None:
        nonlocal n_finished
        n_finished += 1
        report(n_finished, len(jobs))

    if missing:
        request = JobRequest(
            missing, len(missing), store, limits or JobLimits(), count_finished_job
        )
        build_executor(engine, workers, address)(request)
    return len(missing)


def build_executor(
    engine: str, workers: int = 0, address: str | None = None, *, cpus: int = 1, gpus: float = 0.0
) -> Executor:
    """Choose the executor: this process, several processes, or Ray."""
    if engine == "ray":
        from isolux.engine.jobs.on_ray import RayExecutor

        return RayExecutor(address, workers=workers, cpus=cpus, gpus=gpus)
    if workers:
        from isolux.engine.jobs.processes import ProcessExecutor

        return ProcessExecutor(workers)
    return _run_jobs_in_process


def _run_jobs_in_process(request: JobRequest) -> None:
    """Compute all jobs in this process; errors of the operating system are retried."""
    for job in request.jobs:
        for n_retries_left in range(request.limits.retries, -1, -1):
            try:
                request.store.commit(job.key, compute_job(job))
            except (OSError, pl.exceptions.PolarsError):
                if not n_retries_left:
                    raise
            else:
                break
        request.on_finished(job)
