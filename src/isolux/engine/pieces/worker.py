"""A process that computes jobs: one line of JSON in, one out, until standard input ends.

Started as ``python -m isolux.engine.pieces.worker FOLDER`` by ``processes``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from isolux.engine.pieces.piece import Piece, compute, told
from isolux.engine.pieces.store import PieceStore
from isolux.vocabulary.errors import IsoluxError


def main() -> None:
    """Compute the jobs of standard input, until it ends."""
    store = PieceStore(sys.argv[1])
    out = sys.stdout
    sys.stdout = sys.stderr  # keeps prints of libraries out of the answers
    for line in sys.stdin:
        print(json.dumps(_answer(store, json.loads(line))), file=out, flush=True)


def _answer(store: PieceStore, job_fields: dict[str, Any]) -> dict[str, Any]:
    job = Piece(**job_fields)
    try:
        store.commit(job.key, compute(job))
    except IsoluxError as error:
        return {"key": job.key, "error": told(error)}
    except Exception as error:  # noqa: BLE001 - the parent decides whether it is tried again
        return {"key": job.key, "lost": f"{type(error).__name__}: {error}"}
    return {"key": job.key}


if __name__ == "__main__":
    main()
