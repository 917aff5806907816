"""Asking a model for a batch: what it raises, what does not fit, and what never comes back."""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from isolux.engine.shards import ASKED, answer_columns
from isolux.models import Model, answers, out_of_memory
from isolux.vocabulary.errors import IsoluxError

__all__ = ["LATE", "Answerer", "Said"]

LATE = "not answered within the time limit of its shard"


class _LateError(Exception):
    """No answer by the deadline; a ``TimeoutError`` may be the model's own."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said of one look: its answers, or why there are none and whose fault it is."""

    answers: list[dict[str, Any]] | None
    reason: str | None = None
    fault: str | None = None


class Answerer:
    """Asks a model, in a thread of its own that can be left behind.

    An exception of the model's is laid to the one picture that brings it about. Where memory is too
    small, the batch is halved and stays so. A call that never returns cannot be stopped in a
    process; its thread is left to itself, and a model loaded afresh answers the next batch.

    Parameters
    ----------
    model : Model
    batch : int
        Looks at a time, at most.
    """

    def __init__(self, model: Model, batch: int) -> None:
        self.batch = batch
        self._model = model
        self._predictor = model.predictor
        self._calls: queue.SimpleQueue[Any] | None = None

    def ask(self, shown: Sequence[Any], deadline: float) -> list[Said]:
        """Ask for one batch.

        Parameters
        ----------
        shown : sequence
            Pictures, or what the predictor's ``prepare`` made of them.
        deadline : float
            By ``time.monotonic``. What is not answered then has that for a reason.

        Raises
        ------
        IsoluxError
            Answers that do not fit the model's own word, or too little memory for one picture.
        """
        found: list[Said] = []
        while len(found) < len(shown):
            part = shown[len(found) : len(found) + self.batch]
            found += self._tried(part, deadline)
        return found

    def _tried(self, part: Sequence[Any], deadline: float) -> list[Said]:
        if time.monotonic() >= deadline:
            return [_late()] * len(part)
        try:
            frame = self._called(part, deadline)
        except _LateError:
            self._start_afresh()
            return [_late()] * len(part)
        except IsoluxError:
            raise  # the model gives what it should not: every batch would be so
        # Whatever a model raises is its own; one that calls sys.exit would end the command unsaid.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return self._apart(part, deadline, error)
        return _said(frame, self._model.predicts, len(part))

    def _apart(self, part: Sequence[Any], deadline: float, error: BaseException) -> list[Said]:
        """Halve a batch that raised, down to the picture that makes it raise."""
        no_room = out_of_memory(error)
        if len(part) == 1:
            if no_room:
                raise IsoluxError(
                    "there is too little memory for one picture",
                    found=_line(error),
                    hint="use a smaller model or smaller pictures, or another device",
                ) from error
            return [Said(None, f"the model raised {_line(error)}", "model")]
        half = -(-len(part) // 2)
        if no_room:
            self.batch = min(self.batch, half)
            # Its frames hold what filled the memory, and half of the batch would find no more room.
            traceback.clear_frames(error.__traceback__)
        first = self._tried(part[:half], deadline)
        return first + self._tried(part[half:], deadline)

    def _called(self, part: Sequence[Any], deadline: float) -> pl.DataFrame:
        """Call the model in its thread, and wait no longer than until the deadline."""
        if self._calls is None:
            self._calls = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(self._calls,), daemon=True).start()
        predictor, info, name = self._predictor, self._model.info, self._model.name
        ids = [str(k) for k in range(len(part))]

        def call() -> pl.DataFrame:
            return answers(predictor, info, part, ids, model=name)

        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls.put((call, done))
        try:
            result = done.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            raise _LateError from None
        if isinstance(result, BaseException):
            raise result
        return result  # type: ignore[no-any-return]

    def _start_afresh(self) -> None:
        self._calls = None
        self._predictor = self._model.fresh()

    def close(self) -> None:
        """Let the thread end."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _serve(
    calls: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]] | None],
) -> None:
    while (job := calls.get()) is not None:
        call, done = job
        try:
            done.put(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            done.put(error)
        del job, call, done  # the pictures that they hold, while there is nothing to do


def _said(frame: pl.DataFrame, kind: str, n: int) -> list[Said]:
    """Part a table of answers by the look that each is about."""
    whose = "instance_id" if "instance_id" in frame.columns else "image_id"
    columns = list(answer_columns(kind))
    found: list[list[dict[str, Any]]] = [[] for _ in range(n)]
    whole = frame.with_columns(
        pl.lit(None, dtype=pl.String).alias(name) for name in ASKED if name not in frame.columns
    )
    for who, row in zip(frame[whose].to_list(), whole.select(columns).iter_rows(), strict=True):
        found[int(who)].append(dict(zip(columns, row, strict=True)))
    return [Said(rows) for rows in found]


def _late() -> Said:
    return Said(None, LATE, "time")


def _line(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
