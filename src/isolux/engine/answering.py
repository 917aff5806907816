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

_CLOSE_WAIT_S = 2.0  # seconds for a batch that nobody waits for any more
_PendingCall = AsyncResult[Any]
_ResponseSource = Callable[[], list["Said"]]


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
    done: _PendingCall | None


@dataclass(frozen=True, slots=True)
class _FixedPredictor:
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

    def ask(self, model_inputs: Sequence[Any], deadline: float) -> list[Said]:
        """Ask for one batch."""
        return self.answered(self.begun(model_inputs, deadline), deadline)()

    def begun(self, model_inputs: Sequence[Any], deadline: float) -> Asked:
        """Begin to ask for one batch, after those that were begun before; see ``ask``."""
        first_part = model_inputs[: self.batch]
        has_time = first_part and time.monotonic() < deadline
        return Asked(
            model_inputs, len(first_part), self._begin_call(first_part) if has_time else None
        )

    def answered(self, pending_batch: Asked, deadline: float) -> Callable[[], list[Said]]:
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
        model_inputs = pending_batch.shown
        sources: list[_ResponseSource] = []
        position = 0
        while position < len(model_inputs):
            n = pending_batch.first if position == 0 else self.batch
            batch_part = model_inputs[position : position + n]
            sources += self._run_part(
                batch_part, deadline, pending_batch.done if position == 0 else None
            )
            position += len(batch_part)
        return lambda: [response for source in sources for response in source()]

    def _run_part(
        self, batch_part: Sequence[Any], deadline: float, pending_call: _PendingCall | None = None
    ) -> list[_ResponseSource]:
        """Ask for one batch, or wait for it where it was asked for already."""
        n = len(batch_part)
        if pending_call is None and time.monotonic() >= deadline:
            return [lambda: [_late_response()] * n]
        try:
            frame = self._await_call(
                self._begin_call(batch_part) if pending_call is None else pending_call, deadline
            )
        except _LateError:
            self._restart_model()
            return [lambda: [_late_response()] * n]
        except IsoluxError:
            raise  # the model gives what it should not: every batch would be so
        # Whatever a model raises is its own; one that calls sys.exit would end the command unsaid.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return self._run_halves(batch_part, deadline, error)
        return [partial(_split_by_unit, frame, self._model.predicts, n)]

    def _run_halves(
        self, batch_part: Sequence[Any], deadline: float, error: BaseException
    ) -> list[_ResponseSource]:
        """Halve a batch that raised, down to the picture that makes it raise."""
        is_out_of_memory = out_of_memory(error)
        if len(batch_part) == 1:
            if is_out_of_memory:
                raise IsoluxError(
                    "there is too little memory for one picture",
                    found=_format_exception(error),
                    hint="use a smaller model or smaller pictures, or another device",
                ) from error
            response = Said(None, f"the model raised {_format_exception(error)}", "model")
            return [lambda: [response]]
        half = -(-len(batch_part) // 2)
        if is_out_of_memory:
            self.batch = min(self.batch, half)
            # Its frames hold what filled the memory, and half of the batch would find no more room.
            traceback.clear_frames(error.__traceback__)
        first = self._run_part(batch_part[:half], deadline)
        return first + self._run_part(batch_part[half:], deadline)

    def _begin_call(self, batch_part: Sequence[Any]) -> _PendingCall:
        """Call the model in its thread; what it gives is checked by another, while it goes on."""
        predictor, model_info, name = self._predictor, self._model.info, self._model.name
        prediction_type, n, n_hung_before, checks = (
            self._model.predicts,
            len(batch_part),
            self.hung,
            self._checks,
        )

        def check(output: Any) -> pl.DataFrame:
            ids = [str(k) for k in range(n)]
            return answers(
                _FixedPredictor(output, prediction_type), model_info, range(n), ids, model=name
            )  # type: ignore[arg-type]

        def call() -> AsyncResult[Any] | None:
            if n_hung_before != self.hung:  # nobody waits for it
                return None
            output = predictor(batch_part)
            return checks.apply_async(_return_exception, (partial(check, output),))

        return self._calls.apply_async(_return_exception, (call,))

    def _await_call(self, pending_call: _PendingCall, deadline: float) -> pl.DataFrame:
        """Wait for an answer, no longer than until the deadline."""
        outcome: Any = pending_call
        try:
            while isinstance(outcome, AsyncResult):
                outcome = outcome.get(max(deadline - time.monotonic(), 0.0))
        except multiprocessing.TimeoutError:
            raise _LateError from None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    def _restart_model(self) -> None:
        self.hung += 1
        self._calls.close()
        self._calls = ThreadPool(1)
        self._predictor = self._model.fresh()

    def close(self) -> None:
        """Let the threads end; of a model on a GPU wait a little for what it is at."""
        if self._model.on_gpu:
            self._calls.apply_async(int).wait(_CLOSE_WAIT_S)
        self._calls.close()
        self._checks.close()


def _return_exception(call: Callable[[], Any]) -> Any:
    """Return what a call raises, to be raised where it is waited for: a pool loses a SystemExit."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001
        return error


def _split_by_unit(frame: pl.DataFrame, prediction_type: str, n: int) -> list[Said]:
    """Part a table of answers by the look that each is about."""
    id_column = "instance_id" if "instance_id" in frame.columns else "image_id"
    columns = list(answer_columns(prediction_type))
    rows_by_unit: list[list[dict[str, Any]]] = [[] for _ in range(n)]
    complete_rows = frame.with_columns(
        pl.lit(None, dtype=pl.String).alias(name) for name in ASKED if name not in frame.columns
    )
    for unit_number, row in zip(
        frame[id_column].to_list(), complete_rows.select(columns).iter_rows(), strict=True
    ):
        rows_by_unit[int(unit_number)].append(dict(zip(columns, row, strict=True)))
    return [Said(rows) for rows in rows_by_unit]


def _late_response() -> Said:
    return Said(None, LATE, "time")


def _format_exception(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
