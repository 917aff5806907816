"""A process that computes jobs: one line of JSON in, one out, until standard input ends.

Started as ``python -m isolux.engine.jobs.worker FOLDER`` by ``processes``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from isolux.core.errors import IsoluxError
from isolux.engine.jobs.job import Job, compute_job, error_to_json
from isolux.engine.jobs.store import JobStore


def main() -> None:
    """Compute the jobs of standard input, until it ends."""
    store = JobStore(sys.argv[1])
    out = sys.stdout
    sys.stdout = sys.stderr  # keeps prints of libraries out of the answers
    for line in sys.stdin:
        print(json.dumps(_compute_and_store_job(store, json.loads(line))), file=out, flush=True)


def _compute_and_store_job(store: JobStore, job_fields: dict[str, Any]) -> dict[str, Any]:
    job = Job(**job_fields)
    try:
        store.commit(job.key, compute_job(job))
    except IsoluxError as error:
        return {"key": job.key, "error": error_to_json(error)}
    except Exception as error:  # noqa: BLE001 - the parent decides whether it is tried again
        return {"key": job.key, "lost": f"{type(error).__name__}: {error}"}
    return {"key": job.key}


if __name__ == "__main__":
    main()
