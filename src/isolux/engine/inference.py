"""Calls of a model on batches, with exceptions, out-of-memory errors and calls that hang."""

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

from isolux.core.errors import IsoluxError
from isolux.engine.shards import QUESTION_COLUMNS, build_prediction_schema
from isolux.models import Model, is_out_of_memory_error, predict_and_check_table

LATE_REASON = "not answered within the time limit of its shard"

MIN_TIME_ALONE_S = 5.0
"""Seconds that a picture may take by itself once its shard is late (the shard's limit where that
is less), or its share of the shard's limit where that is more: a network is warm by then."""

_CLOSE_WAIT_S = 2.0  # seconds to wait for an abandoned batch when closing
_PendingCall = AsyncResult[Any]
_ResponseSource = Callable[[], list["ModelResponse"]]


class _LateError(Exception):
    """No answer by the deadline; a ``TimeoutError`` may be the model's own."""


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A model's response to one input: predictions, or the reason for none and its fault."""

    predictions: list[dict[str, Any]] | None
    reason: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """A submitted batch; the call on its first ``n_first`` inputs is pending."""

    model_inputs: Sequence[Any]
    n_first: int
    pending_call: _PendingCall | None


@dataclass(frozen=True, slots=True)
class _FixedPredictor:
    """A predictor that returns a fixed output, so that outputs are checked like a model's."""

    output: Any
    predicts: str

    def __call__(self, _: Sequence[Any]) -> Any:
        return self.output


