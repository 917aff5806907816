"""Asking a model for a batch: what it raises, what does not fit, and what never comes back."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any

import polars as pl

from isolux.engine.shards import ASKED, answer_columns
from isolux.models import Model, answers, out_of_memory
from isolux.vocabulary.errors import IsoluxError

LATE = "not answered within the time limit of its shard"

_PATIENCE = 2.0  # seconds for a batch that nobody waits for any more
_Done = AsyncResult[Any]
_Told = Callable[[], list["Said"]]


class _LateError(Exception):
    """No answer by the deadline; a ``TimeoutError`` may be the model's own."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said of one look: its answers, or why there are none and whose fault it is."""

    answers: list[dict[str, Any]] | None
    reason: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A batch that a model is asked for: of its first part the answer is on its way."""

    shown: Sequence[Any]
    first: int
    done: _Done | None


@dataclass(frozen=True, slots=True)
class _Gave:
    """What a model gave, in the place of the model that would give it."""

    given: Any
    predicts: str

    def __call__(self, _: Sequence[Any]) -> Any:
        return self.given


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
        self._calls, self._checks = ThreadPool(1), ThreadPool(1)
        self.hung = 0  # calls that never came back

    def ask(self, shown: Sequence[Any], deadline: float) -> list[Said]:
        """Ask for one batch."""
        return self.answered(self.begun(shown, deadline), deadline)()

    def begun(self, shown: Sequence[Any], deadline: float) -> Asked:
        """Begin to ask for one batch, after those that were begun before; see ``ask``."""
        part = shown[: self.batch]
        waits = part and time.monotonic() < deadline
        return Asked(shown, len(part), self._call(part) if waits else None)

    def answered(self, asked: Asked, deadline: float) -> Callable[[], list[Said]]:
        """Wait for what was begun first. If it hung, what was begun after it must be begun again.

        Returns
        -------
        callable
            Parts the answers by their looks: that can wait until the model has its next batch.

        Raises
        ------
        IsoluxError
            See ``ask``.
        """
        shown = asked.shown
        told: list[_Told] = []
        at = 0
        while at < len(shown):
            n = asked.first if at == 0 else self.batch
            part = shown[at : at + n]
            told += self._tried(part, deadline, asked.done if at == 0 else None)
            at += len(part)
        return lambda: [said for one in told for said in one()]

    def _tried(
        self, part: Sequence[Any], deadline: float, done: _Done | None = None
    ) -> list[_Told]:
        """Ask for one batch, or wait for it where it was asked for already."""
        n = len(part)
        if done is None and time.monotonic() >= deadline:
            return [lambda: [_late()] * n]
        try:
            frame = self._waited(self._call(part) if done is None else done, deadline)
        except _LateError:
            self._start_afresh()
            return [lambda: [_late()] * n]
        except IsoluxError:
            raise  # the model gives what it should not: every batch would be so
        # Whatever a model raises is its own; one that calls sys.exit would end the command unsaid.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return self._apart(part, deadline, error)
        return [partial(_said, frame, self._model.predicts, n)]

    def _apart(self, part: Sequence[Any], deadline: float, error: BaseException) -> list[_Told]:
        """Halve a batch that raised, down to the picture that makes it raise."""
        no_room = out_of_memory(error)
        if len(part) == 1:
            if no_room:
                raise IsoluxError(
                    "there is too little memory for one picture",
                    found=_line(error),
                    hint="use a smaller model or smaller pictures, or another device",
                ) from error
            said = Said(None, f"the model raised {_line(error)}", "model")
            return [lambda: [said]]
        half = -(-len(part) // 2)
        if no_room:
            self.batch = min(self.batch, half)
            # Its frames hold what filled the memory, and half of the batch would find no more room.
            traceback.clear_frames(error.__traceback__)
        first = self._tried(part[:half], deadline)
        return first + self._tried(part[half:], deadline)

    def _call(self, part: Sequence[Any]) -> _Done:
        """Call the model in its thread; what it gives is checked by another, while it goes on."""
        predictor, info, name = self._predictor, self._model.info, self._model.name
        kind, n, now, checks = self._model.predicts, len(part), self.hung, self._checks

        def check(given: Any) -> pl.DataFrame:
            ids = [str(k) for k in range(n)]
            return answers(_Gave(given, kind), info, range(n), ids, model=name)  # type: ignore[arg-type]

        def call() -> AsyncResult[Any] | None:
            if now != self.hung:  # nobody waits for it
                return None
            given = predictor(part)
            return checks.apply_async(_kept, (partial(check, given),))

        return self._calls.apply_async(_kept, (call,))

    def _waited(self, done: _Done, deadline: float) -> pl.DataFrame:
        """Wait for an answer, no longer than until the deadline."""
        result: Any = done
        try:
            while isinstance(result, AsyncResult):
                result = result.get(max(deadline - time.monotonic(), 0.0))
        except multiprocessing.TimeoutError:
            raise _LateError from None
        if isinstance(result, BaseException):
            raise result
        return result  # type: ignore[no-any-return]

    def _start_afresh(self) -> None:
        self.hung += 1
        self._calls.close()
        self._calls = ThreadPool(1)
        self._predictor = self._model.fresh()

    def close(self) -> None:
        """Let the threads end; of a model on a GPU wait a little for what it is at."""
        if self._model.on_gpu:
            self._calls.apply_async(int).wait(_PATIENCE)
        self._calls.close()
        self._checks.close()


def _kept(call: Callable[[], Any]) -> Any:
    """Return what a call raises, to be raised where it is waited for: a pool loses a SystemExit."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001
        return error


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
