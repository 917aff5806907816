"""An onnxruntime session: one picture input, what it takes and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import FileError, SpecError
from isolux.core.extras import import_optional
from isolux.io.cpu_count import count_cores

_TYPES = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}


@dataclass(frozen=True, slots=True)
class Session:
    """A network that is ready to run.

    Parameters
    ----------
    inner : onnxruntime.InferenceSession
    input_name, input_shape, dtype
        Of its one input.
    outputs : mapping of str to sequence
        Each output's shape; a name where a side is open.
    metadata : mapping of str to str
        What the file says of itself.
    device : str
        Where it runs, as onnxruntime calls it.
    """

    inner: Any
    input_name: str
    input_shape: tuple[Any, ...]
    dtype: str
    outputs: Mapping[str, tuple[Any, ...]]
    metadata: Mapping[str, str]
    device: str

    @property
    def channels_first(self) -> bool:
        """Whether the colours are the second side, as PyTorch has them."""
        return bool(self.input_shape[1] == 3 or self.input_shape[3] != 3)

    @property
    def size(self) -> tuple[int, int] | None:
        """Height and width of the input; None: open."""
        _, a, b, c = self.input_shape
        height, width = (b, c) if self.channels_first else (a, b)
        return (height, width) if isinstance(height, int) and isinstance(width, int) else None

    @property
    def batch(self) -> int | None:
        """How many pictures at a time the file allows; None: any number."""
        first = self.input_shape[0]
        return first if isinstance(first, int) and first > 0 else None

    def outputs_text(self) -> str:
        """List the outputs with their shapes."""
        return ", ".join(f"{name} {list(shape)}" for name, shape in self.outputs.items())

    def run(self, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Run the network on one batch; a file that allows fewer at a time gets them filled up."""
        n = len(values)
        if self.batch is not None and n < self.batch:
            padding = np.zeros((self.batch - n, *values.shape[1:]), values.dtype)
            values = np.concatenate([values, padding])
        arrays = self.inner.run(None, {self.input_name: values})
        return {
            name: np.asarray(array)[:n] if np.ndim(array) and len(array) == len(values) else array
            for name, array in zip(self.outputs, arrays, strict=True)
        }


def open_session(path: Path, device: str, threads: int) -> Session:
    """Open a file."""
    ort = import_optional(
        "onnxruntime", package="onnxruntime", extra="onnx", purpose="the model family onnx"
    )
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads or count_cores()
    # Threads that spin while they wait take the cores from those that read pictures.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    settings.log_severity_level = 3
    try:
        inner = ort.InferenceSession(
            str(path), sess_options=settings, providers=_list_execution_providers(ort, device)
        )
        inputs = inner.get_inputs()
        # Names that are no UTF-8 are noticed when they are asked for.
        output_shapes = {
            tensor_info.name: tuple(tensor_info.shape or ()) for tensor_info in inner.get_outputs()
        }
        metadata = dict(inner.get_modelmeta().custom_metadata_map)
        shape = tuple(inputs[0].shape) if inputs else ()
        inputs_text = (
            ", ".join(f"{tensor_info.name} {tensor_info.shape}" for tensor_info in inputs)
            or "no input"
        )
    except SpecError:
        raise
    except Exception as error:
        raise FileError(
            "this file cannot be run as an ONNX network",
            found=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}",
            where=str(path),
        ) from error
    if len(inputs) != 1 or len(shape) != 4 or 3 not in (shape[1], shape[3]):
        raise SpecError(
            "the network does not take a colour picture",
            expected="one input [n, 3, height, width] or [n, height, width, 3]",
            found=inputs_text,
            where=str(path),
        )
    if inputs[0].type not in _TYPES:
        raise SpecError(
            "the network takes numbers of another type",
            expected=", ".join(_TYPES),
            found=inputs[0].type,
            where=str(path),
        )
    _check_no_cpu_fallback(inner, device)
    return Session(
        inner,
        inputs[0].name,
        shape,
        _TYPES[inputs[0].type],
        output_shapes,
        metadata,
        inner.get_providers()[0],
    )


def _list_execution_providers(ort: Any, device: str) -> list[Any]:
    name, _, number = device.partition(":")
    if name == "cpu":
        return ["CPUExecutionProvider"]
    if name == "cuda" and (not number or number.isdigit()):
        if "CUDAExecutionProvider" in ort.get_available_providers():
            return [("CUDAExecutionProvider", {"device_id": int(number or 0)})]
        raise SpecError(
            "this onnxruntime cannot use a GPU",
            expected="the package onnxruntime-gpu",
            found=", ".join(ort.get_available_providers()),
        )
    raise SpecError("there is no such device", expected="cpu, cuda or cuda:1", found=repr(device))


def _check_no_cpu_fallback(inner: Any, device: str) -> None:
    """Refuse a CPU where a GPU was asked for: onnxruntime changes over without an error."""
    active_providers = inner.get_providers()
    if device.startswith("cuda") and "CUDAExecutionProvider" not in active_providers:
        raise SpecError(
            "onnxruntime did not start on the GPU, and would run on the CPU instead",
            expected="a GPU, with the CUDA and cuDNN that this onnxruntime-gpu was built for",
            found=", ".join(active_providers),
            where=device,
            hint="device=cpu runs it there",
        )
