"""The executor of a Ray cluster: pieces are tasks, and what a lost node had is done again.

Every node needs isolux and sees the shards under the same path. Ray moves what a piece is given and
its tables; this process writes them to the store, so the cluster needs no common folder for those.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from isolux.engine.pieces.piece import (
    Limits,
    Piece,
    as_bytes,
    compute,
    error_of,
    from_bytes,
    told,
)
from isolux.engine.pieces.processes import gave_up
from isolux.engine.pieces.store import PieceStore
from isolux.vocabulary.errors import IsoluxError, SpecError
from isolux.vocabulary.extras import needed

__all__ = ["OnRay"]

_LOOK = 1.0  # seconds between looks at the time limit
_AHEAD = 2  # tasks handed in for each core of the cluster


class OnRay:
    """Computes pieces as Ray tasks.

    Parameters
    ----------
    address : str or None
        The cluster's; None: one that is started here and ends with the work.

    Raises
    ------
    SpecError
        Ray is not installed, or no cluster answers at the address.
    """

    def __init__(self, address: str | None) -> None:
        self.ray: Any = needed("ray", package="ray", extra="ray", purpose="--engine ray")
        self.address = address

    def __call__(
        self, pieces: Sequence[Piece], store: PieceStore, limits: Limits, done: Callable[[], None]
    ) -> None:
        """Compute all pieces; see ``Executor``."""
        ours = not self.ray.is_initialized()
        if ours:
            self._join()
        try:
            self._all(pieces, store, limits, done)
        finally:
            if ours:
                self.ray.shutdown()

    def _join(self) -> None:
        try:
            self.ray.init(
                address=self.address, log_to_driver=False, logging_level="error",
                include_dashboard=False if self.address is None else None,
            )  # fmt: skip
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise SpecError(
                "no Ray cluster answers",
                expected="the address that `ray start --head` printed",
                found=(str(error).splitlines() or [""])[0][:200],
                where=f"--address {self.address}",
            ) from error

    def _all(
        self, pieces: Sequence[Piece], store: PieceStore, limits: Limits, done: Callable[[], None]
    ) -> None:
        # Retries are counted here: Ray's own would not count a task that was late.
        task = self.ray.remote(num_cpus=1, max_retries=0)(_computed)
        waiting = deque((piece, limits.retries) for piece in pieces)
        running: dict[Any, tuple[Piece, int, float]] = {}
        while waiting or running:
            room = _AHEAD * max(1, int(self.ray.cluster_resources().get("CPU", 1)))
            while waiting and len(running) < room:
                piece, left = waiting.popleft()
                running[task.remote(asdict(piece))] = piece, left, time.monotonic()
            ready, _ = self.ray.wait(list(running), timeout=_LOOK)
            for reference in ready:
                piece, left, _ = running.pop(reference)
                why = self._taken(reference, piece, store)
                if why is None:
                    done()
                elif left:
                    waiting.append((piece, left - 1))
                else:
                    raise gave_up(piece, why, limits)
            self._late(running, waiting, limits)

    def _taken(self, reference: Any, piece: Piece, store: PieceStore) -> str | None:
        """Commit what a task gave; else say why there is nothing.

        Raises
        ------
        IsoluxError
            The piece's own error.
        """
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:  # a lost node, worker or result
            return (str(error).splitlines() or [type(error).__name__])[0][:200]
        if "error" in answer:
            raise error_of(answer["error"])
        store.commit(piece.key, from_bytes(answer["tables"]))
        return None

    def _late(
        self,
        running: dict[Any, tuple[Piece, int, float]],
        waiting: deque[tuple[Piece, int]],
        limits: Limits,
    ) -> None:
        """Stop tasks that take too long; what waits for a core counts too, once for each ahead."""
        if limits.seconds is None:
            return
        for reference, (piece, left, began) in list(running.items()):
            if time.monotonic() - began <= _AHEAD * limits.seconds:
                continue
            self.ray.cancel(reference, force=True)
            del running[reference]
            if not left:
                raise gave_up(piece, f"no end within {limits.seconds:g} s", limits)
            waiting.append((piece, left - 1))


def _computed(asked: dict[str, Any]) -> dict[str, Any]:
    """Do a piece's work on a node."""
    try:
        return {"tables": as_bytes(compute(Piece(**asked)))}
    except IsoluxError as error:
        return {"error": told(error)}
