"""The executor of a Ray cluster: its workers are actors, and what a lost node had is done again.

Every node needs isolux and sees the files under the same path. Ray moves what a piece is given and
its tables; this process writes them to the store, so the cluster needs no common folder for those.
Nodes that join while the work is done get workers too.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Self

from isolux.core.errors import IsoluxError, SpecError
from isolux.core.extras import import_optional
from isolux.engine.jobs.job import (
    Job,
    compute_job,
    error_from_json,
    error_to_json,
    tables_from_bytes,
    tables_to_bytes,
)
from isolux.engine.jobs.job_request import JobRequest
from isolux.io.cpu_count import CORES_VARIABLE

_POLL_S = 0.5  # seconds between checks of time limits, and of whether to stop
_GROW_INTERVAL_S = 2.0  # seconds between checks of the cluster's nodes
_MAX_FAILED_STARTS = 5  # consecutive workers that may fail to start


class RayExecutor:
    """Computes jobs on Ray.

    Parameters
    ----------
    address : str or None
        The cluster's; None: one that is started here and ends with the work.
    workers : int
        How many at a time, at most; 0: as many as the nodes have room for.
    cpus, gpus : int, float
        What each worker takes; half a GPU: two workers share one.

    Raises
    ------
    SpecError
        Ray is not installed, or no cluster answers at the address.
    """

    def __init__(
        self, address: str | None, *, workers: int = 0, cpus: int = 1, gpus: float = 0.0
    ) -> None:
        self.ray: Any = import_optional("ray", package="ray", extra="ray", purpose="--engine ray")
        self.address, self.workers, self.cpus, self.gpus = address, workers, cpus, gpus

    def __call__(self, request: JobRequest) -> None:
        """Compute all jobs; see ``Executor``."""
        is_started_here = not self.ray.is_initialized()
        if is_started_here:
            self._connect_to_cluster()
        try:
            with _Pool(self, request) as pool:
                pool.run()
        finally:
            if is_started_here:
                self.ray.shutdown()

    def _connect_to_cluster(self) -> None:
        try:
            with _restore_signals():
                self.ray.init(
                    address=self.address,
                    log_to_driver=False,
                    logging_level="error",
                    include_dashboard=False if self.address is None else None,
                )
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise SpecError(
                "no Ray cluster answers",
                expected="the address that `ray start --head` printed",
                found=(str(error).splitlines() or [""])[0][:200],
                where=f"address {self.address}",
            ) from error

    def count_free_workers(self) -> int:
        """Count the workers that fit on the nodes that are alive."""
        n_workers = 0
        for node in self.ray.nodes():
            if node.get("Alive", node.get("alive")):
                resources = node["Resources"]
                sizes = [int(resources.get("CPU", 0) / self.cpus)]
                if self.gpus:
                    sizes.append(int(resources.get("GPU", 0) / self.gpus))
                n_workers += min(sizes)
        return n_workers


@dataclass(slots=True)
class _Worker:
    """An actor with its current job (None: it starts), and how often that may be retried."""

    actor: Any
    job: Job | None = None
    n_retries_left: int = 0
    started_at: float = 0.0


class _Pool:
    """The workers of one request, each with one job at a time."""

    def __init__(self, ray: RayExecutor, work: JobRequest) -> None:
        self.executor, self.ray, self.request = ray, ray.ray, work
        self.jobs: Iterator[Job] = iter(work.jobs)
        self.retries: list[tuple[Job, int]] = []
        self.n_ended = 0
        self.busy: dict[Any, _Worker] = {}
        self.idle: list[_Worker] = []
        self.failed_starts = 0
        self.grown_at = 0.0
        options = {"num_cpus": ray.cpus, "num_gpus": ray.gpus, "max_restarts": 0}
        self.actor_class = self.ray.remote(**options)(_WorkerActor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self.busy.values(), *self.idle):
            self._kill_worker(worker)

    def run(self) -> None:
        """Compute all jobs, or finish the running ones once asked to stop."""
        while self.n_ended < self.request.n_jobs:
            if self.request.should_stop():
                self._kill_starting_workers()
                if not self.busy:
                    return
            else:
                self._start_missing_workers()
                self._submit_jobs_to_idle_workers()
            ready, _ = self.ray.wait(list(self.busy), timeout=_POLL_S) if self.busy else ([], [])
            for reference in ready:
                self._receive_result(reference)
            self._kill_late_workers()

    def _start_missing_workers(self) -> None:
        """Start workers where there is room and work for them."""
        if time.monotonic() - self.grown_at < _GROW_INTERVAL_S:
            return
        self.grown_at = time.monotonic()
        n_free = self.executor.workers or self.executor.count_free_workers()
        if not n_free and not self.busy:
            raise self._build_no_room_error()
        n_workers = len(self.busy) + len(self.idle)
        for _ in range(min(n_free, self.request.n_jobs - self.n_ended) - n_workers):
            worker = _Worker(self.actor_class.remote(), started_at=time.monotonic())
            first = self.request.first_job
            first_job = first and asdict(first)
            self.busy[worker.actor.start.remote(first_job, self.executor.cpus)] = worker

    def _build_no_room_error(self) -> SpecError:
        resources = self.ray.cluster_resources()
        return SpecError(
            "no node of the cluster has room for a worker",
            expected=f"{self.executor.cpus} cores"
            + (f" and {self.executor.gpus:g} GPUs" if self.executor.gpus else ""),
            found=f"{resources.get('CPU', 0):g} cores and {resources.get('GPU', 0):g} GPUs in all",
            where=f"address {self.executor.address}",
            hint="smaller cpus or gpus; if nodes are started on demand, say how many workers "
            "to wait for: workers",
        )

    def _submit_jobs_to_idle_workers(self) -> None:
        while self.idle:
            next_job = self.retries.pop() if self.retries else None
            if next_job is None and (job := next(self.jobs, None)) is not None:
                next_job = job, self.request.limits.retries
            if next_job is None:
                return
            worker = self.idle.pop()
            worker.job, worker.n_retries_left = next_job
            worker.started_at = time.monotonic()
            self.busy[worker.actor.compute.remote(asdict(worker.job))] = worker

    def _receive_result(self, reference: Any) -> None:
        """Take a worker's result, or note that the worker is lost."""
        worker = self.busy.pop(reference)
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self._retry_or_abandon_job(worker, _shorten_ray_error(error))
            return
        if "error" in answer:
            self._kill_worker(worker)
            raise error_from_json(answer["error"])
        self.failed_starts = 0
        job, worker.job = worker.job, None
        self.idle.append(worker)
        if job is None:
            return
        self._submit_next_jobs()
        self.request.store.commit(job.key, tables_from_bytes(answer["tables"]))
        self._report_finished_job(job)

    def _submit_next_jobs(self) -> None:
        """Give the worker its next job before the last result is written."""
        if not self.request.should_stop():
            self._submit_jobs_to_idle_workers()

    def _report_finished_job(self, job: Job) -> None:
        self.n_ended += 1
        self.request.on_finished(job)

    def _retry_or_abandon_job(self, worker: _Worker, reason: str, *, late: bool = False) -> None:
        """Retry a job on another worker, or give it up."""
        self._kill_worker(worker)
        self.grown_at = 0.0
        if worker.job is None:
            self.failed_starts += 1
            if self.failed_starts >= _MAX_FAILED_STARTS:
                raise IsoluxError(
                    "no worker of the cluster starts",
                    expected="isolux and what the model needs on each node, in the same versions",
                    found=reason,
                    where=f"address {self.executor.address}",
                )
            return
        n_retries_left = self.request.limits.count_retries_left(worker.n_retries_left, is_late=late)
        if n_retries_left:
            self.retries.append((worker.job, n_retries_left - 1))
        else:
            self.request.replace_or_raise_lost_job(worker.job, reason, is_late=late)
            self._report_finished_job(worker.job)

    def _kill_late_workers(self) -> None:
        """End workers that exceed the time limit of their job."""
        seconds = self.request.limits.seconds
        if seconds is None:
            return
        now = time.monotonic()
        for reference, worker in list(self.busy.items()):
            if worker.job is not None and now - worker.started_at > seconds:
                del self.busy[reference]
                self._retry_or_abandon_job(worker, f"no end within {seconds:g} s", late=True)

    def _kill_starting_workers(self) -> None:
        for reference, worker in list(self.busy.items()):
            if worker.job is None:
                del self.busy[reference]
                self._kill_worker(worker)

    def _kill_worker(self, worker: _Worker) -> None:
        with suppress(Exception):  # it may be gone already
            self.ray.kill(worker.actor)


class _WorkerActor:
    """The class that runs in a Ray actor."""

    def start(self, first: dict[str, Any] | None, share: int) -> dict[str, Any]:
        """Compute the first job, with a share of the node's cores."""
        os.environ[CORES_VARIABLE] = str(share)
        return {} if first is None else {**_compute_job_or_return_error(first), "tables": {}}

    def compute(self, job_fields: dict[str, Any]) -> dict[str, Any]:
        """Compute a job."""
        return _compute_job_or_return_error(job_fields)


def _compute_job_or_return_error(job_fields: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"tables": tables_to_bytes(compute_job(Job(**job_fields)))}
    except IsoluxError as error:
        return {"error": error_to_json(error)}


def _shorten_ray_error(error: BaseException) -> str:
    """Shorten Ray's message to one line: in a traceback, the last one names the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return (lines[-1] if "Traceback" in str(error) else lines[0])[:200]


@contextmanager
def _restore_signals() -> Iterator[None]:
    """Restore the command's handlers of Ctrl-C and SIGTERM, which Ray replaces."""
    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handlers[number] = signal.getsignal(number)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            with suppress(ValueError, TypeError):  # not the main thread; a handler of C
                signal.signal(number, handler)
