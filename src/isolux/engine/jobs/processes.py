"""The executor of one machine's processes: each has one job at a time, with a time limit.

A process that is lost (killed, out of memory) or late is replaced, and its piece tried again.
Nothing is pickled: a piece is a line of JSON, and its tables go to the store.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from isolux.engine.jobs.job import Job, error_from_json
from isolux.engine.jobs.job_request import JobRequest
from isolux.io.cpu_count import CORES_VARIABLE, count_cores

_POLARS_THREADS = "POLARS_MAX_THREADS"


class ProcessExecutor:
    """Computes jobs in processes of this machine.

    Parameters
    ----------
    workers : int
        How many at a time.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, request: JobRequest) -> None:
        """Compute all jobs; see ``Executor``."""
        n_processes = min(self.workers, request.n_jobs)
        job_queue = _JobQueue(request)
        outcomes: queue.SimpleQueue[Job | BaseException | None] = queue.SimpleQueue()
        threads = [
            _WorkerThread(request, job_queue, outcomes, n_processes) for _ in range(n_processes)
        ]
        for thread in threads:
            thread.start()
        n_busy = n_processes
        try:
            while n_busy:
                outcome = outcomes.get()
                if outcome is None:
                    n_busy -= 1
                elif isinstance(outcome, Job):
                    request.on_finished(outcome)
                else:
                    raise outcome
        finally:
            for thread in threads:
                thread.stop()


class _JobQueue:
    """The waiting jobs, each with its number of retries left."""

    def __init__(self, request: JobRequest) -> None:
        self._upcoming: Iterator[Job] = iter(request.jobs)
        self._retries: list[tuple[Job, int]] = []
        self._request = request
        self._lock = threading.Lock()

    def take_next_job(self) -> tuple[Job, int] | None:
        with self._lock:
            if self._request.should_stop():
                return None
            if self._retries:
                return self._retries.pop()
            job = next(self._upcoming, None)
            return None if job is None else (job, self._request.limits.retries)

    def requeue_for_retry(self, job: Job, n_retries_left: int) -> None:
        with self._lock:
            self._retries.append((job, n_retries_left))


class _WorkerThread(threading.Thread):
    """A thread with one worker process at a time, to which it gives jobs."""

    def __init__(
        self,
        request: JobRequest,
        job_queue: _JobQueue,
        outcomes: queue.SimpleQueue[Any],
        n_processes: int,
    ) -> None:
        super().__init__(daemon=True)
        self.request, self.job_queue, self.outcomes = request, job_queue, outcomes
        self.n_cores = max(1, count_cores() // n_processes)
        self.child: subprocess.Popen[str] | None = None
        self.output_lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.is_stopped = False

    def run(self) -> None:
        """Give jobs to the process until there are no more."""
        try:
            while not self.is_stopped and (next_job := self.job_queue.take_next_job()) is not None:
                job, n_retries_left = next_job
                reason, is_late = self._compute_job_in_process(job)
                n_retries_left = self.request.limits.count_retries_left(
                    n_retries_left, is_late=is_late
                )
                if reason is None:
                    self.outcomes.put(job)
                elif n_retries_left and not self.is_stopped:
                    self.job_queue.requeue_for_retry(job, n_retries_left - 1)
                elif not self.is_stopped:
                    self.request.replace_or_raise_lost_job(job, reason, is_late=is_late)
                    self.outcomes.put(job)
        except BaseException as error:  # noqa: BLE001 - raised again where the work is waited for
            self.outcomes.put(error)
        else:
            self.outcomes.put(None)

    def _compute_job_in_process(self, job: Job) -> tuple[str | None, bool]:
        """Have a job computed; return the reason for failure (None: done), and whether it was late.

        Raises
        ------
        IsoluxError
            The piece's own error, or that of what comes first.
        """
        seconds = self.request.limits.seconds
        first_job = self.request.first_job
        if self.child is None or self.child.poll() is not None:
            self._start_process()
            reason = None if first_job is None else self._send_job(first_job, None)
            if reason is not None:
                self._kill_process()
                return reason, False
        try:
            return self._send_job(job, seconds), False
        except queue.Empty:
            self._kill_process()
            return f"no end within {seconds:g} s", True

    def _send_job(self, job: Job, seconds: float | None) -> str | None:
        child = self.child
        assert child is not None  # noqa: S101 - it was started
        assert child.stdin is not None  # noqa: S101 - it is a pipe
        try:
            child.stdin.write(json.dumps(asdict(job)) + "\n")
            child.stdin.flush()
            line = self.output_lines.get(timeout=seconds)
        except (OSError, ValueError):
            line = None
        if line is None:
            self._kill_process()
            return f"its process ended with {child.returncode}"
        answer = json.loads(line)
        if "error" in answer:
            raise error_from_json(answer["error"])
        loss_reason: str | None = answer.get("lost")
        return loss_reason

    def _start_process(self) -> None:
        self._kill_process()  # the pipes of a process that ended by itself are still open
        self.output_lines = queue.SimpleQueue()
        self.child = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "isolux.engine.jobs.worker", str(self.request.store.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                _POLARS_THREADS: str(self.n_cores),
                CORES_VARIABLE: str(self.n_cores),
            },
            process_group=0,  # Ctrl-C goes to the command, which finishes the current jobs
        )
        threading.Thread(
            target=_copy_output_lines_to_queue, args=(self.child, self.output_lines), daemon=True
        ).start()

    def _kill_process(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def stop(self) -> None:
        """Kill the process."""
        self.is_stopped = True
        self._kill_process()


def _copy_output_lines_to_queue(
    child: subprocess.Popen[str], output_lines: queue.SimpleQueue[str | None]
) -> None:
    assert child.stdout is not None  # noqa: S101 - it is a pipe
    with suppress(OSError, ValueError):  # the pipe is closed where the process is ended
        for line in child.stdout:
            output_lines.put(line)
    output_lines.put(None)