class ModelCaller:
    """Calls a model in a separate thread that can be abandoned.

    An exception of the model is attributed to the one image that causes it. Where memory is too
    small, the batch is halved and stays so. A call that never returns cannot be stopped within a
    process; its thread is abandoned, and a freshly loaded model predicts the next batch.

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
        self.n_hung = 0  # calls that never returned

    def predict_batch_or_explain(
        self, model_inputs: Sequence[Any], deadline: float
    ) -> list[ModelResponse]:
        """Predict one batch."""
        return self.await_batch(self.submit_batch(model_inputs, deadline), deadline)()

    def submit_batch(self, model_inputs: Sequence[Any], deadline: float) -> PendingBatch:
        """Submit one batch after those submitted before; see ``ask``."""
        first_part = model_inputs[: self.batch]
        has_time = first_part and time.monotonic() < deadline
        return PendingBatch(
            model_inputs, len(first_part), self._submit_call(first_part) if has_time else None
        )

    def await_batch(
        self, pending_batch: PendingBatch, deadline: float
    ) -> Callable[[], list[ModelResponse]]:
        """Wait for the first submitted batch. If it hung, later ones must be submitted again.

        Returns
        -------
        callable
            Parts the answers by their looks: that can wait until the model has its next batch.

        Raises
        ------
        IsoluxError
            See ``ask``.
        """
        model_inputs = pending_batch.model_inputs
        sources: list[_ResponseSource] = []
        position = 0
        while position < len(model_inputs):
            n = pending_batch.n_first if position == 0 else self.batch
            batch_part = model_inputs[position : position + n]
            sources += self._predict_part(
                batch_part, deadline, pending_batch.pending_call if position == 0 else None
            )
            position += len(batch_part)
        return lambda: [response for source in sources for response in source()]

    def retry_late_inputs_alone(
        self,
        model_inputs: Sequence[Any],
        responses: Sequence[ModelResponse],
        time_alone: float,
        end: float,
    ) -> Callable[[], list[ModelResponse]]:
        """Ask once more, one at a time, for what shared a batch or a shard with a hanging input.

        A model that is late twice in a row does not hang at one input: the rest stays late.
        """
        retried, n_late_in_row = list(responses), 0
        for position, model_input in enumerate(model_inputs):
            if retried[position].reason != LATE_REASON or n_late_in_row == 2:
                continue
            (retried[position],) = self.predict_batch_or_explain(
                [model_input], min(time.monotonic() + time_alone, end)
            )
            is_late = retried[position].reason == LATE_REASON
            n_late_in_row = n_late_in_row + 1 if is_late else 0
        return lambda: retried

    def _predict_part(
        self, batch_part: Sequence[Any], deadline: float, pending_call: _PendingCall | None = None
    ) -> list[_ResponseSource]:
        """Predict a part of a batch, or wait for its pending call."""
        n = len(batch_part)
        if pending_call is None and time.monotonic() >= deadline:
            return [lambda: [_build_late_response()] * n]
        try:
            frame = self._await_call(
                self._submit_call(batch_part) if pending_call is None else pending_call, deadline
            )
        except _LateError:
            self._reload_model_in_new_thread()
            return [lambda: [_build_late_response()] * n]
        except IsoluxError:
            raise  # the output has a wrong form: every batch would be so
        # Any exception counts as the model's; sys.exit in a model would end the command silently.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return self._predict_in_halves(batch_part, deadline, error)
        return [partial(_split_predictions_by_input, frame, self._model.predicts, n)]

    def _predict_in_halves(
        self, batch_part: Sequence[Any], deadline: float, error: BaseException
    ) -> list[_ResponseSource]:
        """Halve a batch that raised, down to the image that causes it."""
        is_out_of_memory = is_out_of_memory_error(error)
        if len(batch_part) == 1:
            if is_out_of_memory:
                raise IsoluxError(
                    "there is too little memory for one picture",
                    found=_format_exception(error),
                    hint="use a smaller model or smaller pictures, or another device",
                ) from error
            response = ModelResponse(None, f"the model raised {_format_exception(error)}", "model")
            return [lambda: [response]]
        half_size = -(-len(batch_part) // 2)
        if is_out_of_memory:
            self.batch = min(self.batch, half_size)
            # Frames of the traceback keep the tensors alive that filled the memory.
            traceback.clear_frames(error.__traceback__)
        first = self._predict_part(batch_part[:half_size], deadline)
        return first + self._predict_part(batch_part[half_size:], deadline)

    def _submit_call(self, batch_part: Sequence[Any]) -> _PendingCall:
        """Submit a call of the model; its output is checked in another thread meanwhile."""
        predictor, model_info, name = self._predictor, self._model.info, self._model.name
        prediction_type, n, n_hung_before, checks = (
            self._model.predicts,
            len(batch_part),
            self.n_hung,
            self._checks,
        )

        def check(output: Any) -> pl.DataFrame:
            ids = [str(k) for k in range(n)]
            source: Any = _FixedPredictor(output, prediction_type)
            units: Any = range(n)
            return predict_and_check_table(source, model_info, units, ids, model=name)

        def call() -> AsyncResult[Any] | None:
            if n_hung_before != self.n_hung:  # the call was abandoned
                return None
            output = predictor(batch_part)
            return checks.apply_async(_call_and_return_exception, (partial(check, output),))

        return self._calls.apply_async(_call_and_return_exception, (call,))

    def _await_call(self, pending_call: _PendingCall, deadline: float) -> pl.DataFrame:
        """Wait for a pending call until the deadline."""
        outcome: Any = pending_call
        try:
            while isinstance(outcome, AsyncResult):
                outcome = outcome.get(max(deadline - time.monotonic(), 0.0))
        except multiprocessing.TimeoutError:
            raise _LateError from None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    def _reload_model_in_new_thread(self) -> None:
        self.n_hung += 1
        self._calls.close()
        self._calls = ThreadPool(1)
        self._predictor = self._model.fresh()

    def close(self) -> None:
        """Close the threads; wait briefly for a running call on a GPU."""
        if self._model.on_gpu:
            self._calls.apply_async(int).wait(_CLOSE_WAIT_S)
        self._calls.close()
        self._checks.close()


def _call_and_return_exception(call: Callable[[], Any]) -> Any:
    """Return an exception instead of raising it: a thread pool would lose a SystemExit."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001
        return error


def _split_predictions_by_input(
    frame: pl.DataFrame, prediction_type: str, n_inputs: int
) -> list[ModelResponse]:
    """Split a table of predictions by input."""
    id_column = "instance_id" if "instance_id" in frame.columns else "image_id"
    columns = list(build_prediction_schema(prediction_type))
    rows_by_unit: list[list[dict[str, Any]]] = [[] for _ in range(n_inputs)]
    complete_rows = frame.with_columns(
        pl.lit(None, dtype=pl.String).alias(name)
        for name in QUESTION_COLUMNS
        if name not in frame.columns
    )
    for unit_number, row in zip(
        frame[id_column].to_list(), complete_rows.select(columns).iter_rows(), strict=True
    ):
        rows_by_unit[int(unit_number)].append(dict(zip(columns, row, strict=True)))
    return [ModelResponse(rows) for rows in rows_by_unit]


def _build_late_response() -> ModelResponse:
    return ModelResponse(None, LATE_REASON, "time")


def _format_exception(error: BaseException) -> str:
    text = (str(error).splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
